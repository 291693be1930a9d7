"""Rating sheets: blind, read back, and what the report then says."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sememekit import attack_classifier as attack_in_python
from sememekit.attack.folder import AttackFolder
from sememekit.attack.ratings import ANSWERS, COLUMNS, items_of, sheet
from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs.attack import attack
from sememekit.reports.attack import rate, rate_rows
from sememekit.runs.attacks.adapters import adapted
from sememekit.runs.attacks.proxies import check_judge
from sememekit.runs.attacks.victims import wrap
from tests.attack.toys import LABELS, predict
from tests.commands.attacks import VICTIM, run, table_of
from tests.pages import check_page


def filled(out: Path, to: Path, answer: Any, delimiter: str = ",") -> Path:
    """The sheet of an attack with ``answer(row, result, place of the adversarial text)`` in each row."""
    results = {result.fields: result for result in AttackFolder.open(out).results().values()}
    rows = list(csv.DictReader(StringIO((out / "ratings.csv").read_text(encoding="utf-8-sig"))))
    for row in rows:
        place = 2 if (row["text 1"],) in results else 1
        original = (row[f"text {3 - place}"],)
        row.update(zip(ANSWERS, answer(row, results[original], place), strict=True))
    with to.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return to


def by_side(place: int, same: str, label: str, fluent: str, original: str) -> tuple[str, ...]:
    labels, fluents = ({place: adversarial, 3 - place: other} for adversarial, other in ((label, original), (fluent, "yes")))
    return same, labels[1], labels[2], fluents[1], fluents[2]


def test_a_sheet_is_blind_and_the_first_rows_are_a_sample(files: dict[str, Path]) -> None:
    run(files, files["out"])
    results = AttackFolder.open(files["out"]).results()
    won = [result for result in results.values() if result.adversarial is not None]
    rows = list(csv.reader(StringIO((files["out"] / "ratings.csv").read_text(encoding="utf-8-sig"))))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) - 1 == len(won) > 3
    assert all(row[3:] == [""] * 5 for row in rows[1:])
    assert {frozenset(row[1:3]) for row in rows[1:]} == {
        frozenset((*one.fields, *one.adversarial)) for one in won if one.adversarial
    }
    many = [one.model_copy(update={"index": index}) for index in range(50) for one in won]
    items = items_of(many)
    assert len(items) == 200
    assert 70 < sum(item.swapped for item in items) < 130, "either text stands first"
    assert sheet(items) == sheet(items_of(reversed(many)))
    assert len(Counter(item.result.index for item in items[:60])) > 30, "not in the order of the data"
    text = (files["out"] / "ratings.html").read_text(encoding="utf-8")
    check_page(text)
    for one in won:
        assert one.fields[0] in text
        assert (one.adversarial or ("",))[0] in text
    assert "<ins>" not in text
    assert "success" not in text


def test_ratings_give_validity_and_success_times_validity(files: dict[str, Path], tmp_path: Path) -> None:
    before = run(files, files["out"])
    won = before.rates.outcomes["success"]
    first = filled(
        files["out"], tmp_path / "one.csv", lambda row, result, place: by_side(place, "yes", result.label, "yes", result.label)
    )
    report = rate(files["out"], [first])
    assert report.validity is not None
    assert (report.validity.rated, report.validity.ratings, report.validity.valid.value) == (won, won, 1.0)
    assert report.validity.valid_success.value == before.rates.success_rate.value
    assert AttackFolder.open(files["out"]).report() == report

    def strict(row: dict[str, str], result: Any, place: int) -> tuple[str, ...]:
        other = LABELS[1 - LABELS.index(result.label)]
        return (
            by_side(place, "No", result.label, "y", other)
            if result.index % 2
            else by_side(place, "yes", other, "0", result.label)
        )

    second = filled(files["out"], tmp_path / "two.csv", strict, delimiter=";")
    report = rate(files["out"], [second])
    odd = sum(result.index % 2 for result in AttackFolder.open(files["out"]).results().values() if result.adversarial)
    assert report.validity is not None
    assert report.validity.meaning.value == pytest.approx(1 - odd / won)
    assert report.validity.label.value == pytest.approx(odd / won)
    assert report.validity.fluent.value == pytest.approx(odd / won)
    assert report.validity.originals.value == pytest.approx(1 - odd / won)
    assert report.validity.valid_success.value == 0.0
    both = rate(files["out"], [first, second]).validity
    assert both is not None
    assert (both.rated, both.ratings, both.valid.value) == (won, 2 * won, 0.0), "a tie is a no"
    third = Path(shutil.copy(first, tmp_path / "three.csv"))  # a rater who agrees on seven texts
    three = rate(files["out"], [first, third, second])
    assert three.validity is not None
    assert three.validity.valid.value == 1.0
    rows = dict(rate_rows(three))
    assert rows["successes rated"] == f"{won} of {won} ({3 * won} rows of 3 raters)"
    assert rows["success rate times validity"].startswith(f"{100 * (before.rates.success_rate.value or 0):.1f} %")
    assert "success rate times validity at 100 queries" in rows
    assert "success rate times validity" in (files["out"] / "report.html").read_text(encoding="utf-8")


def test_a_sheet_or_a_row_that_is_given_twice_counts_once_and_raters_are_compared(
    files: dict[str, Path], tmp_path: Path
) -> None:
    before = run(files, files["out"])
    won = before.rates.outcomes["success"]
    first = filled(
        files["out"], tmp_path / "one.csv", lambda row, result, place: by_side(place, "yes", result.label, "yes", result.label)
    )
    assert dict(rate_rows(before))["validity of successes"] == "not rated; a success need not keep the meaning"
    twice = rate(files["out"], [first, first]).validity
    assert twice is not None
    assert (twice.ratings, twice.raters, twice.agreement) == (won, 1, {})
    assert twice.remarks == (f"{first}: the answers of {first} once more, which count as one rater",)
    rows = first.read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "rows.csv").write_text("".join([*rows, *rows[1:3]]), encoding="utf-8")
    repeated = rate(files["out"], [tmp_path / "rows.csv"]).validity
    assert repeated is not None
    assert (repeated.ratings, repeated.remarks) == (won, (f"{tmp_path}/rows.csv: 2 rows stand there twice, and count once",))
    other = rows[1].replace("yes", "no", 1)
    (tmp_path / "rows.csv").write_text("".join([*rows, other]), encoding="utf-8")
    with pytest.raises(DataError, match=r"rows\.csv:\d+: item '\w+' was answered otherwise in an earlier row"):
        rate(files["out"], [tmp_path / "rows.csv"])
    second = filled(
        files["out"],
        tmp_path / "two.csv",
        lambda row, result, place: by_side(place, "no" if result.index % 2 else "yes", result.label, "yes", result.label),
    )
    report = rate(files["out"], [first, second])
    assert report.validity is not None
    odd = sum(result.index % 2 for result in AttackFolder.open(files["out"]).results().values() if result.adversarial)
    yes, no = 2 * won - odd, odd  # of all answers; two of each unit
    assert report.validity.agreement["meaning"] == pytest.approx(1 - (2 * won - 1) * 2 * odd / (2 * yes * no))
    assert report.validity.agreement["label"] is None
    shown = dict(rate_rows(report))
    assert next(iter(shown)) == "success rate times validity"
    assert shown["agreement of raters, label (Krippendorff's alpha)"] == "– (all answers equal)"


def test_what_is_no_rating_is_refused_by_line(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, files["out"])
    with pytest.raises(DataError, match=r"ratings\.csv: no row has answers$"):
        rate(files["out"], [files["out"] / "ratings.csv"])
    whole = filled(files["out"], tmp_path / "r.csv", lambda row, result, place: ("yes", "no", "yes", "yes", "no")).read_text(
        "utf-8"
    )
    for old, new, message in (
        (",yes,no,", ",maybe,no,", r"r\.csv:2: same meaning is one of yes, y, 1, no, n, 0, given 'maybe'"),
        (",yes,no,", ",yes,bad,", r"r\.csv:2: label 1 is one of no, yes, given 'bad'"),
        (",yes,no,yes,", ",yes,no,,", r"r\.csv:2: label 2 is one of no, yes, given ''"),
        ("same meaning", "meaning", "no column 'same meaning'; fill in ratings.csv or ratings.html"),
        ("\n", "\nx", r"r\.csv:2: item 'x\w+' is not on the sheet of this attack"),
    ):
        (tmp_path / "r.csv").write_text(whole.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(DataError, match=message):
            rate(files["out"], [tmp_path / "r.csv"])
    (files["out"] / "report.json").unlink()
    with pytest.raises(CheckpointError, match="is unfinished"):
        rate(files["out"], [tmp_path / "r.csv"])


def test_the_command_takes_sheets_and_keeps_those_that_are_filled_in(files: dict[str, Path], tmp_path: Path) -> None:
    run(files, files["out"])
    sheet_file = filled(
        files["out"], files["out"] / "ratings.csv", lambda row, result, place: by_side(place, "yes", "no", "yes", "no")
    )
    kept = sheet_file.read_bytes()
    attack(VICTIM, out=files["out"], resume=True)
    assert sheet_file.read_bytes() == kept
    done = CliRunner().invoke(app, ["attack", "--out", str(files["out"]), "--ratings", str(sheet_file), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["validity"]["rated"] == len(items_of(AttackFolder.open(files["out"]).results().values()))
    done = CliRunner().invoke(app, ["attack", "--out", str(files["out"]), "--ratings", str(sheet_file), "--resume"])
    assert done.exit_code == 2
    assert "no --resume" in done.output
    table = table_of(files)
    texts = [line.split("\t") for line in files["data"].read_text(encoding="utf-8").splitlines() if line.endswith(LABELS)]
    settings = {key: table[key] for key in ("search", "candidates")}
    attack_in_python(predict, *zip(*texts, strict=True), names=LABELS, settings=settings, out=tmp_path / "python")
    assert (tmp_path / "python" / "ratings.html").is_file()


def judge(texts: list[str]) -> np.ndarray:
    """A second classifier of the toys with one more label; it says yes to every text with "good"."""
    yes = np.array([0.8 if "good" in text else 0.1 for text in texts])
    return np.stack([0.9 - yes, yes, np.full(len(texts), 0.1)], axis=1)


judge.labels = ("no", "yes", "maybe")  # type: ignore[attr-defined]
JUDGE = "tests.commands.test_attack_ratings:judge"


def test_a_second_model_is_a_proxy_and_agrees_with_raters(files: dict[str, Path], tmp_path: Path) -> None:
    report = run(files, files["out"], judge=JUDGE)
    won = [one for one in AttackFolder.open(files["out"]).results().values() if one.adversarial]
    [proxy] = report.proxies
    kept = {one.index: (one.label == "yes") == ("good" in (one.adversarial or ("",))[0]) for one in won}
    assert {index: score > 0 for index, score in proxy.scores.items()} == kept
    assert 0 < sum(kept.values()) < len(kept)
    assert proxy.after.value == sum(kept.values()) / len(kept)
    assert proxy.before.value == sum((one.label == "yes") == ("good" in one.fields[0]) for one in won) / len(won)
    assert proxy.before.value != proxy.after.value
    rows = dict(rate_rows(report))
    assert rows[f"proxy, no rating: label by {JUDGE}"].startswith("originals ")
    assert not any("raters" in name for name in rows)

    def as_judged(row: dict[str, str], result: Any, place: int) -> tuple[str, ...]:
        label = result.label if kept[result.index] else LABELS[1 - LABELS.index(result.label)]
        return by_side(place, "yes", label, "yes", result.label)

    rated = rate(files["out"], [filled(files["out"], tmp_path / "r.csv", as_judged)])
    assert {name: found.value for name, found in rated.proxies[0].areas.items()} == {"label": 1.0, "valid": 1.0}
    line = "proxy label, area for label by raters"
    assert dict(rate_rows(rated))[line] == f"1 (1 to 1), {len(won)} texts"
    assert line in (files["out"] / "report.html").read_text("utf-8")


def test_what_is_no_second_model_is_refused_before_the_attack(files: dict[str, Path]) -> None:
    settings = {key: table_of(files)[key] for key in ("search", "candidates")}
    with pytest.raises(ConfigError, match='judge="predict": it is the victim itself; name a classifier'):
        attack_in_python(predict, ["a bad film"], ["no"], names=LABELS, judge=predict, settings=settings)
    found = wrap(adapted(judge), name="other")
    with pytest.raises(ConfigError, match="its labels are no, yes, maybe; name a classifier that also has never"):
        check_judge(found, wrap(adapted(predict), ("never", "no"), name="v"))


def test_similarity_and_perplexity_are_proxies(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("film 1 0\nmovie 0.9 0.1\nbad 0 1\npoor 0.5 1\ngood 0.2 1\nfine -1 1\n", encoding="utf-8")
    off = {"path": str(tmp_path / "v.txt"), "least": -1, "each": -1}
    plain = run(files, tmp_path / "plain")
    report = run(files, files["out"], table=table_of(files, constraints__similarity=off))
    assert report.rates == plain.rates, "it is only measured"
    [proxy] = report.proxies
    assert (proxy.name, proxy.source) == ("similarity", "v.txt")
    assert min(proxy.scores.values()) < max(proxy.scores.values()) <= 1.0
    assert proxy.after.value == pytest.approx(sum(proxy.scores.values()) / len(proxy.scores))
    assert any("at least -1, vectors v.txt" in note for note in report.notes)
