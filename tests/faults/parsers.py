"""Every reader of files, a file that it reads, and mutants of it. A reader gives a value or a SememekitError, nothing else."""

from __future__ import annotations

import json
import pickle
import random
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sememekit.analysis.written_texts import compare_texts
from sememekit.attack.candidates import TableCandidates
from sememekit.attack.constraints.pairs import read_pairs
from sememekit.attack.constraints.words import StopWords
from sememekit.attack.examples import read_examples
from sememekit.attack.folder import AttackFolder
from sememekit.attack.folder import compare_attacks as compare
from sememekit.attack.plan import is_attack, read_attack_plan
from sememekit.attack.resources import AttackResources
from sememekit.config.recipes import load_recipe
from sememekit.data.prepared import PreparedData
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.reports.run import report
from sememekit.runs.augment import augmented
from sememekit.runs.plan import read_plan
from sememekit.sememes import SememeGraph, build_graph, open_lexicon
from sememekit.sememes.lemmas import open_lemmas
from sememekit.sememes.wordnet import read_wordnet, read_wordnet_index
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vectors import read_vectors
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunFolder
from sememekit.word_classes.file import read_clusters, write_clusters
from tests.faults.runs import write_headlines
from tests.small import small_graph, small_lexicon, small_vocabulary
from tests.small_examples import write_pairs, write_reviews, write_vectors
from tests.small_run import Place
from tests.small_wordnet import write_wordnet

Edit = tuple[str, float, float, int]
"""Operation, place (0 to 1 of the file), amount (0 to 1), and bytes (a number into ``NASTY``)."""

NASTY: tuple[bytes, ...] = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\t",
    b"\n\n",
    b" ",
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"-Infinity",
    b"18446744073709551616",
    b"9" * 5000,
    b"1.5",
    b'"\\ud800"',
    b"\\ud800",
    b"[" * 100_000,
    b'{"a":' * 20_000,
    b"{}",
    b"[]",
    b"null",
    b"true",
    b'""',
    b'"x"',
    b"../../x",
    "　".encode(),
    "\u202e\x1b[2J".encode(),
    b"a.b:c",
)
OPERATIONS = ("cut", "double", "flip", "insert", "token", "token", "token", "end")
_TOKEN = re.compile(rb'"[^"\n]*"|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|[^\s\t|<>=]+')

edits = st.lists(
    st.tuples(
        st.sampled_from(OPERATIONS),
        st.floats(0, 1, allow_nan=False),
        st.floats(0, 1, allow_nan=False),
        st.integers(0, len(NASTY) - 1),
    ),
    min_size=1,
    max_size=3,
)


def mutate(data: bytes, changes: list[Edit]) -> bytes:
    """The file after some edits."""
    for kind, where, much, what in changes:
        place = int(where * len(data))
        end = min(len(data), place + 1 + int(much * 40))
        if kind == "cut":
            data = data[:place] + data[end:]
        elif kind == "double":
            data = data[:end] + data[place:]
        elif kind == "flip" and place < len(data):
            data = data[:place] + bytes([data[place] ^ (1 << int(much * 7.99))]) + data[place + 1 :]
        elif kind == "insert":
            data = data[:place] + NASTY[what] + data[place:]
        elif kind == "end":
            data = data[:place]
        elif kind == "token":
            found = list(_TOKEN.finditer(data))
            if found:
                token = found[min(len(found) - 1, int(where * len(found)))]
                data = data[: token.start()] + NASTY[what] + data[token.end() :]
    return data


@dataclass(frozen=True)
class Parser:
    """A reader.

    Attributes:
        name: for the table.
        make: puts whole files into a folder.
        file: the one that is mutated.
        read: reads; gets the folder.
        slow: whether a call takes more than a few milliseconds.
    """

    name: str
    make: Callable[[Path], object]
    file: str
    read: Callable[[Path], Any]
    slow: bool = False


def parsers() -> Iterator[Parser]:
    """Return all readers."""
    yield from _text_files()
    yield from _lists()
    yield from _folders()
    yield from _lexicons()
    yield from _corpora()


def _writes(name: str, text: str | bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return make


def _chunk_file(folder: Path) -> None:
    words = small_vocabulary()
    ChunkVocabulary(words, [(1, 2), (1, 2, 3)], [3, 2], max_length=3).save(folder / "chunks.tsv")


def _read_recipe(folder: Path) -> object:
    table = load_recipe(str(folder / "r.toml"))
    return read_attack_plan(table, "r.toml") if is_attack(table) else read_plan(table, "r.toml")


def _candidates(folder: Path) -> object:
    settings = TableCandidates.Settings(path=str(folder / "t.json"))
    return TableCandidates(settings, AttackResources(None, (), ("text",), None)).table(["man", "park"])


_RECIPE = '[task]\nname = "language_model"\nembedding_size = 6\n[encoder]\nname = "lstm"\nhidden_size = 6\n[run]\nseed = 3\n'
_ATTACK_RECIPE = '[search]\nname = "pso"\npopulation = 5\n[attack]\nlimit = 4\n[goal]\nname = "untargeted"\n'


def _text_files() -> Iterator[Parser]:
    words, graph = small_vocabulary(), small_graph()
    yield Parser("vocabulary.tsv", lambda f: words.save(f / "v"), "v", lambda f: Vocabulary.load(f / "v"))
    yield Parser("chunks.tsv", _chunk_file, "chunks.tsv", lambda f: ChunkVocabulary.load(f / "chunks.tsv", words))
    write = lambda f: write_clusters(f / "c", words, [number % 3 for number in range(len(words))])  # noqa: E731
    yield Parser("clusters, JSON", write, "c", lambda f: read_clusters(f / "c", words))
    lines = "".join(f"{word}\t{number % 3}\n" for number, word in enumerate(words.tokens))
    yield Parser("clusters, lines", _writes("c", lines), "c", lambda f: read_clusters(f / "c", words))
    yield Parser("graph", lambda f: graph.save(f / "g"), "g", lambda f: SememeGraph.load(f / "g").check_vocabulary(words))
    make = lambda f: write_vectors(f / "v.txt", ["a", "man", "park"])  # noqa: E731
    yield Parser("vectors", make, "v.txt", lambda f: read_vectors(f / "v.txt", words={"a", "park"}))
    vectors = "3 2\na 0.5 1\nman 2 -1e-3\npark 0 0\n"
    yield Parser("vectors with a header", _writes("v.txt", vectors), "v.txt", lambda f: read_vectors(f / "v.txt"))
    table = json.dumps({"man": ["girl", "dog"], "park": {"noun": ["rain"], "verb": []}})
    yield Parser("candidates table", _writes("t.json", table), "t.json", _candidates)
    yield Parser("recipe", _writes("r.toml", _RECIPE), "r.toml", _read_recipe)
    yield Parser("recipe of an attack", _writes("r.toml", _ATTACK_RECIPE), "r.toml", _read_recipe)
    yield Parser("lemmas", _writes("l.tsv", "be\tis\nbe\twas\ngo\twent\n"), "l.tsv", lambda f: open_lemmas(str(f / "l.tsv")))
    rows = "text\tlabel\na fine film\tyes\nwhat a bore\tno\n"
    yield Parser("attacked table", _writes("a.tsv", rows), "a.tsv", lambda f: read_examples(f / "a.tsv"))
    records = "".join(json.dumps({"text": "a film", "label": label}) + "\n" for label in ("yes", "no"))
    yield Parser("attacked JSON lines", _writes("a.jsonl", records), "a.jsonl", lambda f: read_examples(f / "a.jsonl"))


def _read_wordnet(folder: Path) -> None:
    read_wordnet(str(folder)).antonyms()
    read_wordnet_index(folder)


def _lists() -> Iterator[Parser]:
    """Lists of words, WordNet, texts to compare, results to learn from."""
    for name in ("data.noun", "data.verb", "index.noun", "noun.exc"):
        yield Parser(f"WordNet {name}", write_wordnet, name, _read_wordnet)
    opposites = lambda f: read_pairs(f / "p.txt", "opposites")  # noqa: E731
    yield Parser("opposites", _writes("p.txt", "# of size\nbig small\nhot\tcold\n"), "p.txt", opposites)
    stop = lambda f: StopWords(StopWords.Settings(file=str(f / "s.txt")), AttackResources(None, (), ("text",), None))  # noqa: E731
    yield Parser("stop words", _writes("s.txt", "the\na an\nof\n"), "s.txt", stop)
    texts = [{"source": f"a long story {n}", "texts": ["a story", "x"], "references": ["the story"]} for n in range(3)]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    yield Parser(
        "texts of eval", _writes("t.jsonl", lines), "t.jsonl", lambda f: compare_texts(f / "t.jsonl", f / "t.jsonl", "gigaword")
    )


def _read_data(folder: Path) -> None:
    data = PreparedData.open(folder / "data")
    data.chunks()
    for split in data.splits:
        data.tokens(split)
        if data.signature.examples is not None:
            examples = data.examples(split)
            for number in range(len(examples)):
                examples.text(number, 0)
            list(examples.originals or ())


def _read_run(folder: Path) -> None:
    run = RunFolder.open(folder / "run")
    read_plan(run.plan, "plan.json")
    run.data_signature()
    run.load("best", with_trainer=True)


def _read_attack(folder: Path) -> None:
    found = AttackFolder.open(folder / "attack")
    found.results()
    found.report()
    compare(folder / "attack", folder / "attack")


class Kept:
    """Folders that take a while to make: made once, copied for each parser."""

    def __init__(self, folder: Path) -> None:
        from sememekit.jobs.attack import attack
        from sememekit.jobs.train import train
        from tests.attack import toys

        self.folder = folder
        place = Place(folder / "words", end_of_sentence=True, chunks=4, chunk_length=3)
        train(place.table(schedule__epochs=1), folder / "run")
        shutil.copytree(place.data.folder, folder / "data")
        preprocess("snli", write_pairs(folder / "snli"), folder / "pairs")
        preprocess("sst2", write_reviews(folder / "sst2"), folder / "reviews")
        preprocess("gigaword", write_headlines(folder / "giga"), folder / "titles", PreprocessSettings(segmenter="none"))
        (folder / "t.json").write_text(json.dumps(toys.TABLE), encoding="utf-8")
        (folder / "a.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in toys.TEXTS), encoding="utf-8")
        table: dict[str, Any] = {"search": {"name": "greedy"}, "candidates": {"name": "table", "path": str(folder / "t.json")}}
        attack("tests.attack.toys:predict", folder / "a.tsv", folder / "attack", table=table, labels=toys.LABELS)

    def copy(self, name: str, to: str) -> Callable[[Path], None]:
        return lambda folder: shutil.copytree(self.folder / name, folder / to, dirs_exist_ok=True) and None


KEPT: list[Kept] = []
"""Filled by whoever uses ``parsers``: the folders of this process."""


def _folders() -> Iterator[Parser]:
    kept = KEPT[0]
    for name in ("data", "pairs", "titles"):
        for path in sorted((kept.folder / name).iterdir()):
            if name == "data" or path.name.split(".")[0] in ("signature", "valid"):
                yield Parser(f"{name}: {path.name}", kept.copy(name, "data"), f"data/{path.name}", _read_data)
    run = kept.folder / "run"
    best = json.loads((run / "checkpoints" / "pointer.json").read_bytes())["best"]
    files = ["manifest.json", "plan.json", "versions.json", "data.json", "checkpoints/pointer.json"]
    files += [f"checkpoints/{best}/{name}" for name in ("manifest.json", "trainer.json", "weights.safetensors")]
    for file in files:
        yield Parser(
            f"run: {'checkpoint ' * (file.count('/') == 2)}{Path(file).name}", kept.copy("run", "run"), f"run/{file}", _read_run
        )
    yield Parser("run: metrics.jsonl", kept.copy("run", "run"), "run/metrics.jsonl", lambda f: report(f / "run"), slow=True)
    for file in ("attack.json", "examples.jsonl", "report.json"):
        yield Parser(f"attack: {file}", kept.copy("attack", "attack"), f"attack/{file}", _read_attack)
    learn = lambda f: augmented(PreparedData.open(kept.folder / "reviews"), f / "a.jsonl", 1.0, 0)  # noqa: E731
    results = (kept.folder / "attack" / "examples.jsonl").read_bytes()
    results = results.replace(b'"yes"', b'"positive"').replace(b'"no"', b'"negative"')
    yield Parser("--augment", _writes("a.jsonl", results), "a.jsonl", learn)


_HOWNET = "NO.=000001\nW_C=教师\nG_C=N\nE_C=\nW_E=teacher\nG_E=N\nE_E=\nDEF=human|人,#occupation|职位\n\n"
_OPEN = {
    "inventory.tsv": "fruit|水果\tthe part of a plant that is eaten\nmachine|机器\twhat does work\n",
    "words.tsv": "苹果\tn\tapple\tfruit|水果\n电脑\tn\tcomputer\tmachine|机器\n",
}
_TAGS = {"No": "0", "ch_word": "苹果", "ch_grammar": "noun", "en_word": "apple", "en_grammar": "N", "Def": "{fruit|水果}"}


def _open_folder(folder: Path) -> None:
    (folder / "open").mkdir()
    for name, text in _OPEN.items():
        (folder / "open" / name).write_text(text, encoding="utf-8")


def _zip(folder: Path) -> None:
    from sememekit.sememes.formats.openhownet import DICTIONARY

    with zipfile.ZipFile(folder / "l.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("resources/" + DICTIONARY, pickle.dumps({"0": _TAGS}))


def _lexicons() -> Iterator[Parser]:
    lines = {
        "hownet": _HOWNET * 2,
        "hownet2000": "苹果\tN\tfruit|水果\n吃\tV\teat|吃\n的\tSTRU\t{?}\n",
        "list": "苹果\n水果 植物\n吃\n吃\n",
        "table": "word\tsememes\tpos\n苹果\t水果 植物\tn\n",
        "dictionary": "apple\ta round fruit of a tree\nfruit\ta part of a plant that people eat\n",
    }
    for name, text in lines.items():
        read = lambda folder, name=name: build_graph(small_vocabulary(), [open_lexicon(f"{name}:{folder / 'l.txt'}")])  # noqa: E731
        yield Parser(f"lexicon {name}", _writes("l.txt", text), "l.txt", read)
    for file in _OPEN:
        yield Parser(f"lexicon open: {file}", _open_folder, f"open/{file}", lambda f: open_lexicon(f"open:{f / 'open'}"))
    yield Parser("lexicon openhownet", _zip, "l.zip", lambda f: open_lexicon(f"openhownet:{f / 'l.zip'}"))
    assert small_lexicon()


def _document(number: int, text: str, summary: str) -> str:
    tags = (("human_label", "4"), ("summary", summary), ("short_text", text))
    return "\n".join([f"<doc id={number}>", *(f"<{tag}>\n{value}\n</{tag}>" for tag, value in tags), "</doc>"]) + "\n"


def _write_parts(folder: Path) -> None:
    folder.mkdir()
    for name, size in (("PART_I", 24), ("PART_II", 8), ("PART_III", 8)):
        text = "".join(_document(number, f"我 吃 {name} {number}", "苹果") for number in range(size))
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def _corpora() -> Iterator[Parser]:
    sentences = "the man sleeps in the park\nthe girl runs\n" * 12
    tagged = "19980101-01-001-001/m  我/r  吃/v  苹果/n  。/w\n19980101-01-001-002/m  [中国/ns  人/n]nt  买/v  梨/n\n" * 20
    talk = "# 7\nA|do you?|x\nB|no|x\nA|oh well|x\n# 8\nA|hi|x\nB|hi there|x\n" * 14
    turns = "".join(json.dumps({"utts": [["A", f"do you {number}"], ["B", "no"]]}) + "\n" for number in range(40))
    pairs = "".join(json.dumps({"text": f"the man {number}", "summary": "man"}) + "\n" for number in range(40))
    files = [
        ("plain", "s.txt", sentences),
        ("peoples-daily", "s.txt", tagged),
        ("gigaword", "s.jsonl", pairs),
        (
            "classification",
            "s.tsv",
            "text\tlabel\n" + "".join(f"film {number}\tgood\nbore {number}\tbad\n" for number in range(20)),
        ),
        ("switchboard", "s.txt", talk),
        ("switchboard", "s.jsonl", turns),
    ]
    for dataset, name, text in files:
        yield Parser(f"corpus {dataset}: {name}", _writes(name, text), name, _cut(dataset, name), slow=True)
    folder_of: dict[str, tuple[Callable[[Path], object], str]] = {
        "snli": (write_pairs, "snli_1.0_dev.jsonl"),
        "sst2": (write_reviews, "valid.tsv"),
        "lcsts": (_write_parts, "PART_II.txt"),
    }
    for dataset, (write, name) in folder_of.items():
        make = lambda folder, write=write: write(folder / "in") and None  # noqa: E731
        yield Parser(f"corpus {dataset}: {name}", make, f"in/{name}", _cut(dataset, "in"), slow=True)


def _cut(dataset: str, name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        shutil.rmtree(folder / "out", ignore_errors=True)
        with redirect_stderr(StringIO()):
            return preprocess(dataset, folder / name, folder / "out", PreprocessSettings(min_count=1))

    return read


def random_edits(source: random.Random) -> list[Edit]:
    """Return edits like ``edits``, from a generator of our own: for thousands of mutants that need no shrinking."""
    many = 1 + source.randrange(3)
    return [(source.choice(OPERATIONS), source.random(), source.random(), source.randrange(len(NASTY))) for _ in range(many)]
