"""Causal and masked models of Hugging Face tag senses and predict words of several pieces, against plain computations."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import sememekit.runs.published as published_runs
from sememekit import load_run
from sememekit.analysis.senses.inventory import inventory_of
from sememekit.analysis.senses.tagger import LineReader, SenseTagger
from sememekit.commands._program import app
from sememekit.errors import ConfigError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.published import PublishedRun
from tests.analysis import own_gold
from tests.small_run import write_text
from tests.tiny_models import write_gpt2, write_masked

transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
pytest.importorskip("tokenizers", reason="the extra 'hf' is not installed")

LEXICON = "苹果\tfruit\n苹果\tcomputer brand\n梨\tfruit\n电脑\tcomputer\n我\thuman\n人\thuman\n吃\teat\n买\tbuy\n苹果树\ttree\n"
GOLD = "sentence\tword\tposition\tsense\n我 吃 苹果 。\t苹果\t3\tfruit\n我 买 苹果 。\t苹果\t3\t2\n我 买 苹果 。\t苹果\t9\t2\n"
KINDS = ["causal", "masked"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    (folder / "raw").mkdir()
    for file in write_text(folder / "text", 40).iterdir():
        (folder / "raw" / file.name).write_text(file.read_text(encoding="utf-8").replace(" ", ""), encoding="utf-8")
    for kind in KINDS:
        (folder / kind).mkdir()
    write_gpt2(folder / "causal")
    write_masked(folder / "masked", more=(own_gold.ENGLISH + own_gold.CHINESE + "苹果树").splitlines())
    for kind in KINDS:
        settings = PreprocessSettings(segmenter=f"hf:{folder / kind}", end_of_sentence=False)
        preprocess("plain", folder / "raw", folder / f"{kind}-data", settings)
    (folder / "lex.tsv").write_text("word\tsememes\n" + LEXICON, encoding="utf-8")
    (folder / "gold.tsv").write_text(GOLD, encoding="utf-8")
    return folder


def opened(place: Path, kind: str, *, data: bool = False) -> PublishedRun:
    run = load_run(f"hf:{place / kind}", data=place / f"{kind}-data" if data else None, sources=[f"table:{place / 'lex.tsv'}"])
    assert isinstance(run, PublishedRun)
    return run


@torch.no_grad()
def logits(place: Path, kind: str, ids: list[int]) -> torch.Tensor:
    """(L, P) log-probabilities of transformers itself."""
    classes = {"causal": transformers.AutoModelForCausalLM, "masked": transformers.AutoModelForMaskedLM}
    model = classes[kind].from_pretrained(place / kind).eval()
    return model(torch.tensor([ids])).logits[0].double().log_softmax(-1)  # type: ignore[no-any-return]


def pieces(place: Path, kind: str, text: str) -> list[int]:
    """Return the pieces of words between blanks, each word cut alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / kind)
    return [piece for word in text.split() for piece in tokenizer(word, add_special_tokens=False)["input_ids"]]


def score(place: Path, kind: str, left: str, word: str, right: str) -> float:
    before, middle, after = (pieces(place, kind, part) for part in (left, word, right))
    if kind == "causal":
        whole = [0, *before, *middle, *after]  # <|endoftext|> begins a text
        found = logits(place, kind, whole)
        return sum(float(found[at - 1, whole[at]]) for at in range(1 + len(before), len(whole)))
    tokenizer = transformers.AutoTokenizer.from_pretrained(place / kind)
    mask, begin, end = (tokenizer.convert_tokens_to_ids(name) for name in ("[MASK]", "[CLS]", "[SEP]"))
    found = logits(place, kind, [begin, *before, *[mask] * len(middle), *after, end])
    return float(np.mean([float(found[1 + len(before) + at, piece]) for at, piece in enumerate(middle)]))


@pytest.mark.parametrize("data", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_substitution_is_the_probability_of_the_whole_sentence(place: Path, kind: str, data: bool) -> None:
    run = opened(place, kind, data=data)
    inventory, line = inventory_of(run), LineReader(run).read(["我", "吃", "苹果", "。"])
    assert line.known[:3] == (True,) * 3
    [[word]] = SenseTagger(run, inventory).tag([line.ids], [[2]])
    assert set(word.parts) == {"substitution", "usual"}
    expected = []
    for sense in inventory.senses(line.ids[2]):
        words, weights = inventory.substitutes(sense)
        assert len(words)
        logs = np.array([score(place, kind, "我 吃", run.vocabulary.token(one), "。") for one in words.tolist()])
        frequency = inventory.log_frequency[words] if kind == "causal" else 0.0
        expected.append(np.average(np.exp(logs - frequency), weights=weights))
    np.testing.assert_allclose(np.exp(word.parts["substitution"]), np.array(expected) / sum(expected), rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_that_is_too_long_is_cut_and_one_without_neighbours_is_scored(place: Path, kind: str) -> None:
    run = opened(place, kind)
    for words, at in ((["我", "吃"] * 40 + ["苹果"] + ["吃", "我"] * 40, 80), (["苹果"], 0)):
        line = LineReader(run).read(words)
        [[word]] = SenseTagger(run, inventory_of(run)).tag([line.ids], [[at]])
        assert np.exp(word.parts["substitution"]).sum() == pytest.approx(1.0)


def test_a_word_with_pieces_that_the_tokenizer_does_not_know_is_outside_the_vocabulary(place: Path, tmp_path: Path) -> None:
    lexicon, gold = tmp_path / "lexicon.tsv", tmp_path / "gold.tsv"
    rows = "".join(f"{word}\t{sememes}\n" for word in ("鑫", "鑫鑫", "鑫森") for sememes in ("fruit", "tree"))
    lexicon.write_text(f"word\tsememes\n{rows}{LEXICON}", encoding="utf-8")
    lines = "我 吃 鑫\t鑫\t3\tfruit\n我 吃 鑫森\t鑫森\t3\tfruit\n我 吃 苹果\t苹果\t3\tfruit\n"
    gold.write_text("sentence\tword\tposition\tsense\n" + lines, encoding="utf-8")
    typed = ("eval", f"hf:{place / 'masked'}", "--senses", str(gold), "--source", f"table:{lexicon}", "--json")
    found = json.loads(invoke(*typed).stdout)
    assert found["targets"] == 1
    assert [(one["cause"], one["count"]) for one in found["left_out"]] == [("word outside the vocabulary", 2)]


def test_a_sense_without_substitutes_is_the_least_probable(place: Path) -> None:
    source = place / "lonely.tsv"
    source.write_text("word\tsememes\n苹果\tfruit\n苹果\tstar\n梨\tfruit\n", encoding="utf-8")
    run = load_run(f"hf:{place / 'masked'}", sources=[f"table:{source}"])
    line = LineReader(run).read(["我", "吃", "苹果"])
    [[word]] = SenseTagger(run, inventory_of(run)).tag([line.ids], [[2]])
    np.testing.assert_allclose(np.exp(word.parts["substitution"]), [0.5, 0.5])


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_several_pieces_share_the_probability_of_their_beginnings(
    place: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published_runs, "LEAST", 0.0)
    run = opened(place, kind)
    decoder: Any = run.task.decoder
    context = pieces(place, kind, "我吃")
    hidden = torch.zeros(1, run.model.limit)
    hidden[0, : len(context)] = torch.tensor(context) + 1
    found = decoder.log_probs(hidden)[0].double().exp()
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-5)

    def chain(text: str) -> float:
        total, begun = 0.0, list(context)
        for piece in pieces(place, kind, text):
            if kind == "masked":
                around = [run.model.tokenizer.id(name) for name in ("[CLS]", "[MASK]", "[SEP]")]
                log = logits(place, kind, [around[0] or 0, *begun, around[1] or 0, around[2] or 0])[-2]
            else:
                log = logits(place, kind, begun)[-1]
            total, begun = total + float(log[piece]), [*begun, piece]
        return float(np.exp(total))

    tree, apple = chain("苹果树"), chain("苹果")
    assert len(pieces(place, kind, "苹果")) > 1
    assert float(found[run.vocabulary.id("苹果树")]) == pytest.approx(tree, rel=1e-3)
    assert float(found[run.vocabulary.id("苹果")]) == pytest.approx(apple - tree, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_words_of_several_pieces_take_from_what_is_unknown(place: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published_runs, "LEAST", 0.0)

    def unknown(sources: list[str]) -> float:
        run = load_run(f"hf:{place / kind}", sources=sources)
        assert run.graph is not None
        number = run.graph.sememes.index("<unk>")
        found: Any = run.task.decoder
        return float(found.sense_probabilities(torch.zeros(1, published_width(run))).gates_NK[0, number])

    (place / "single.tsv").write_text("word\tsememes\n我\thuman\n人\thuman\n", encoding="utf-8")
    before, after = unknown([f"table:{place / 'single.tsv'}"]), unknown([f"table:{place / 'lex.tsv'}"])
    assert after < before - 1e-4


def published_width(run: Any) -> int:
    return int(run.model.limit)


@pytest.mark.parametrize("kind", KINDS)
def test_data_are_read_in_the_longest_words(place: Path, kind: str) -> None:
    run = opened(place, kind, data=True)
    data = run.data()
    names = data.vocabulary.decode(data.tokens("train")[:2000].tolist())
    assert "苹果" in names
    assert run.vocabulary.counts[run.vocabulary.id("苹果")] == list(data.tokens("train")).count(run.vocabulary.id("苹果"))
    with pytest.raises(ConfigError, match="other pieces"):
        opened(place, kind).data(place / f"{KINDS[kind == 'causal']}-data")


def invoke(*words: str, code: int = 0, text: str | None = None) -> Any:
    done = CliRunner().invoke(app, [*words], input=text)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_take_a_published_model(place: Path, kind: str) -> None:
    model, source = f"hf:{place / kind}", ["--source", f"table:{place / 'lex.tsv'}"]
    data = ["--data", str(place / f"{kind}-data")]
    gold = str(place / "gold.tsv")
    found = json.loads(invoke("eval", model, "--senses", gold, *source, *data, "--json").stdout)
    assert [row["name"] for row in found["rows"]][:3] == ["combined", "substitution", "usual"]
    assert (found["targets"], found["stored"], [one["count"] for one in found["left_out"]]) == (2, False, [1])
    header, *rows = map(
        json.loads, invoke("tag", model, *source, "--format", "jsonl", text="我 吃 苹果 。\n").stdout.splitlines()
    )
    assert header["checkpoint"] == "as published"
    assert [row["read_as"] for row in rows][:3] == ["我", "吃", "苹果"]
    assert len(rows[2]["senses"]) == 2
    nats = None if kind == "masked" else pytest.approx(-score(place, kind, "我 吃", "苹果", ""), rel=1e-4)
    assert rows[2]["nats"] == nats
    scores = json.loads(invoke("eval", model, "--explanations", *source, *data, "--split", "valid", "--json").stdout)
    assert scores["positions"] > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["eval", "MODEL", "--senses", "GOLD", "--method", "share", "--source", "LEX"], "--method substitution or combined"),
        (["eval", "MODEL", "--senses", "GOLD"], "--source FORMAT:PATH"),
        (["eval", "MODEL"], "--senses GOLD, or by --explanations"),
        (["tag", "MODEL", "--method", "lift", "--source", "LEX"], "--method substitution or combined"),
        (["tag", "MODEL", "--source", "LEX", "RAW"], "sememekit segment"),
        (["explain", "MODEL", "我", "--word", "吃", "--source", "LEX"], "sememekit tag"),
        (["explain", "MODEL", "我", "--overlay", "x.json", "--source", "LEX"], "--overlay"),
        (["eval", "MODEL", "--senses", "GOLD", "--source", "LEX", "--data", "OTHER"], "--segmenter hf:"),
    ],
)
def test_what_a_published_model_cannot_do_is_refused_with_the_next_step(place: Path, words: list[str], told: str) -> None:
    (place / "raw.txt").write_text("我吃苹果买电脑人吃梨\n", encoding="utf-8")
    given = {"MODEL": f"hf:{place / 'masked'}", "GOLD": str(place / "gold.tsv"), "LEX": f"table:{place / 'lex.tsv'}"}
    given |= {"RAW": str(place / "raw.txt"), "OTHER": str(place / "causal-data")}
    assert told in invoke(*(given.get(word, word) for word in words), code=1).stderr


def test_models_that_mean_nothing_are_refused(place: Path, tmp_path: Path) -> None:
    def changed(kind: str, name: str, **entries: Any) -> str:
        folder = tmp_path / name
        folder.mkdir()
        for file in (place / kind).iterdir():
            if file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
        for file, values in entries.items():
            path = folder / f"{file}.json"
            path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")
        return f"hf:{folder}"

    with pytest.raises(ConfigError, match="names no mask_token"):
        load_run(changed("masked", "maskless", tokenizer_config={"mask_token": None}))
    with pytest.raises(ConfigError, match="depend on the words that follow"):
        load_run(changed("masked", "ahead", config={"architectures": ["BertLMHeadModel"]}))
    headless = Path(changed("masked", "headless").removeprefix("hf:"))
    transformers.BertForMaskedLM.from_pretrained(headless).bert.save_pretrained(headless)
    with pytest.raises(ConfigError, match="no weights for"):
        load_run(f"hf:{headless}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["english", "chinese"])
def test_gold_of_our_own_is_scored_whole(place: Path, tmp_path: Path, kind: str, language: str) -> None:
    gold, lexicon = tmp_path / "gold.tsv", tmp_path / "lexicon.tsv"
    if language == "chinese":
        gold.write_text(own_gold.CHINESE, encoding="utf-8")
        lexicon.write_text(own_gold.CHINESE_LEXICON, encoding="utf-8")
    else:
        lexicon.write_text(own_gold.ENGLISH_LEXICON, encoding="utf-8")
        (tmp_path / "keys.tsv").write_text(own_gold.ENGLISH, encoding="utf-8")
        page = (Path(__file__).resolve().parents[2] / "docs" / "senses.md").read_text(encoding="utf-8")
        script = page[page.index("awk -F") :].split("\n```")[0]
        shell = script.replace("english.tsv", "lexicon.tsv")
        subprocess.run(["sh", "-c", shell], cwd=tmp_path, check=True)
        assert "bank#n#1" not in gold.read_text(encoding="utf-8")
    typed = ("eval", f"hf:{place / kind}", "--senses", str(gold), "--source", f"table:{lexicon}", "--json")
    found = json.loads(invoke(*typed).stdout)
    assert (found["targets"], found["left_out"]) == (20, [])
    assert [word["senses"] for word in found["words"]] == [2, 2, 2, 2]
    assert {row["name"] for row in found["rows"]} >= {"substitution", "at random"}
