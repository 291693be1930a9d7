"""Success and queries of our searches and TextAttack's, on one victim and one space, by both programs.

    python benchmarks/textattack_bridge.py --corpora CORPORA --out OUT [--results FILE] [--seeds N ...]

Needs the package textattack (docs/huggingface.md). The victim is the one of attack_presets.py, trained here if absent. The
space has at most five sememe-equal substitutes a word, the same for both programs, and no constraint; a text has 500 queries.
A query is a text that the victim had not read for this example: TextAttack's own count also has texts answered from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from attack_presets import sentences
from measuring import Cell, cell_arguments, fill
from textattack import Attack
from textattack.attack_recipes import DeepWordBugGao2018, Pruthi2019
from textattack.attack_results import SuccessfulAttackResult
from textattack.constraints.pre_transformation import RepeatModification
from textattack.goal_functions import UntargetedClassification
from textattack.models.wrappers import ModelWrapper
from textattack.search_methods import AlzantotGeneticAlgorithm, BeamSearch, GreedySearch, ParticleSwarmOptimization
from textattack.shared.utils import set_seed

from sememekit.attack import Document, read_examples
from sememekit.files import replace_file, to_json
from sememekit.measure.attack_rates import ExampleOutcome, attack_rates
from sememekit.notebook import attack_classifier
from sememekit.notebook import textattack as ours
from sememekit.runs.classifier import load_classifier

EXAMPLES: Final = 60
BUDGET: Final = 500
SEARCHES: Final[dict[str, Callable[[], Any]]] = {
    "greedy": GreedySearch,
    "pso": partial(ParticleSwarmOptimization, pop_size=60, max_iters=20),
    "beam": partial(BeamSearch, beam_width=8),
    "genetic": partial(AlzantotGeneticAlgorithm, pop_size=60, max_iters=20, post_crossover_check=False),
}
"""Searches of TextAttack; pso and genetic have the numbers of its recipes."""
RECIPES: Final = {"DeepWordBugGao2018": DeepWordBugGao2018, "Pruthi2019": Pruthi2019}
"""Recipes that need no download; their transformation is replaced by our candidates."""


class Counting(ModelWrapper):  # type: ignore[misc]
    """The victim, which counts the distinct texts of an example."""

    model = None

    def __init__(self, predict: Callable[[list[str]], np.ndarray]) -> None:
        self.predict = predict
        self.read: set[str] = set()

    def __call__(self, texts: list[str], **options: Any) -> np.ndarray:
        self.read |= set(texts)
        return self.predict(list(texts))


def main() -> None:
    """Measure every row that has no result yet."""
    parser = cell_arguments(__doc__ or "", "textattack-bridge")
    parser.set_defaults(seeds=[1])
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    fill(given.results, cells(given.corpora, given.out, given.seeds))


def cells(corpora: Path, out: Path, seeds: list[int]) -> Iterator[Cell]:
    """Yield each search of each program; the seed is the seed of the search."""
    texts = sentences(corpora, out, 1)
    classifier = load_classifier(texts.victim)
    classifier.task.double()  # as an attack on a run has it
    victim = Counting(lambda texts: classifier.probabilities(texts))
    examples = read_examples(texts.file)[0][:EXAMPLES]
    rows = [(example.fields[0], int(example.label)) for example in examples]
    settings = {"most": 5, "lemmas": texts.candidates["lemmas"]}
    swap = ours.word_swap(sources=texts.candidates["sources"], settings=settings, texts=[text for text, _ in rows])
    words = {word.text for text, _ in rows for word in Document.read((text,)).words}
    space = out / "space.json"
    replace_file(space, to_json({word: swap._get_replacement_words(word) for word in sorted(words)}))
    free = [RepeatModification()]
    for seed in seeds:
        them = partial(by_them, victim, rows, swap, seed)
        for name, theirs in SEARCHES.items():
            yield f"sememekit: {name}", seed, partial(by_us, victim, rows, space, name, seed)
            yield f"TextAttack, our {name}", seed, partial(them, free, partial(ours.search_method, name, seed=seed))
            yield f"TextAttack: {name}", seed, partial(them, free, theirs)
        for name, recipe in RECIPES.items():
            built = recipe.build(victim)
            constraints = [*built.constraints, *built.pre_transformation_constraints]
            yield f"TextAttack, recipe {name}", seed, partial(them, constraints, partial(getattr, built, "search_method"))


def by_us(victim: Counting, rows: list[tuple[str, int]], space: Path, name: str, seed: int) -> dict[str, Any]:
    """Attack by our program."""
    settings = {"attack": {"constraints": "none", "query_budget": BUDGET, "seed": seed}, "candidates": {"path": str(space)}}
    texts, labels = zip(*rows, strict=True)
    found = attack_classifier(
        victim.predict, texts, labels, names=("negative", "positive"), candidates="table", search=name, settings=settings
    )
    return shown(list(found.results))


def by_them(
    victim: Counting, rows: list[tuple[str, int]], swap: Any, seed: int, constraints: list[Any], search: Callable[[], Any]
) -> dict[str, Any]:
    """Attack by TextAttack with our candidates."""
    set_seed(seed)
    attack = Attack(UntargetedClassification(victim, query_budget=BUDGET), constraints, swap, search())
    outcomes, counted = [], []
    for text, label in rows:
        victim.read.clear()
        attack.clear_cache()
        if victim([text])[0].argmax() != label:
            outcomes.append(ExampleOutcome(outcome="skipped", correct=False, queries=1, words_changed=0, num_words=1))
            continue
        result = attack.attack(text, label)
        won = isinstance(result, SuccessfulAttackResult)
        changed = len(result.original_result.attacked_text.all_words_diff(result.perturbed_result.attacked_text)) if won else 0
        outcome = "success" if won else "failed" if len(victim.read) > 1 else "no_candidates"
        outcomes.append(
            ExampleOutcome(
                outcome=outcome,
                correct=True,
                queries=len(victim.read),
                words_changed=changed,
                num_words=len(result.original_result.attacked_text.words),
            )
        )
        counted.append(result.num_queries)
    return {**shown(outcomes), "counted_by_textattack": float(np.mean(counted))}


def shown(outcomes: list[Any]) -> dict[str, Any]:
    """The rates of the outcomes."""
    keep = {"outcomes", "attackable", "success_rate", "success_at", "mean_queries", "median_queries", "words_changed"}
    return attack_rates(outcomes, query_budget=BUDGET).model_dump(mode="json", include=keep)


if __name__ == "__main__":
    main()
