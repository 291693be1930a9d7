"""Two systems on the same sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sememekit.analysis.evaluate import evaluate
from sememekit.analysis.written_texts import SCORED_BY, baseline, compare_texts, write_texts_file
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.measure.rouge import PRESETS, rouge
from sememekit.prepare.settings import PreprocessSettings
from tests.small_pairs import PairPlace

REFERENCES = [[f"the {name} sat"] for name in ("cat", "dog", "cow", "pig", "hen")]


def write(path: Path, texts: list[str], references: list[list[str]] = REFERENCES) -> Path:
    write_texts_file(path, ["a source"] * len(texts), [[text] for text in texts], references)
    return path


def test_first_minus_second(tmp_path: Path) -> None:
    references = REFERENCES * 2
    first = write(tmp_path / "1", [own[0] for own in references], references)
    second = write(tmp_path / "2", ["the"] * 10, references)
    report = compare_texts(first, second, "gigaword")
    row = report.differences[0]
    assert (row.name, row.first, row.second) == ("rouge1", 1.0, 0.5)
    assert row.difference.value == pytest.approx(0.5)
    assert row.excludes_zero
    assert report.examples == 10
    same = compare_texts(first, first, "bleu")
    assert [row.difference.value for row in same.differences] == [0.0] * 8
    assert not any(row.excludes_zero for row in same.differences)
    shown = CliRunner().invoke(app, ["compare", str(first), str(second), "--by", "gigaword"])
    assert shown.exit_code == 0
    assert "rouge1" in shown.stdout
    assert "50.00" in shown.stdout
    assert "in per cent" in shown.stdout


def test_differences_are_paired(tmp_path: Path) -> None:
    """Scores that vary from text to text, and a second system that is worse by nearly the same in each."""
    references = [["the cat sat"], ["the dog lay down there"]] * 6
    first = write(tmp_path / "1", ["the cat x", "the dog lay x there"] * 6, references)
    second = write(tmp_path / "2", ["the x x", "the dog x x y"] * 6, references)
    row = compare_texts(first, second, "gigaword").differences[0]
    alone = rouge(["the cat x", "the dog lay x there"] * 6, references, PRESETS["gigaword"])
    assert row.difference.value == pytest.approx(row.first - row.second)
    assert row.first == pytest.approx(alone["rouge1"])
    assert row.difference.low is not None
    assert row.difference.high is not None
    assert row.difference.high - row.difference.low < 0.6 * (alone.values["rouge1"].high - alone.values["rouge1"].low)


def test_the_help_names_every_way_of_scoring() -> None:
    """The help has them as text, since asking for them would import numpy."""
    (option,) = (one for one in get_command(app).commands["compare"].params if one.name == "by")  # type: ignore[attr-defined]
    assert option.help == f"Metric of texts: {', '.join(SCORED_BY[:-1])} or {SCORED_BY[-1]}."


def test_bleu_reads_as_many_texts_as_both_systems_wrote(tmp_path: Path) -> None:
    """Systems with the same best texts do not differ, however many worse ones the second wrote."""
    references = REFERENCES * 3
    best = [own[0] for own in references]
    one, five = tmp_path / "1", tmp_path / "5"
    sources = ["a source"] * len(best)
    write_texts_file(one, sources, [[text] for text in best], references)
    write_texts_file(five, sources, [[text, "x", "y", "z", "w"] for text in best], references)
    for pair in ((one, five), (five, one)):
        report = compare_texts(*pair, "bleu")
        assert "top:1|" in report.signature
        assert [row.difference.value for row in report.differences] == [0.0] * 8
    assert "top:5|" in compare_texts(five, five, "bleu").signature


def test_few_texts_have_differences_without_limits(tmp_path: Path) -> None:
    first, second = write(tmp_path / "1", [own[0] for own in REFERENCES]), write(tmp_path / "2", ["the"] * 5)
    row = compare_texts(first, second, "gigaword").differences[0]
    assert row.difference.value == pytest.approx(0.5)
    assert (row.difference.low, row.difference.high, row.excludes_zero) == (None, None, None)
    shown = CliRunner().invoke(app, ["compare", str(first), str(second), "--by", "gigaword"])
    assert "–" in shown.stdout
    assert "nan" not in shown.stdout


def test_a_baseline_can_be_compared(tmp_path: Path) -> None:
    rows = [{"text": f"{'xyz'[i % 3] * (i // 3 + 3)} two three four", "summary": "two three"} for i in range(40)]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    preprocess("gigaword", tmp_path / "all.jsonl", tmp_path / "data")
    for number in (2, 3):
        baseline(tmp_path / "data", split="train", lead=f"{number}-words", texts=tmp_path / f"{number}.jsonl")
    report = compare_texts(tmp_path / "3.jsonl", tmp_path / "2.jsonl", "gigaword")
    assert report.differences[0].difference.value == pytest.approx(4 / 5 - 2 / 4)


@pytest.mark.parametrize(
    "typed", ["--split=valid", "--data=x", "--batch-size=2", "--which=last", "--device=cpu", "--csv=x.csv"]
)
def test_options_of_runs_are_refused_with_texts(tmp_path: Path, typed: str) -> None:
    first = write(tmp_path / "1", ["a"] * 5)
    both = ["compare", str(first), str(first), "--by", "gigaword", "--debug", "--trust-code"]
    assert CliRunner().invoke(app, both).exit_code == 0, "options that every command has"
    done = CliRunner().invoke(app, [*both, typed])
    assert done.exit_code == 2
    assert f"{typed.partition('=')[0]} is for runs, and {first} is a file of texts; leave it out" in " ".join(
        done.stderr.split()
    )


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    first = write(tmp_path / "1", ["a"] * 5)
    with pytest.raises(ConfigError, match="--by 'meteor': allowed are gigaword, duc"):
        compare_texts(first, first, "meteor")
    with pytest.raises(DataError, match="line 1 has another source or other references"):
        compare_texts(first, write(tmp_path / "2", ["a"] * 5, [["x"]] * 5), "gigaword")
    with pytest.raises(DataError, match=r"has 5 texts and .* has 4"):
        compare_texts(first, write(tmp_path / "3", ["a"] * 4, REFERENCES[:4]), "gigaword")
    for other in (
        '"texts": ["b"]',
        '"texts": "b", "references": ["b"]',
        '"texts": {"b": 1}, "references": ["b"]',
        f'"x": {"[" * 99_999}',
    ):
        (tmp_path / "4").write_text('{"source": "a", ' + other + "}\n")
        with pytest.raises(DataError, match=r"4:1: not an object with source, texts and references"):
            compare_texts(first, tmp_path / "4", "gigaword")
    with pytest.raises(DataError, match="cannot be read"):
        compare_texts(first, tmp_path / "nowhere", "gigaword")
    (tmp_path / "5").write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        compare_texts(first, tmp_path / "5", "gigaword")


def test_a_run_on_an_unseen_test_set(tmp_path: Path) -> None:
    """From a run to a test set of its words, to the texts of two of its snapshots, to their difference."""
    place = PairPlace(tmp_path)
    train(place.table(schedule__epochs=1), tmp_path / "run")
    rows = [{"text": "我 吃 苹果 。 火星 吃 梨 。", "references": ["吃 梨", "吃 火星"]}] * 3
    (tmp_path / "unseen.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    preprocess("duc", tmp_path / "unseen.jsonl", tmp_path / "unseen", PreprocessSettings(vocabulary=tmp_path / "run"))
    for which in ("best", "last"):
        report = evaluate(tmp_path / "run", data=tmp_path / "unseen", which=which, texts=tmp_path / which).model_dump()
        assert report["examples"] == 3
        assert "unit:character|" in report["signature"], "what duc usually takes drops every letter of Chinese"
        assert "refs:2/best" in report["signature"]
        assert "min_length:30" in report["signature"], "the rules of the data set hold for the run"
    with pytest.raises(DataError, match="score them by characters"):
        compare_texts(tmp_path / "best", tmp_path / "last", "duc")
    assert compare_texts(tmp_path / "best", tmp_path / "last", "lcsts-characters").differences[0].difference.value == 0
    assert json.loads((tmp_path / "best").read_text().splitlines()[0])["source"] == "我 吃 苹果 。 火星 吃 梨 。"
