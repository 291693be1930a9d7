"""The ledger in docs/results/README.md is what the results in docs/results/claims give; and how it gets into a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.claims import load_claims, result_names, timing_names
from sememekit.commands._program import app
from sememekit.commands.reproduce import judged
from sememekit.errors import DataError
from sememekit.reports.ledger import BEGIN, END, into_page, ledger

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
AGAIN = "sememekit reproduce report --from docs/results/claims --into docs/results/README.md"


def test_the_page_of_results_has_the_ledger_of_the_results() -> None:
    page = (DOCS / "README.md").read_text(encoding="utf-8")
    found = ledger(judged(Path("nowhere"), list(load_claims()), False, DOCS / "claims"))
    assert into_page(page, found, "README.md") == page, f"write it again: {AGAIN}"


def test_the_page_on_claims_says_what_all_trainings_cost() -> None:
    minutes = {}
    for path in (DOCS / "claims").glob("*.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        if curve := result.get("curve"):  # arms that are measured in two ways share a training
            minutes[result["seed"], json.dumps(curve)] = curve[-1]["cpu_seconds"] / 60
    short = sum(value <= 10 for value in minutes.values())
    said = (
        f"{len(minutes)} trainings in {sum(minutes.values()) / 60:.1f} CPU hours, {short} of them in at most ten minutes each"
    )
    page = (DOCS.parent / "reproducing.md").read_text(encoding="utf-8")
    assert said in " ".join(page.split())


def test_results_that_are_kept_name_no_place_of_a_machine() -> None:
    for path in (DOCS / "claims").glob("*.json"):
        found = re.findall(r"/(?:home|root|work|tmp|mnt|Users)/[^\"\s]*", path.read_text(encoding="utf-8"))
        assert found == [], path.name


def test_results_that_are_kept_belong_to_a_trial_or_a_timing_of_a_claim() -> None:
    """A changed recipe makes other trials; results of the old one are deleted, or someone takes them for those of the claim."""
    kept = {path.name for path in (DOCS / "claims").glob("*.json")}
    tried = [(file, claim) for file, claim in load_claims().values() if claim.small]
    results = {name for file, claim in tried for name in result_names(file, claim)}
    timings = {f"{name}.json" for file, claim in tried for name in timing_names(file, claim)}
    assert kept - results - timings == set()


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    found = ledger(judged(Path("nowhere"), list(load_claims())))
    page = f"# Mine\n\nabove\n{BEGIN}\nbefore this\n{END}\nbelow\n"
    once = into_page(page, found, "x")
    assert once.startswith(f"# Mine\n\nabove\n{BEGIN}\n")
    assert once.endswith(f"\n{END}\nbelow\n")
    assert "before this" not in once
    assert "| sdlm-below-softmax | not run |" in once
    assert into_page(once, found, "x") == once


@pytest.mark.parametrize(
    "page", ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n", f"{BEGIN}\n{END}\n{END}\n"]
)
def test_a_page_without_both_marks_is_refused(page: str) -> None:
    with pytest.raises(DataError, match="x has no place for the ledger; put these two lines into it: <!-- ledger"):
        into_page(page, ledger([]), "x")


def test_a_folder_of_results_that_is_not_there_and_results_of_no_claim(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["reproduce", "report", "--from", str(tmp_path / "none")])
    assert done.exit_code == 1
    assert "no such folder; 'sememekit reproduce run --out DIR' writes results into DIR/results" in done.stderr
    (tmp_path / "softmax-small-1-00000000.json").write_text("{}")
    done = runner.invoke(app, ["reproduce", "report", "--from", str(tmp_path)])
    assert done.exit_code == 0, done.stderr
    assert "1 results in" in done.stderr
    assert "are of other settings than the claims have now and are not counted: softmax-small-1-00000000" in done.stderr
