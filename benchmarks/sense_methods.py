"""Choose the method of ``tag`` by leaving words out: the setting that is best on all other words is measured on each word.

    python benchmarks/sense_methods.py RUN RUN RUN --senses GOLD --source list:list.txt > methods.json

A setting adds the log-probabilities of the parts ``share``, ``substitution`` and ``usual`` times exponents. For a word of n
senses the exponents of the two parts that read the sentence are multiplied by (2 / n) to the power ``fall``, so that a model
may count less the more senses a word has. For each word the setting with the best mean over the other words and all runs is
chosen: of accuracies by word (``macro``), or of accuracies of single targets (``micro``). Equal scores count as their
expectation. The named settings, a random sense and the best sense of each word (oracle) stand beside.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sense_neighbours import targets_of

from sememekit.analysis.senses.inventory import inventory_of
from sememekit.measure.ties import share_of_best
from sememekit.runs.run import Run

PARTS = ("share", "substitution", "usual")
EXPONENTS, FALLS = (0.0, 0.5, 1.0, 2.0), (0.0, 0.5, 1.0)
Setting = tuple[float, ...]
Reals = NDArray[np.float64]


def settings() -> list[Setting]:
    """Exponents of the parts and ``fall``, each ratio of exponents once; ``fall`` needs a part that reads the sentence."""
    found: dict[Setting, Setting] = {}
    for *exponents, fall in product(*[EXPONENTS] * len(PARTS), FALLS):
        if any(exponents) and not (fall and not (any(exponents[:2]) and exponents[2])):
            found.setdefault((*(one / max(exponents) for one in exponents), fall), (*exponents, fall))
    return list(found.values())


def accuracies(targets: Sequence[dict[str, Any]], setting: Setting) -> Reals:
    """(T,) the accuracy on each target."""
    *exponents, fall = setting
    found = []
    for one in targets:
        senses = len(one["parts"]["usual"])
        less = (2.0 / senses) ** fall
        weights = dict(zip(PARTS, (exponents[0] * less, exponents[1] * less, exponents[2]), strict=True))
        scores = sum(weight * one["parts"][name] for name, weight in weights.items() if weight and name in one["parts"])
        found.append(share_of_best(np.zeros(senses) + scores, one["right"]))
    return np.array(found)


def means(right: Reals, number: NDArray[np.int64]) -> dict[str, float]:
    """Means of (R, T) accuracies over targets, and over words."""
    by_target = right.mean(axis=0)
    by_word = np.bincount(number, by_target) / np.bincount(number)
    return {"micro": float(by_target.mean()), "macro": float(by_word.mean())}


def leave_words_out(
    right: dict[Setting, Reals], number: NDArray[np.int64], mean: Callable[[Reals, NDArray[np.int64]], float]
) -> tuple[Reals, Counter[Setting]]:
    """(R, T) accuracies of the settings chosen on the other words, and how often each was chosen."""
    found, chosen = np.zeros_like(next(iter(right.values()))), Counter[Setting]()
    for word in range(int(number.max()) + 1):
        others = number != word
        compact = np.unique(number[others], return_inverse=True)[1]
        best = max(right, key=lambda one: mean(right[one][:, others], compact))
        chosen[best] += 1
        found[:, ~others] = right[best][:, ~others]
    return found, chosen


def row(setting: Setting) -> dict[str, float]:
    return dict(zip((*PARTS, "fall"), setting, strict=True))


NAMED = {
    "share": (1.0, 0.0, 0.0, 0.0),
    "substitution": (0.0, 1.0, 0.0, 0.0),
    "usual": (0.0, 0.0, 1.0, 0.0),
    "share, substitution, usual": (1.0, 1.0, 1.0, 0.0),
    "substitution, usual": (0.0, 1.0, 1.0, 0.0),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, default=[Path("runs/sdlm-1"), Path("runs/sdlm-2"), Path("runs/sdlm-3")])
    parser.add_argument("--senses", type=Path, default=Path("gold.txt"))
    parser.add_argument("--source", action="append")
    options = parser.parse_args(arguments)
    every, right = settings(), dict[Setting, list[Reals]]()
    checkpoints, targets = [], list[dict[str, Any]]()
    for path in options.runs:
        run = Run.open(path)
        checkpoints.append(run.of_run["checkpoint"])
        targets = targets_of(run, inventory_of(run, options.source or ["list:list.txt"]), options.senses)
        for setting in every:
            right.setdefault(setting, []).append(accuracies(targets, setting))
    of_runs = {setting: np.array(found) for setting, found in right.items()}
    names = sorted({one["word"] for one in targets})
    number = np.array([names.index(one["word"]) for one in targets])
    senses = np.array([len(one["parts"]["usual"]) for one in targets])
    chance = np.array([len(one["right"]) / count for one, count in zip(targets, senses, strict=True)])[None]
    usual: list[Counter[int]] = [Counter() for _ in names]
    for one, word in zip(targets, number.tolist(), strict=True):
        usual[word].update(one["right"])
    oracle = np.array(
        [float(usual[word].most_common(1)[0][0] in one["right"]) for one, word in zip(targets, number, strict=True)]
    )

    def figures(accuracy: Reals) -> dict[str, Any]:
        bands = {"2 to 4": senses < 5, "5 to 9": (senses >= 5) & (senses < 10), "10 or more": senses >= 10}
        by_senses = {name: float(accuracy[:, here].mean()) for name, here in bands.items() if here.any()}
        by_word = [float(accuracy[:, number == word].mean()) for word in range(len(names))]
        return means(accuracy, number) | {"by_senses": by_senses, "by_word": by_word}

    held = {}
    for kind in ("micro", "macro"):
        accuracy, chosen = leave_words_out(of_runs, number, lambda some, of, kind=kind: means(some, of)[kind])  # type: ignore[misc]
        picked = [row(setting) | {"words": count} for setting, count in chosen.most_common()]
        held[kind] = figures(accuracy) | {"chosen": picked}
    best = sorted(of_runs, key=lambda setting: -means(of_runs[setting], number)["macro"])
    report = {
        "runs": [path.name for path in options.runs],
        "checkpoints": checkpoints,
        "targets": len(targets),
        "senses": [int(senses[number == word][0]) for word in range(len(names))],
        "targets_of_word": np.bincount(number).tolist(),
        "settings": len(every),
        "named": {name: figures(of_runs[setting]) for name, setting in NAMED.items()},
        "at random": figures(chance),
        "oracle": figures(oracle[None]),
        "left_out": held,
        "best_on_all": [row(setting) | means(of_runs[setting], number) for setting in best[:20]],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
