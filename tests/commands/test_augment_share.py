"""``data.augment_share``: how much of what fooled another model is learned from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sememekit.errors import DataError
from sememekit.jobs.train import train
from sememekit.reports.card import model_card
from sememekit.runs.augment import augmented, kept
from sememekit.training import EpochReport, Report, RunFolder
from tests.small_examples import ExamplePlace


@pytest.mark.parametrize(("share", "added"), [(0.001, 1), (0.05, 3), (0.1, 6), (1.0, 12)])
def test_a_run_learns_from_the_share_that_was_asked_for(tmp_path: Path, share: float, added: int) -> None:
    place = ExamplePlace(tmp_path / "place")
    rows = [f"a man stands by wall {number} .\ta man runs .\tneutral\n" for number in range(12)]
    (tmp_path / "more.tsv").write_text("".join(rows), encoding="utf-8")
    table = place.table(schedule__epochs=1, data__augment=str(tmp_path / "more.tsv"), data__augment_share=share)
    reports: list[Report] = []
    remarks: list[str] = []
    train(table, tmp_path / "run", on_report=reports.append, on_remark=remarks.append)
    (epoch,) = [report for report in reports if isinstance(report, EpochReport)]
    assert round(epoch.seconds * epoch.tokens_per_second) == len(place.pairs.examples("train")) + added
    [told] = [remark for remark in remarks if remark.startswith("augment: ")]
    assert told.startswith(f"augment: {added} of 12 added to ")
    assert told.endswith(f"(augment_share {share:g})")
    assert epoch.augmented == added
    assert f"; {added} training examples added by --augment; 1 epochs" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert f"training examples added by `--augment`: {added}." in model_card(tmp_path / "run")
    train({**table, "schedule": {"epochs": 2}}, tmp_path / "run", resume=True)
    assert RunFolder.open(tmp_path / "run").metrics()[-1].get("augmented", added) == added


def test_a_sample_has_each_text_once_in_the_order_of_the_file_and_follows_the_seed(tmp_path: Path) -> None:
    """The numbers of the sample are part of what a seed means."""
    data = ExamplePlace(tmp_path / "place").pairs
    texts = [" ".join(["the girl runs"] * (number + 1)) for number in range(12)]
    labels = ["neutral", "entailment", "contradiction"] * 4
    rows = [f"{text}\ta man runs .\t{label}\n" for text, label in zip(texts, labels, strict=True)]
    more = tmp_path / "more.tsv"
    more.write_text("".join(rows), encoding="utf-8")
    before = data.examples("train")

    def added(share: float, seed: int) -> list[int]:
        """The numbers of the texts that were added."""
        examples = augmented(data, more, share, seed).examples("train")
        found = []
        for number in range(len(before), len(examples)):
            premise, hypothesis = (data.vocabulary.decode(examples.text(number, side)) for side in (0, 1))
            found.append(texts.index(" ".join(premise)))
            assert hypothesis == ["a", "man", "runs", "."]
            assert data.signature.examples is not None
            assert data.signature.examples.labels is not None
            assert data.signature.examples.labels[int(examples.labels[number])] == labels[found[-1]]
        assert examples.text(3, 1).tolist() == before.text(3, 1).tolist()
        return found

    assert added(12 / len(before), 1) == list(range(12))
    assert [added(4 / len(before), seed) for seed in (1, 2)] == [[4, 5, 10, 11], [2, 4, 8, 10]]
    jsonl = kept(data, more).decode()
    assert jsonl.splitlines()[1] == json.dumps({"premise": texts[1], "hypothesis": "a man runs .", "label": "entailment"})
    (tmp_path / "more.jsonl").write_text(jsonl, encoding="utf-8")
    assert kept(data, tmp_path / "more.jsonl").decode() == jsonl


def test_a_folder_of_an_attack_is_told_which_file_of_it_is_learned_from(tmp_path: Path) -> None:
    table = ExamplePlace(tmp_path / "place").table(data__augment=str(tmp_path))
    with pytest.raises(DataError, match=r"--augment .*: a folder, where a file is needed; give examples.jsonl of an attack"):
        train(table, tmp_path / "run")
    (tmp_path / "examples.jsonl").touch()
    with pytest.raises(DataError, match=rf"are in --augment {tmp_path}/examples.jsonl$"):
        train(table, tmp_path / "run")
    assert not (tmp_path / "run").exists()
