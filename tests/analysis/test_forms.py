"""Models of data in lower case with one word for numbers: what is typed in is read as the data were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.analysis.explanations.lattice import explain_lattice
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.score import score
from sememekit.errors import ConfigError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.generation import generate
from sememekit.runs.lattices import open_reader, segment_lines

LINES = ("We paid 12 Dollars .", "They paid 7.5 Marks .", "We sold 3 Boats .", "They sold 1,000 Cows .") * 12
TYPED = ("WE sold 99.9% marks .", "They PAID N dollars .", "We paid 5 zebras .")


def prepared(folder: Path, **options: Any) -> Path:
    (folder / "in").mkdir(parents=True)
    for split, lines in (("train", LINES), ("valid", LINES[:4]), ("test", TYPED)):
        (folder / "in" / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    preprocess("plain", folder / "in", folder / "data", PreprocessSettings(lower=True, numbers_to="N", **options))
    return folder / "data"


def plan(data: Path, **tables: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "data": {"path": str(data)},
        "task": {"embedding_size": 6, "batch_size": 4},
        "encoder": {"name": "lstm", "hidden_size": 6},
        "optimizer": {"name": "adam", "learning_rate": 0.02, "clip": 1.0},
        "schedule": {"epochs": 2},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
    }
    return {**plain, **tables}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forms")
    train(
        plan(prepared(folder, end_of_sentence=False), task={"embedding_size": 6, "batch_size": 4, "chunk_length": 5}),
        folder / "run",
    )
    return folder / "run"


def lattice(folder: Path, **options: Any) -> Path:
    data = prepared(folder, **options)
    task = {"name": "lattice", "embedding_size": 6, "sub_size": 5, "longest_chunk": 2, "batch_size": 8}
    train(plan(data, task=task, encoder={"name": "lattice_lstm", "hidden_size": 6}), folder / "run")
    return folder / "run"


def test_scores_of_the_raw_text_are_those_of_the_prepared_one(run: Path) -> None:
    rows = list(score(run, TYPED, carry=True))
    assert [(row.token, row.read_as) for row in rows[:5]] == [
        ("WE", "we"), ("sold", "sold"), ("99.9%", "N"), ("marks", "marks"), (".", "."),
    ]  # fmt: skip
    assert [row.read_as for row in rows if row.token in ("N", "zebras", "PAID")] == ["paid", "N", "<unk>"]
    ready = ["we sold N marks .", "they paid N dollars .", "we paid N zebras ."]
    assert [row.nats for row in rows] == [row.nats for row in score(run, ready, carry=True)]
    report = evaluate_ppl(run, split="test", batch_size=1, device="cpu")
    given = [row.nats for row in rows if row.nats is not None]
    assert len(given) == report.tokens
    assert sum(given) == pytest.approx(report.nats, rel=1e-6)


def test_raw_and_prepared_text_are_the_same_prompt_and_context(run: Path) -> None:
    assert generate(run, "WE Sold 41", num_tokens=4) == generate(run, "we sold N", num_tokens=4)
    raw, ready = explain(run, "WE Sold 41"), explain(run, "we sold N")
    assert [(word.word, word.read_as, word.known) for word in raw.context] == [
        ("WE", "we", True), ("Sold", "sold", True), ("41", "N", True),
    ]  # fmt: skip
    assert raw.words == ready.words
    nats = AttackLanguageModel(run, "cpu")
    first, second = nats([["WE", "Sold", "41"], ["we", "sold", "N"]])
    assert first == pytest.approx(second, rel=1e-6), "two rows of a batch may differ in their last bits"


@pytest.mark.parametrize("segmenter", ["none", "characters", "sentencepiece"])
def test_a_lattice_reads_the_form_and_writes_what_was_written(segmenter: str, tmp_path: Path) -> None:
    options = {"pieces": 26} if segmenter == "sentencepiece" else {}
    path = lattice(tmp_path, segmenter=segmenter, chunks=10, chunk_length=2, **options)
    reader = open_reader(path, "segment")
    for line in TYPED:
        tokens = reader.tokens(line)
        joined = (" " if segmenter == "none" else "").join(token.written for token in tokens)
        assert joined.split() == (line.split() if segmenter == "none" else [line.replace(" ", "")])
        assert all(token.read == token.read.lower() or token.read == "N" for token in tokens), tokens
    stored = preprocess("plain", tmp_path / "in", tmp_path / "again", PreprocessSettings(vocabulary=path))
    assert stored.signature.splits["test"].tokens == sum(len(reader.tokens(line)) + 1 for line in TYPED)
    raw, ready = (reader.read([line])[0][0] for line in (TYPED[0], "we sold N marks ."))
    assert raw.read_as == ready.read_as
    assert raw.nats == ready.nats
    shown = explain_lattice(path, TYPED[0]).sentences[0]
    assert "".join(token.text for token in shown.tokens).startswith("WE")
    if reader.finds_words:
        words = next(iter(segment_lines(reader, [TYPED[0]])))
        assert "".join(words) == TYPED[0].replace(" ", "")


def test_pieces_keep_characters_that_their_model_drops(tmp_path: Path) -> None:
    """SentencePiece takes them for blanks at both ends of a line: they stay in the text, and nothing after them moves."""
    path = lattice(tmp_path, segmenter="sentencepiece", pieces=26, chunks=10, chunk_length=2)
    reader = open_reader(path, "segment")
    for plain in ("we sold 41", "a"):
        bare = reader.tokens(plain)
        for line in (f"\u200b{plain}", f"{plain}\ufeff", f"\ufffd{plain}\u200e"):
            tokens = reader.tokens(line)
            assert "".join(token.written for token in tokens) == line.replace(" ", "")
            assert [token.written.strip("\u200b\u200e\ufeff\ufffd") for token in tokens] == [token.written for token in bare]
            assert ["".join(words) for words in segment_lines(reader, [line])] == [line.replace(" ", "")]
    assert [token.after_blank for token in reader.tokens("we\u200b sold")] == [
        token.after_blank for token in reader.tokens("we sold")
    ]
    assert list(segment_lines(reader, ["\u200b\ufeff", "", "a"])) == [["\u200b\ufeff"], [], ["a"]]


def test_words_of_such_data_are_for_plain_text_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("We paid 3 .\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--numbers-to M: .*run writes numbers as N; leave it out"):
        preprocess("plain", tmp_path / "more.txt", tmp_path / "out", PreprocessSettings(vocabulary=run, numbers_to="M"))
    with pytest.raises(ConfigError, match=r"in another form \(lower case; numbers to N\), and sst2 has rules of its own"):
        preprocess("sst2", None, tmp_path / "out", PreprocessSettings(vocabulary=run), files={"test": [tmp_path / "more.txt"]})
