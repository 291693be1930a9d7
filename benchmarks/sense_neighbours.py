"""Tag senses with the words beside their substitutes in the training text, and say what that adds to the methods of ``tag``.

    python benchmarks/sense_neighbours.py RUN RUN RUN --senses GOLD --source list:list.txt > neighbours.json

For a sense with substitutes v of weight a_v, c(u) is the weighted count of word u within ``span`` places of a substitute in the
training text, and p(u) the share of u in that text. The score of the sense is the sum over words u within ``span`` places of
the target of log((c(u) + m p(u)) / (c + m) / p(u)), with m = ``smoothing``; it is added to the other parts times ``weight``.
Every setting is measured on all targets. The settings were not chosen before, so words are also divided into two halves: the
best setting of one half, by the mean over runs, is measured on the other.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sememekit.analysis.senses.gold import matching_senses, misplaced, read_gold
from sememekit.analysis.senses.inventory import SenseInventory, inventory_of
from sememekit.analysis.senses.tagger import MOST_SUBSTITUTES, LineReader, SenseTagger
from sememekit.runs.run import Run

Reals = NDArray[np.float64]
SPANS, SMOOTHINGS, WEIGHTS, SHARES = (1, 2, 3), (500, 2000, 8000), (0.0, 0.25, 0.5, 1.0), (0, 1)


def targets_of(run: Run, inventory: SenseInventory, gold: Path) -> list[dict[str, Any]]:
    """The targets that ``eval --senses`` scores, with the parts of their senses."""
    reader, found = LineReader(run), []
    for one in read_gold(gold):
        if misplaced(one) is not None:
            continue
        line = reader.read(one.words)
        place = line.place[one.position]
        names = inventory.names(line.ids[place])
        right = matching_senses(one.sense, names)
        known = line.known[one.position] and inventory.graph.entry(line.ids[place]).is_from_lexicon
        if known and len(names) > 1 and right:
            found.append({"word": one.word, "ids": line.ids, "place": place, "right": right})
    tagged = SenseTagger(run, inventory).tag([one["ids"] for one in found], [[one["place"]] for one in found])
    return [{**one, "parts": word.parts} for one, [word] in zip(found, tagged, strict=True)]


def neighbours(inventory: SenseInventory, text: NDArray[np.int64], span: int, smoothing: int, target: dict[str, Any]) -> Reals:
    """(n,) the score of each sense of a target, see the module."""
    words = len(inventory.counts)
    share = (np.bincount(text, minlength=words) + 0.1) / (len(text) + 0.1 * words)
    ids, place, unknown = target["ids"], target["place"], inventory.graph.words.index("<unk>")
    beside = [ids[at] for at in range(max(0, place - span), min(len(ids), place + span + 1)) if at != place]
    around = np.array([one for one in beside if one != unknown], dtype=np.int64)
    logs = [_log_ratios(inventory, text, share, sense, span, smoothing) for sense in inventory.senses(ids[place])]
    return np.array([log_V[around].sum() for log_V in logs])


_ratios: dict[tuple[int, int, int], Reals] = {}
_places: dict[int, NDArray[np.int64]] = {}


def _log_ratios(
    inventory: SenseInventory, text: NDArray[np.int64], share: Reals, sense: int, span: int, smoothing: int
) -> Reals:
    key = sense, span, smoothing
    if key not in _ratios:
        counts = np.zeros(len(share))
        words, weights = inventory.substitutes(sense)
        for word, weight in zip(words[:MOST_SUBSTITUTES].tolist(), weights[:MOST_SUBSTITUTES].tolist(), strict=True):
            at = _places.setdefault(word, np.flatnonzero(text == word))
            for offset in (*range(-span, 0), *range(1, span + 1)):
                here = at + offset
                np.add.at(counts, text[here[(here >= 0) & (here < len(text))]], weight)
        _ratios[key] = np.log((counts + smoothing * share) / (counts.sum() + smoothing) / share)
    return _ratios[key]


def correct(target: dict[str, Any], scores: Reals, weight: float, share: int) -> float:
    """Return whether the sense with the largest sum of parts is right."""
    parts = target["parts"]
    total = parts["substitution"] + parts["usual"] + share * parts["share"]
    return float(int((total + weight * (scores - np.logaddexp.reduce(scores))).argmax()) in target["right"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, default=[Path("runs/sdlm-1"), Path("runs/sdlm-2"), Path("runs/sdlm-3")])
    parser.add_argument("--senses", type=Path, default=Path("gold.txt"))
    parser.add_argument("--source", action="append")
    options = parser.parse_args(arguments)
    right: dict[tuple[Any, ...], list[Reals]] = {}
    for path in options.runs:
        run = Run.open(path)
        inventory = inventory_of(run, options.source or ["list:list.txt"])
        text = np.asarray(run.data().tokens("train"), dtype=np.int64)
        targets = targets_of(run, inventory, options.senses)
        for span, smoothing in product(SPANS, SMOOTHINGS):
            scores = [neighbours(inventory, text, span, smoothing, one) for one in targets]
            for weight, share in product(WEIGHTS, SHARES):
                found = [correct(one, own, weight, share) for one, own in zip(targets, scores, strict=True)]
                right.setdefault((span, smoothing, weight, share), []).append(np.array(found))
    names = sorted({one["word"] for one in targets})
    second = np.array([names.index(one["word"]) % 2 == 1 for one in targets])
    held = np.zeros((len(options.runs), len(targets)))
    chosen = []
    for half in (second, ~second):
        best = max(right, key=lambda setting: float(np.mean([own[~half].mean() for own in right[setting]])))
        chosen.append(best)
        held[:, half] = np.array(right[best])[:, half]
    keys = ("span", "smoothing", "weight", "share")
    rows = [dict(zip(keys, setting, strict=True)) | {"micro": [own.mean() for own in all_]} for setting, all_ in right.items()]
    report = {
        "targets": len(targets),
        "runs": [path.name for path in options.runs],
        "rows": rows,
        "chosen_on_the_other_half": [dict(zip(keys, setting, strict=True)) for setting in chosen],
        "held_out": held.mean(axis=1).tolist(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
