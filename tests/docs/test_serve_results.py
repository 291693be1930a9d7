"""Every figure of the tables in docs/results/serve.md is in the lines that benchmarks/serve_load.py wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = (RESULTS / "serve.md").read_text(encoding="utf-8")


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESULTS / "serve" / name).read_text(encoding="utf-8").splitlines()]


LINES = lines("load.jsonl")


def found(measure: str, **values: object) -> dict[str, Any]:
    """The one line of a measure with these values."""
    (line,) = (one for one in LINES if one["measure"] == measure and values.items() <= one.items())
    return line


def row(name: str, line: dict[str, Any]) -> list[str]:
    """A row of the first table."""
    ms = line["ms"]
    return [name, f"{ms['p50']:,.0f}", f"{ms['p95']:,.0f}", f"{line['a second']:.0f}" if "a second" in line else "–"]


def expected() -> list[list[str]]:
    rows = [
        row("a keystroke, before", found("keystroke", checkout="before")),
        row("a keystroke", found("keystroke", checkout="now")),
        row("a keystroke until Chromium has drawn the answer", found("page")),
    ]
    for path in ("next-words", "score"):
        name, of = f"`{path}`, 50 clients", {"path": path, "clients": 50}
        rows += [
            row(f"{name}, each another text", found("load", **of, slow=0, texts="different")),
            row(f"{name}, 20 slow clients beside them", found("load", **of, slow=20, texts="different")),
            row(f"{name}, all the same text", found("load", **of, slow=0, texts="one")),
        ]
    return rows


def further() -> str:
    """The second table: further runs of the keystroke."""
    rows = ["| load average | before, p95, ms | p95, ms |", "|---|---|---|"]
    for machine, before, now in zip(*(lines("further.jsonl")[start::3] for start in range(3)), strict=True):
        assert (machine["measure"], before["checkout"], now["checkout"]) == ("machine", "before", "now")
        rows.append(f"| {machine['load_average'][0]:.1f} | {before['ms']['p95']:.0f} | {now['ms']['p95']:.0f} |")
    return "\n".join(rows)


def test_further_runs_are_those_of_the_benchmark() -> None:
    assert further() in PAGE
    met = [one["ms"]["p95"] < 100 for one in lines("further.jsonl") if one.get("checkout") == "now"]
    assert f"{('None', 'One', 'Two', 'Three', 'Four')[sum(met)]} runs meet the goal" in PAGE
    assert met[-1]


def test_the_rows_of_the_table_are_those_of_the_benchmark() -> None:
    table = PAGE[PAGE.index("| measured |") :].split("\n\n")[0].splitlines()[2:]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table] == expected()


def test_the_sentences_have_the_figures_of_the_benchmark() -> None:
    text = " ".join(PAGE.split())
    before, now = found("keystroke", checkout="before"), found("keystroke", checkout="now")
    memory, batch, machine = found("memory"), found("batch")["ms"], found("machine")
    for part in (
        f"the 95th percentile is {now['ms']['p95']:.0f} ms, before it was {before['ms']['p95']:.0f} ms",
        f"computed {now['computed']:.0f} ms for a keystroke, and {before['computed']:.0f} ms before",
        f"Memory is {memory['before']:.0f} MB before and after {memory['requests']:,} requests",
        f"{batch['alone']:.1f} ms a text alone and {batch['together']:.1f} ms in a batch of eight",
        f"changes the nats of a text by {batch['nats differ by']:.1e}",
        f"a load of {machine['load_average'][0]:.0f}",
    ):
        assert part in text, part


def test_no_request_was_refused_and_no_other_figure_stands_on_the_page() -> None:
    assert all(line["refused"] == 0 for line in LINES if line["measure"] == "load")
    shown = set(re.findall(r"(?<![\d,.])\d(?:[\d,.]*\d)? (?:ms|MB)\b", PAGE))
    batch, memory = found("batch")["ms"], found("memory")
    known = {f"{line['ms'][key]:,.0f} ms" for line in LINES if "p50" in line.get("ms", ()) for key in ("p50", "p95")}
    known |= {f"{one['computed']:.0f} ms" for one in LINES if "computed" in one} | {"40 ms", "100 ms"}
    known |= {f"{batch[key]:.1f} ms" for key in ("alone", "together")}
    known |= {f"{memory[key]:.0f} MB" for key in ("before", "after")}
    assert shown <= known, shown - known
