"""Every figure of the tables in docs/results/speed.md is in the records beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = (RESULTS / "speed.md").read_text(encoding="utf-8")

HEADS = ("| weights | perplexity", "| run | greedy, 20")
"""Heads of tables that have numbers."""


def record(name: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / "speed" / name).read_text(encoding="utf-8")))


def cells(*values: object) -> str:
    return f"| {' | '.join(map(str, values))} |"


def expected() -> list[str]:
    latency, int8, large = record("latency.json"), record("int8.json"), record("vocabulary.json")
    rows = []
    for name, sides in latency["commands"].items():
        now, before = (sides[side]["best"] for side in ("now", "before"))
        rows.append(cells(f"`{name}`", f"{before:.2f}", f"{now:.2f}", f"{now / before:.2f}"))
    for name, sides in latency["questions"].items():
        method, kind = name.split(", ")
        now, before = (1e3 * sides[side]["best"] for side in ("now", "before"))
        rows.append(cells(f"`run.{method}`", kind, f"{before:.0f}", f"{now:.0f}"))
    for side, value in int8["perplexity"].items():
        times = [int8["times"][size][task][side]["best"] for size in int8["times"] for task in ("700 tokens", "one token")]
        rows.append(cells(side, f"{value:.2f}", *(f"{one:.2f}" for one in times)))
    for words, name in (("44000", "44,000"), ("2000000", "2,000,000")):
        times = [
            1e3 * large["draw"][words][side]["best"] for side in ("multinomial", "search", "multinomial step", "search step")
        ]
        rows.append(cells(name, *(f"{one:.2f}" for one in times)))
    for block in ("blocks of 16", "blocks of 256"):
        one = large["exact"][block]
        rows.append(cells(block, f"{one['cpu']:.1f}", f"{one['gigabytes']:.1f}"))
    one = large["exact"]["one block"]
    rows.append(cells("one block", f"stopped after {one['stopped_after_cpu']}", f"above {one['gigabytes']:.1f}"))
    for name, one in record("modules.json").items():
        figures = [
            f"{one[key]:.1f}" for key in ("cpu_seconds_of_building", "cpu_seconds_of_step", "peak_gigabytes") if key in one
        ]
        rows.append(cells(f"`{name}`", *(figures or ["", "out of memory", f"above {one['gigabytes_allowed']}"])))
    return [*rows, *steps(), *evaluation(), *peers(), *writing(), *scoring(), *attacking()]


def evaluation() -> list[str]:
    """Return the rows of the loss without gradients."""
    found = record("goals.json")["sdlm"]["evaluation"]
    names = {"softmax": "softmax", "sdlm": "SDLM, exact", "products": "products of SDLM alone"}
    seconds = found["seconds"]
    return [cells(shown, f"{seconds[name]:.2f}", f"{seconds[name] / seconds['softmax']:.2f}") for name, shown in names.items()]


def peers() -> list[str]:
    """Return the rows of our modules beside torch's."""
    found, rows = record("peers.json"), []
    for name, seconds in found["seconds"].items():
        if not name.endswith(", compiled"):
            compiled = found["seconds"].get(f"{name}, compiled")
            compiling = found["seconds_of_compilation"].get(name)
            ratio = "" if compiled is None else f"{compiled / seconds:.2f}"
            rows.append(cells(f"`{name}`", f"{1e3 * seconds:.0f}", ratio, "" if compiling is None else f"{compiling:.0f}"))
    return rows


def writing() -> list[str]:
    """Return the rows of words a second that runs write."""
    found = record("generation.json")
    columns = [f"{way}, {length}" for way in ("greedy", "sampled", "beam of 5") for length in (20, 100)]
    return [
        cells(f"`{name}`", *(f"{found[name]['words_per_second'][column]:.0f}" for column in columns))
        for name in ("softmax", "sdlm", "transformer")
    ]


def scoring() -> list[str]:
    """Return the rows of words a second that are scored."""
    return [
        cells(name if "KenLM" in name else f"`{name}`", f"{one['perplexity']:.1f}", f"{one['tokens_per_cpu_second']:,.0f}")
        for name, one in sorted(record("perplexity.json").items(), key=lambda item: -item[1]["tokens_per_cpu_second"])
    ]


def attacking() -> list[str]:
    """Return the rows of attacks on classifiers of transformers."""
    return [
        cells(
            name,
            one["queries"],
            one["calls"],
            f"{one['cpu_seconds_from_first_to_last_call']:.1f}",
            *(f"{100 * one[share]:.1f} %" for share in ("share_outside_of_model", "share_of_tokenizer")),
        )
        for name, one in record("published.json")["sides"].items()
    ]


def steps() -> list[str]:
    """Return the rows of steps against their goals."""
    goals = record("goals.json")
    lattice, clusters, matching = goals["lattice"]["ratio_to_fastest_plain"], goals["self_organized"], goals["segmentation"]
    of_jieba, megabytes = matching["ratio"], matching["sides"][0]["megabytes_per_second"]
    return [
        cells("SDLM, exact step at 650, over the tied softmax's", f"{goals['sdlm']['step_time_over_softmax']:.2f}", "3.0"),
        cells("SDLM, sampled step, the same", f"{goals['sdlm']['sampled_step_time_over_softmax']:.2f}", "0.8"),
        cells(
            "step of an LSTM with the sememe cell, over the plain one's",
            f"{goals['sememe_cells']['step_ratios_to_plain']['cell']:.2f}",
            "1.15",
        ),
        cells("lattice of L = 2, over the plain LSTM", f"{lattice['L=2']:.2f}", "4.5"),
        cells("lattice of E = 2, over the plain LSTM", f"{lattice['E=2']:.2f}", "1.5"),
        cells("self-organised softmax, share of its floor", f"{clusters['share_of_floor']:.2f}", "0.7"),
        cells(
            "self-organised softmax, times as fast as the adaptive one", f"{clusters['times_as_fast_as']['adaptive']:.2f}", ""
        ),
        cells("maximum matching, MB a second", f"{megabytes:.1f}", "20"),
        cells("maximum matching, times as fast as jieba", f"{of_jieba:.1f}", ""),
    ]


def test_the_rows_of_the_page_are_those_of_the_records() -> None:
    found = [line for line in PAGE.splitlines() if re.match(r"\| .*\d", line) and not line.startswith(HEADS)]
    assert found == expected()


def test_the_floors_of_the_page_are_those_of_the_records() -> None:
    goals, words = record("goals.json"), " ".join(PAGE.split())
    sdlm = goals["sdlm"]
    matching = {side["name"]: side["megabytes_per_second"] for side in goals["segmentation"]["sides"]}
    assert f"{sdlm['floor_of_step_over_softmax']:.2f} at the rate of its products" in words
    assert f"({sdlm['evaluation']['gigaflops_of_products']:.0f} Gflop/s)" in words
    assert f"meets the goal ({sdlm['mean_sampled_step_time_over_softmax']:.2f})" in words
    assert f"up to {goals['sememe_cells']['products_over_plain_at_most']} times the plain model's" in words
    assert f"alone runs at {matching['its automaton alone']:.1f} MB" in words
    assert f"cuts {matching['rjieba, no HMM']:.1f} MB" in words


def test_the_ratios_of_compiled_layers_are_those_of_the_record() -> None:
    seconds, words = record("peers.json")["seconds"], " ".join(PAGE.split())
    exact, sampled = (
        seconds[f"{name}, compiled"] / seconds[name] for name in ("SememeSoftmax", "SememeSoftmax, 1,000 samples")
    )
    assert f"compiled it takes {exact:.2f} times" in words
    assert f"it takes {sampled:.2f} times, because" in words
