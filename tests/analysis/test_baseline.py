"""The beginning of the source as a headline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.analysis import written_texts
from sememekit.analysis.written_texts import baseline, lead_of
from sememekit.commands._program import app
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.small_examples import write_pairs


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    names = [chr(ord("a") + number % 26) * (number // 26 + 3) for number in range(40)]
    rows = [{"text": f"{name} two three four five six seven eight nine", "summary": f"{name} Two, nine"} for name in names]
    (folder / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    preprocess("gigaword", folder / "all.jsonl", folder / "data")
    return folder / "data"


def test_what_is_taken() -> None:
    source = ["新", "世纪", "的", "讲话"]
    assert lead_of(source, "2-words") == "新 世纪"
    assert lead_of(source, "4-characters") == "新世纪的"
    assert lead_of(source, "8-bytes") == "新 世", "bytes of a torn character are dropped"
    for rule in ("8", "0-words", "8-lines", ""):
        with pytest.raises(ConfigError, match="give N-words, N-bytes or N-characters"):
            lead_of(source, rule)


def test_the_custom_of_the_data_set(pairs: Path) -> None:
    report = baseline(pairs)
    assert (report.lead, report.examples) == ("8-words", 2)
    assert report.scores[0].values[0].value == pytest.approx(2 * 2 / (8 + 3))
    assert "stem:porter" in report.scores[0].signature
    assert baseline(pairs, lead="2-words").scores[0].values[0].value == pytest.approx(4 / 5)
    signature = report.scores[0].signature
    assert baseline(pairs, split="valid").scores[0].signature != signature, "other references"
    assert baseline(pairs, lead="2-words").scores[0].signature == signature, "the lead is what is scored"
    other = pairs.with_name("words")
    preprocess("gigaword", pairs.with_name("all.jsonl"), other, PreprocessSettings(max_vocabulary=5))
    assert PreparedData.open(other).vocabulary.fingerprint != PreparedData.open(pairs).vocabulary.fingerprint
    assert baseline(other).scores[0].signature == signature, "a smaller vocabulary changes no reference"
    by_two = baseline(pairs, rouge_by=["lcsts-characters", "gigaword"])
    assert [scores.preset for scores in by_two.scores] == ["lcsts-characters", "gigaword"]


def test_on_the_command_line(pairs: Path) -> None:
    shown = CliRunner().invoke(app, ["eval", str(pairs), "--baseline", "lead", "--split", "valid"])
    assert shown.exit_code == 0
    assert "in per cent: gigaword" in shown.stdout
    assert "metric:rouge|unit:word" in shown.stdout
    found = json.loads(CliRunner().invoke(app, ["eval", str(pairs), "--baseline", "lead", "--json"]).stdout)
    assert found["scores"][0]["values"][0]["value"] == pytest.approx(4 / 11)
    former = CliRunner().invoke(app, ["baseline", str(pairs), "--split", "valid"])
    assert (former.exit_code, former.stdout) == (0, shown.stdout), "the subcommand of this name became an option"


def test_what_has_no_baseline(pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--rouge 'bleu': allowed are gigaword, duc"):
        baseline(pairs, rouge_by=["bleu"])
    preprocess("snli", write_pairs(tmp_path / "snli"), tmp_path / "nli")
    with pytest.raises(DataError, match="snli has no references; prepare pairs with"):
        baseline(tmp_path / "nli")
    (tmp_path / "text.txt").write_text("the dog sleeps\n" * 60)
    preprocess("plain", tmp_path / "text.txt", tmp_path / "plain", PreprocessSettings(segmenter="none"))
    with pytest.raises(DataError, match="plain has no references; prepare pairs with"):
        baseline(tmp_path / "plain")
    monkeypatch.setattr(written_texts, "LEADS", {})
    with pytest.raises(ConfigError, match="--lead is missing: gigaword has no default"):
        baseline(pairs)
    monkeypatch.setattr(written_texts, "PRESETS_OF_DATASETS", {})
    with pytest.raises(ConfigError, match="gigaword has no usual ROUGE"):
        baseline(pairs, lead="1-words")
