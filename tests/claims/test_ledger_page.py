"""The ledger in docs/results/README.md is what the results in docs/results/claims give; and how it gets into a page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.claims.chain import result_names, timing_names
from sememekit.claims.claims import load_claims
from sememekit.commands._program import app
from sememekit.errors import DataError
from sememekit.jobs.reproduce import judged
from sememekit.reports.ledger import BEGIN, END, OWN, effect_text, into_page, ledger

DOCS = Path(__file__).resolve().parents[2] / "docs" / "results"
AGAIN = "sememekit reproduce report --from docs/results/claims --into docs/results/README.md"


def test_the_page_of_results_has_the_ledger_of_the_results() -> None:
    page = (DOCS / "README.md").read_text(encoding="utf-8")
    found = ledger(judged(Path("nowhere"), list(load_claims()), False, DOCS / "claims"))
    assert into_page(page, found, "README.md") == page, f"write it again: {AGAIN}"


def test_the_summary_has_figures_of_the_ledger_or_of_the_page_that_it_links() -> None:
    page = (DOCS / "README.md").read_text(encoding="utf-8")
    summary, _, below = page.partition("## What we know so far")[2].partition("## Pages")
    for paragraph in summary.split("\n\n"):
        linked = [(DOCS / name).read_text(encoding="utf-8") for name in re.findall(r"\]\(([\w-]+\.md)\)", paragraph)]
        text = re.sub(r"\(\S+\)|L?STMs?|[A-Z]\w+ et al. 20\d\d|Neubig 20\d\d|WikiText-2", "", " ".join(paragraph.split()))
        for figure in re.findall(r"\d+\.\d+", text):
            known = [figure, f"{float(figure) / 100:.4f}"]  # accuracies of the ledger are shares of 1
            assert any(re.search(rf"(?<![\d.]){known_as}", source) for source in (below, *linked) for known_as in known), figure
        for sentence in re.split(r"(?<=[.;:])\s", text):
            assert len(sentence.split()) <= 25, sentence
            assert len(re.findall(r"\d+\.\d+", sentence)) <= 3, sentence


@pytest.mark.parametrize(
    ("effect", "shown"),
    [
        ((-0.043, -0.06, -0.02), "-4.3 % (-6.0 to -2.0)"),
        ((29.612, 29.612, 29.612), "30.6 times"),
        ((11.0, 10.0, 12.5), "12.0 times (11.0 to 13.5)"),
        ((0.02, None, None), "+2.0 %"),
    ],
)
def test_an_effect_is_a_multiple_where_it_is_large(effect: tuple[float, float | None, float | None], shown: str) -> None:
    assert effect_text(*effect) == shown


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
    assert f"`resources/claims/` has {len(load_claims())} claims" in page


def test_results_that_are_kept_name_no_place_of_a_machine() -> None:
    for path in (DOCS / "claims").glob("*.json"):
        found = re.findall(r"/(?:home|root|work|tmp|mnt|Users)/[^\"\s]*", path.read_text(encoding="utf-8"))
        assert found == [], path.name


def test_results_that_are_kept_belong_to_a_trial_or_a_timing_of_a_claim() -> None:
    """A changed recipe makes other trials; results of the old one are deleted, or they pass for results of the claim."""
    kept = {path.name for path in (DOCS / "claims").glob("*.json")}
    tried = [(file, claim) for file, claim in load_claims().values() if claim.small]
    results = {name for file, claim in tried for name in result_names(file, claim)}
    timings = {name for file, claim in tried for name in timing_names(file, claim)}
    assert kept - results - timings == set()


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    found = ledger(judged(Path("nowhere"), list(load_claims())))
    page = f"# Mine\n\nabove\n{BEGIN}\nbefore this\n{END}\nbelow\n"
    once = into_page(page, found, "x")
    assert once.startswith(f"# Mine\n\nabove\n{BEGIN}\n")
    assert once.endswith(f"\n{END}\nbelow\n")
    assert "before this" not in once
    assert "than with a softmax. `sdlm-below-softmax` | **not run** | no run of softmax and sdlm | -7.0 % |" in once
    assert once.index("### Gu et al. 2018") < once.index("### Yang et al. 2018") < once.index(f"### {OWN}")
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
    assert done.stderr == (
        f"1 not counted in {tmp_path}, of other settings than the claims have now: softmax-small-1-00000000\n"
    )
    (tmp_path / "softmax-small-2-00000000.json").write_text("{}")
    (tmp_path / "softmax-small-3-00000000.json").write_text('{"arm": "soft')
    done = runner.invoke(app, ["reproduce", "report", "--from", str(tmp_path)])
    assert done.stderr == (
        f"2 not counted in {tmp_path}, of other settings than the claims have now: "
        "softmax-small-1-00000000, softmax-small-2-00000000\n"
        f"1 not counted in {tmp_path}, no JSON object: softmax-small-3-00000000\n"
    )


def test_an_out_that_is_not_there_and_an_empty_one_are_errors(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(app, ["reproduce", "report", "--out", str(tmp_path / "none")])
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"--out {tmp_path / 'none'}: no such folder; 'sememekit reproduce run --out DIR'" in done.stderr
    done = runner.invoke(app, ["reproduce", "report", "--out", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"no results in {tmp_path / 'results'}; 'sememekit reproduce run --out DIR'" in done.stderr


def test_tiny_results_that_are_not_counted_are_told(tmp_path: Path) -> None:
    runner = CliRunner()
    file, claim = load_claims()["sdlm-below-softmax"]
    one, two, *_ = result_names(file, claim, seeds=1, tiny=True)
    stored = next((DOCS / "claims").glob(result_names(file, claim, seeds=1)[0]))
    (tmp_path / one).write_bytes(stored.read_bytes())
    done = runner.invoke(app, ["reproduce", "report", "--from", str(tmp_path)])
    assert done.stderr == f"1 not counted in {tmp_path}, tiny, as --tiny shows them: {one.removesuffix('.json')}\n"
    (tmp_path / two).write_bytes(stored.read_bytes())
    done = runner.invoke(app, ["reproduce", "report", "--from", str(tmp_path)])
    names = ", ".join(sorted(name.removesuffix(".json") for name in (one, two)))
    assert done.stderr == f"2 not counted in {tmp_path}, tiny, as --tiny shows them: {names}\n"
    done = runner.invoke(app, ["reproduce", "report", "--from", str(tmp_path), "--tiny"])
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_page_gets_the_ledger_between_its_marks(tmp_path: Path) -> None:
    page, whole = tmp_path / "page.md", tmp_path / "whole.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    typed = ["reproduce", "report", "--from", str(DOCS / "claims"), "--into", str(page), "--markdown", str(whole)]
    done = CliRunner().invoke(app, typed)
    assert (done.exit_code, done.stderr) == (0, ""), "all that stands there is counted, also times"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "\nold\n" not in text
    rows = [line for line in whole.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert [line for line in text.splitlines() if line.startswith("|")] == rows
    assert len(rows) > 100


def test_a_page_that_is_not_there_is_told_with_the_lines_that_it_needs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["reproduce", "report", "--from", str(DOCS / "claims"), "--into", str(page)])
    assert (done.exit_code, page.exists()) == (1, False)
    assert done.stderr.endswith(f"{page} has no place for the ledger; put these two lines into it: {BEGIN} and {END}\n")


def test_a_word_chooses_claims_and_never_for_the_whole_page(tmp_path: Path) -> None:
    runner, results = CliRunner(), ["--from", str(DOCS / "claims")]
    done = runner.invoke(app, ["reproduce", "report", "moc-rank", *results, "--json"])
    assert [claim["name"] for claim in json.loads(done.stdout)["claims"]] == ["moc-rank"]
    done = runner.invoke(app, ["reproduce", "report", "moc-rank", *results, "--into", str(tmp_path / "README.md")])
    assert done.exit_code == 1
    assert "it writes the whole ledger; leave 'moc-rank' out" in " ".join(done.stderr.split())
    done = runner.invoke(app, ["reproduce", "report", "nowhere", *results])
    assert "no claim has 'nowhere'" in " ".join(done.stderr.split())
