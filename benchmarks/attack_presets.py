"""Success of an attack under each preset and constraint, with automatic proxies of validity.

    python benchmarks/attack_presets.py --corpora CORPORA --out OUT [--results FILE] [--sets sst2 headlines] [--seeds N ...]

A victim, a second classifier with another encoder (the judge) and a language model are trained for each set of texts; the seed
is the seed of the victim. Then the same first test texts are attacked once a row: greedy search, sememe-equal substitutes. A
row that has a result is not measured again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from measuring import Cell, cell_arguments, fill, train_to_the_end

from sememekit.config import load_recipe
from sememekit.corpora.examples.labelled import read_labelled
from sememekit.data.segmenters import segmenter_for
from sememekit.jobs.attack import attack
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings

ROWS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "none": ("none", {}),
    "loose": ("loose", {}),
    **{f"loose and {name}": ("loose", {name: {}}) for name in ("names", "first_senses", "common_words", "length")},
    "standard": ("standard", {}),
    "standard and perplexity": ("standard", {"perplexity": {}}),
    "standard and language_model": ("standard", {"language_model": {"keep": 2}}),
    "loose and language_model": ("loose", {"language_model": {"keep": 4}}),
}
"""Row -> preset and further constraints."""
BOUNDS: Final = {
    **{f"loose and similarity {least}": (least, -1.0) for least in (0.9, 0.95, 0.97, 0.98, 0.99)},
    **{f"loose and similarity 0.98, each {each}": (0.98, each) for each in (0.1, 0.2, 0.3, 0.4, 0.5)},
    **{f"loose and similarity {least}, each 0.3": (least, 0.3) for least in (0.9, 0.99)},
}
"""Row -> least similarity of the text and of each pair of words; with GloVe vectors, for texts that have them."""


class Texts(NamedTuple):
    """Attacked texts: the file, options of the attack, and the runs."""

    file: Path
    candidates: dict[str, Any]
    examples: int
    victim: Path
    judge: Path
    language_model: Path
    vectors: Path | None


def main() -> None:
    """Train and measure every row that has no result yet."""
    parser = cell_arguments(__doc__ or "", "attack-presets")
    parser.set_defaults(seeds=[1])
    parser.add_argument("--sets", nargs="*", default=["sst2", "headlines"])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    fill(given.results, cells(given.corpora, given.out, given.sets, given.seeds))


def cells(corpora: Path, out: Path, sets: list[str], seeds: list[int]) -> Iterator[Cell]:
    """Yield each row with its measurement."""
    for name in sets:
        for seed in seeds:
            texts = (sentences if name == "sst2" else headlines)(corpora, out, seed)
            for row, (preset, constraints) in ROWS.items():
                yield f"{name} {row}", seed, partial(measured, texts, preset, constraints, out / f"{name}-{row}-{seed}")
            for row, (least, each) in BOUNDS.items() if texts.vectors else ():
                bounds = {"similarity": {"path": str(texts.vectors), "least": least, "each": each}}
                yield f"{name} {row}", seed, partial(measured, texts, "loose", bounds, out / f"{name}-{row}-{seed}")


def sentences(corpora: Path, out: Path, seed: int) -> Texts:
    """SST-2: BiLSTMs and a GRU with GloVe vectors, and a language model of its training text and IMDB's."""
    english, vectors = corpora / "hownet/english", corpora / "glove/glove.6B.50d.subset.txt.xz"
    data = prepared("sst2", corpora / "sst2", out / "sst2", {})
    reviews = [corpora / "sst2/train.tsv", corpora / "imdb/cad-orig.train.tsv"]
    cut = segmenter_for("english").segment
    rows = [" ".join(cut(row.texts[0].replace("<br />", " "))) for path in reviews for row in read_labelled(path).rows]
    table = {"task": {"vectors": str(vectors)}}
    return Texts(
        corpora / "sst2/test.tsv",
        {"sources": (f"table:{english / 'en_wordnet_sememes.tsv.xz'}",), "lemmas": str(english / "lemmatization.txt")},
        300,
        trained("ours/sst2-tuned", data, out / f"sst2-victim-{seed}", seed, table),
        trained("ours/sst2-tuned", data, out / "sst2-judge", 101, {**table, "encoder": {"name": "gru"}}),
        language_model(rows, out / "reviews.txt", out / "sst2-lm", "none"),
        vectors,
    )


def headlines(corpora: Path, out: Path, seed: int) -> Texts:
    """THUCNews: BiLSTMs of jieba's words and a GRU of characters, and a language model of the training headlines."""
    folder = corpora / "chinese-text"
    lines = (folder / "THUCNews-headlines.dev.txt").read_text("utf-8").splitlines()
    tests = (folder / "THUCNews-headlines.test.txt").read_text("utf-8").splitlines()[:2000]
    parts = {"train": lines[:9000], "valid": lines[9000:], "test": tests}
    for name, part in parts.items():
        (out / f"headlines-{name}.tsv").write_text("\n".join(part) + "\n", "utf-8")
    files = {name: [out / f"headlines-{name}.tsv"] for name in parts}
    words = prepared("classification", None, out / "headlines-words", files, segmenter="jieba")
    characters = prepared("classification", None, out / "headlines-characters", files, segmenter="characters")
    rows = [line.rpartition("\t")[0] for line in parts["train"]]
    return Texts(
        files["test"][0],
        {"sources": (f"hownet2000:{next((corpora / 'hownet/hownet2000').glob('*glossary*'))}",)},
        300,
        trained("small/classification", words, out / f"headlines-victim-{seed}", seed, {}),
        trained("small/classification", characters, out / "headlines-judge", 101, {"encoder": {"name": "gru"}}),
        language_model(rows, out / "headlines.txt", out / "headlines-lm", "jieba"),
        None,
    )


def prepared(dataset: str, source: Path | None, data: Path, files: dict[str, list[Path]], **settings: Any) -> Path:
    """Return a folder of prepared data."""
    if not data.exists():
        preprocess(dataset, source, data, PreprocessSettings(**settings), files=files or None)
    return data


def trained(recipe: str, data: Path, run: Path, seed: int, changes: dict[str, dict[str, Any]]) -> Path:
    """Return the folder of a finished training."""
    table = load_recipe(recipe)
    for name, values in {**changes, "data": {"path": str(data)}, "run": {"threads": 1, "device": "cpu", "seed": seed}}.items():
        table[name] = {**table.get(name, {}), **values}
    return train_to_the_end(table, run)


def language_model(rows: list[str], text: Path, run: Path, segmenter: str) -> Path:
    """Return a language model of these lines, the last fortieth of which is for validation."""
    held = len(rows) // 40
    parts = {"train": rows[: -2 * held], "valid": rows[-2 * held : -held], "test": rows[-held:]}
    for name, part in parts.items():
        text.with_suffix(f".{name}").write_text("\n".join(part) + "\n", "utf-8")
    files = {name: [text.with_suffix(f".{name}")] for name in parts}
    data = prepared("plain", None, run.with_name(f"{run.name}-data"), files, segmenter=segmenter, min_count=2)
    return trained("small/language-model", data, run, 1, {})


def measured(texts: Texts, preset: str, constraints: dict[str, Any], out: Path) -> dict[str, Any]:
    """Attack the texts, and return the figures of the report."""
    shutil.rmtree(out, ignore_errors=True)
    only_measured = {"similarity": {"path": str(texts.vectors), "least": -1, "each": -1}} if texts.vectors else {}
    table = {
        "search": {"name": "greedy"},
        "candidates": {"name": "sememe", **texts.candidates},
        "attack": {"constraints": preset, "limit": texts.examples, "query_budget": 500},
        "constraints": {**only_measured, **constraints},
    }
    report = attack(
        str(texts.victim),
        texts.file,
        out,
        table=table,
        language_model=texts.language_model,
        device="cpu",
        judge=str(texts.judge),
    )
    keep = {"rates", "coverage", "refused_by_standard", "refused_by_any", "refused_substitutes", "proxies", "signature"}
    found = report.model_dump(mode="json", include=keep)
    for proxy in found["proxies"]:
        proxy["source"] = Path(proxy["source"]).name
        del proxy["scores"]  # of each text
    del found["coverage"]["refused"]  # which refused_substitutes has by name
    return found


if __name__ == "__main__":
    main()
