"""Compute the cost of each shipped recipe, and write it into the recipe files as ``cost``.

    python benchmarks/recipe_costs.py --write

**Measured**: the mean CPU time of the trainings of a recipe in docs/results/claims, each on one core.

**Computed**, for all others: multiply-adds of a token (forward once, backward twice) times the tokens of all epochs, by a rate.
The rate of two cores is measured: ``sdlm/tied-medium-softmax`` trains on 1,497.5 tokens a second (docs/results/sdlm-speed.md),
which are 139 Gflop a second. An update takes at least 20 ms, as updates of small models do (docs/results/claims/time-*.json).
``TIMES`` are measured, too: layers that are no plain products, relative to the plain layer. The rates of a GPU are assumed,
since none was at hand: 4 Tflop a second in float32, and at least 10 ms an update.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from sememekit.config.recipes import Place, Shelf, load_recipe, resources_folder

ROOT = Path(__file__).resolve().parent.parent
FLOP = 6
"""Operations a weight and token: a multiply-add is two, done once forward and twice backward."""
TWO_CORES, GPU = (139e9, 0.02), (4e12, 0.01)
"""Flop a second, and least seconds of an update."""
QUERIES, TEXTS = 439, 1000
"""Mean queries of a text (docs/results/appendix/attacks.md), and texts of an attack whose cost is stated."""
SIZES: tuple[tuple[str, float, int, int], ...] = (
    # names, training tokens, words of the vocabulary, tokens of an example (0: running text)
    (r"(sdlm|ours)/first150k", 149_306, 13_477, 0),
    (r"ours/held-out-words", 298_480, 12_261, 0),
    (r"sdlm/lcsts", 2.4e6 * 73, 40_000, 73),
    (r"sdlm/|ours/(pd-medium|released256)", 735_037, 13_477, 0),
    (r"(mixture|sememe_rnn)/wt2", 2_088_628, 33_278, 0),
    (r"mixture/|sememe_rnn/ptb|ours/ptb-", 929_589, 10_000, 0),
    (r"sememe_rnn/snli", 549_367 * 23.5, 0, 24),
    (r"ours/nli-", 28_330 * 23.5, 0, 24),
    (r"small/nli", 5_000 * 23.5, 0, 24),
    (r"(small/classification|ours/sst2)", 6_920 * 19.3, 0, 19),
    (r"self_organized/gigaword", 3.8e6 * 38.6, 69_000, 39),
    (r"ours/gigaword", 10_000 * 38.6, 6_000, 39),
    (r"small/(headline|dialogue)", 5_000 * 38.6, 8_000, 39),
    (r"self_organized/text8", 16.8e6, 44_000, 0),
    (r"ours/text8", 680_000, 18_339, 0),
    (r"ours/switchboard", 140_000, 4_000, 39),
    (r"ours/pd-", 940_000, 13_000, 0),
    (r"lattice/chinese", 10e6, 5_000, 40),
    (r"lattice/", 29e6 * 26, 10_000, 26),
    (r"ours/lattice-ptb", 929_589, 3_000, 22),
    (r"ours/ptb4k", 4_000 * 22, 2_500, 22),
    (r"ours/(sxu|pku)", 434_791, 3_000, 35),
    (r"(quickstart|small)/lattice", 165_000, 2_211, 30),
    (r"quickstart/", 319_477, 5_127, 0),
    (r"small/", 100_000, 8_000, 0),
)
CHINESE = "10 million characters"
"""The paper does not state the size of its text."""
TIMES: dict[str, tuple[tuple[str, float], ...]] = {
    # slot -> what its settings hold, its time relative to the plain layer: docs/results/sdlm-speed.md, lattice.md, claims
    "decoder": ((r"'sdlm'.*'samples'", 1.4), (r"'sdlm'", 4.1)),
    "encoder": ((r"'concat'", 1.1), (r"'gate'", 1.3), (r"'cell'", 1.35), (r"'mogrifier'", 1.7)),
    "task": ((r"'longest_chunk': 3", 6.1), (r"'longest_chunk': [24]", 4.9), (r"'sub_model': True", 1.9), (r"'copies'", 1.6)),
}


def measured() -> dict[str, list[tuple[float, int]]]:
    """Recipe -> CPU hours and epochs of each of its trainings in the results of claims."""
    found = defaultdict(list)
    for path in sorted((ROOT / "docs" / "results" / "claims").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for command in result.get("commands", ()):
            name = re.match(r"sememekit train .*--recipe (\S+)", command)
            other_end = "--set schedule.epochs=" in command  # not what the recipe costs
            if name and result["curve"] and not result["tiny"] and not other_end:
                found[name[1]].append((result["curve"][-1]["cpu_seconds"] / 3600, len(result["curve"])))
    return found


def products(table: dict[str, Any], words: int) -> float:
    """Multiply-adds of a token in the plain encoder and output layer of these sizes."""
    task, encoder, decoder = (table.get(slot, {}) for slot in ("task", "encoder", "decoder"))
    name, width, hidden = encoder.get("name", "lstm"), task.get("embedding_size", 200), encoder.get("hidden_size", 200)
    layers, sides = encoder.get("num_layers", 1), 1 + name.startswith("bi")
    outputs = [hidden] * (layers - 1) + [width if name == "awd_lstm" else hidden]
    sizes = zip([width, *(size * sides for size in outputs)], outputs, strict=False)
    gates = sides * (3 if "gru" in name else 4)
    encoded = layers * 12 * width**2 if name == "transformer" else sum(gates * out * (into + out) for into, out in sizes)
    encoded *= 1 + (task.get("name") in ("headline", "dialogue"))
    last, kind = width if decoder.get("tied", True) else hidden, decoder.get("name", "softmax")
    rows = {"mos": words * decoder.get("num_components", 3), "tree_hsm": math.log2(words + 1)}.get(kind, words)
    rows = 2 * math.sqrt(words) if kind in ("class_hsm", "self_organized") else rows
    return float(encoded + last * (words / 5 if kind in ("adaptive", "differentiated", "sampled") else rows))


def cost_of(place: Place, known: dict[str, list[tuple[float, int]]]) -> dict[str, Any]:
    """The cost of one recipe."""
    name, table = place.name, load_recipe(place.name)
    if name in known:
        hours, epochs = zip(*known[name], strict=True)
        return {"epochs": round(mean(epochs)), "cpu_hours": _round(mean(hours)), "measured": True}
    if name.startswith("attack/"):
        victim = load_recipe("sememe_rnn/snli-bilstm" if "nli" in name or "entail" in name else "ours/sst2-tuned")
        flop = TEXTS * QUERIES * 23.5 * 2 * products(victim, 0)
        return _hours(flop, TEXTS * QUERIES / 60) | {"unit": f"{TEXTS:,} texts"}
    tokens, words, example = next(sizes for pattern, *sizes in SIZES if re.match(pattern, name))
    factor = 1.0
    for slot, kinds in TIMES.items():
        factor *= next((times for pattern, times in kinds if re.search(pattern, str(table.get(slot, {})))), 1.0)
    epochs, task = table.get("schedule", {}).get("epochs", 40), table.get("task", {})
    flop = products(table, words) * FLOP * factor * tokens * epochs
    updates = tokens * epochs / task.get("batch_size", 20) / (example or task.get("chunk_length", 35))
    cost = {"epochs": epochs} | _hours(flop, updates)
    return cost | ({"unit": CHINESE} if name.startswith("lattice/chinese") else {})


def _hours(flop: float, updates: float) -> dict[str, float]:
    sides = {"cpu_hours": TWO_CORES, "gpu_hours": GPU}
    return {key: _round(max(flop / rate, updates * least) / 3600) for key, (rate, least) in sides.items()}


def _round(hours: float) -> float:
    return float(f"{hours:.2g}")


def with_cost(text: str, row: str, cost: dict[str, Any]) -> str:
    """The text of a recipe file with the cost of its own recipe or of a row."""
    line = f"cost = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in cost.items())} }}\n"
    start = re.search(rf"(?m)^\[row\.{re.escape(row)}\]\n", text) if row else re.search(r"(?m)^(?!#|\s*$)", text)
    if start is None:
        raise ValueError(f"no place for the cost of {row}")
    at = start.end() if row else start.start()
    head, rest = text[:at], text[at:]
    base = re.match(r"base = .*\n", rest)
    if base:
        head, rest = head + base[0], rest[base.end() :]
    rest = re.sub(r"\Acost = .*\n\n?", "", rest)
    return head + line + ("" if row or rest.startswith("\n") else "\n") + rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the costs into the recipe files; default: print them")
    options = parser.parse_args()
    shelf, known = Shelf(resources_folder() / "recipes"), measured()
    for name in shelf.names():
        place = shelf.find(name)
        cost = cost_of(place, known)
        print(json.dumps({"benchmark": "recipe_costs", "recipe": name, **cost}))
        if options.write:
            path = place.file.path
            path.write_text(with_cost(path.read_text(encoding="utf-8"), place.row, cost), encoding="utf-8")


if __name__ == "__main__":
    main()
