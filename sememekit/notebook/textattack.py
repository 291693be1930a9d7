"""Our candidates and searches as parts of TextAttack.

    from textattack import Attack
    from textattack.goal_functions import UntargetedClassification
    from sememekit.notebook import textattack as ours

    swap = ours.word_swap(sources="table:english.tsv")
    attack = Attack(UntargetedClassification(wrapper), [], swap, ours.search_method("pso"))

In the other direction, a model wrapper of TextAttack is a victim here: ``sememekit.attack_classifier(wrapper, texts, labels,
names=[...])``. The package ``textattack`` is imported when a part is made; it is no dependency of sememekit."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from sememekit.attack import AttackResources, Document, read_attack_plan
from sememekit.attack.documents import Word, match_case
from sememekit.attack.searches import Search
from sememekit.attack.space import Space
from sememekit.config import merge_tables
from sememekit.files import needed


def word_swap(
    candidates: str = "sememe",
    *,
    sources: str | Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    texts: Iterable[str] = (),
) -> Any:
    """Our candidates as a transformation (``WordSwap``).

    ``candidates`` are sememe, embedding, wordnet, table, or ``package.module:Class``, with ``settings`` such as ``{"path":
    "synonyms.json"}``; ``sources`` are lexicons of sememe candidates, ``FORMAT:PATH``. Words of ``texts`` are looked up when
    the part is made. Other texts are looked up one by one, which reads the lexicons again and is slower. Raises ConfigError: no
    such candidates, an unknown setting, or textattack is not installed."""
    swap = _textattack("textattack.transformations").WordSwap
    words_in = _textattack("textattack.shared.utils").words_from_text
    table: dict[str, Any] = {"name": candidates, **(settings or {})}
    if sources:
        table["sources"] = [sources] if isinstance(sources, str) else list(sources)
    plan = read_attack_plan({"candidates": table, "attack": {"constraints": "none"}}, "word_swap")
    part = plan.candidates.build(AttackResources(None, (), ("text",)))
    found: dict[str, tuple[str, ...]] = {}

    def look_up(words: Iterable[str]) -> None:
        new = [form for word in words for form in dict.fromkeys((word, word.lower())) if form not in found]
        if new:
            found.update(dict.fromkeys(new, ()))
            found.update(part.table(list(dict.fromkeys(new))))

    class SememekitSwap(swap):  # type: ignore[misc, valid-type]
        """Replace a word by our candidates, in the case of the word. Candidates that TextAttack reads as several words are left
        out, because its searches number the words of a text."""

        def _get_replacement_words(self, word: str) -> list[str]:
            look_up([word])
            exact = found[word] or tuple(match_case(other, word) for other in found[word.lower()])
            return [other for other in dict.fromkeys(exact) if other != word and len(words_in(other)) == 1]

        def _get_transformations(self, current_text: Any, indices_to_modify: Any) -> Any:
            look_up(current_text.words[index] for index in indices_to_modify)
            return super()._get_transformations(current_text, indices_to_modify)

        def extra_repr_keys(self) -> list[str]:
            return ["candidates"]

    look_up(word.text for text in texts for word in Document.read((text,)).words)
    made = SememekitSwap()
    made.candidates = plan.candidates.name
    return made


def search_method(name: str = "greedy", *, settings: Mapping[str, Any] | None = None, seed: int = 1) -> Any:
    """One of our searches as a search method of TextAttack, for transformations that swap words.

    The transformation gives substitutes for the original text under the constraints of the attack. Texts with several changes
    must also pass the constraints; a refused text is not queried and counts as no better than the original. Repeated texts are
    not queried again. Goal, score, queries and budget are TextAttack's; of several successes the least changed counts.

    ``name`` is genetic, pso, greedy, beam, random, exhaustive, or ``package.module:Class``. Each example draws its own numbers
    by ``seed`` and its text. Raises ConfigError: no such search, an unknown setting, or textattack is not installed."""
    method = _textattack("textattack.search_methods").SearchMethod
    succeeded = _textattack("textattack.goal_function_results").GoalFunctionResultStatus.SUCCEEDED
    swaps_words = _textattack("textattack.shared.validators").transformation_consists_of_word_swaps
    table = merge_tables({"search": {"name": name}}, {"search": dict(settings or {})})
    search = read_attack_plan({**table, "candidates": {"name": "table", "path": "."}}, "search_method").search.build()

    class SememekitSearch(method):  # type: ignore[misc, valid-type]
        """A search method of TextAttack that runs one of our searches."""

        is_black_box = True

        def perform_search(self, initial_result: Any) -> Any:
            return _perform(self, search, seed, initial_result, succeeded)

        def check_transformation_compatibility(self, transformation: Any) -> bool:
            return bool(swaps_words(transformation))

        def extra_repr_keys(self) -> list[str]:
            return ["search", "seed"]

    made = SememekitSearch()
    made.search, made.seed, made.refused = name, seed, 0
    return made


def _perform(method: Any, search: Search, seed: int, initial: Any, succeeded: Any) -> Any:
    original = initial.attacked_text
    single = method.get_transformations(original, original_text=original)
    space = _space(original, single)
    if not len(space.positions):
        return initial
    if refusal := search.refusal(space):
        method.refused += 1
        warn(
            f"search {method.search}: {refusal}; TextAttack counts this text as failed though it was not searched "
            f"({method.refused} so far); raise limit in settings, or allow fewer changes",
            stacklevel=2,
        )
        return initial
    last = single[0].attack_attrs.get("last_transformation")
    start, best = float(initial.score), initial
    generator = np.random.default_rng([seed, *original.text.encode()])
    known: dict[bytes, float] = {space.origin()[0].tobytes(): start}
    steps = search.run(space, start, generator)
    rows: NDArray[np.int16] | None = next(steps, None)
    while rows is not None:
        fresh = {row.tobytes(): row for row in np.asarray(rows, dtype=np.int16) if row.tobytes() not in known}
        texts, keys = [], []
        for key, row in fresh.items():
            changes = space.changes(row)
            text = original.replace_words_at_indices(list(changes), list(changes.values()))
            text.attack_attrs["last_transformation"] = last
            texts.append(text)
            keys.append(key)
        allowed = {text.text for text in method.filter_transformations(texts, original, original_text=original)}
        asked = [(key, text) for key, text in zip(keys, texts, strict=True) if text.text in allowed]
        known.update(dict.fromkeys(keys, start))
        results, over = method.get_goal_results([text for _, text in asked]) if asked else ([], False)
        known.update((key, float(result.score)) for (key, _), result in zip(asked, results, strict=False))
        won = [result for result in results if result.goal_status == succeeded]
        if won:
            return min(won, key=lambda result: (len(original.all_words_diff(result.attacked_text)), -float(result.score)))
        best = max([best, *results], key=lambda result: float(result.score))
        if over or len(results) < len(asked):
            return best
        try:
            rows = steps.send(np.array([known[row.tobytes()] for row in np.asarray(rows, dtype=np.int16)]))
        except StopIteration:
            rows = None
    return best


def _space(original: Any, single: Sequence[Any]) -> Space:
    """Return the space of the transformation's substitutes for each word of the original."""
    substitutes: list[list[str]] = [[] for _ in original.words]
    for text in single:
        places = original.all_words_diff(text)
        if len(text.words) != len(original.words) or len(places) != 1:
            continue  # a substitute that TextAttack reads as several words
        (place,) = places
        if text.words[place] not in substitutes[place]:
            substitutes[place].append(text.words[place])
    words = tuple(Word(0, 0, 0, word) for word in original.words)
    everything = tuple(range(len(words)))
    return Space(Document((original.text,), words), tuple(map(tuple, substitutes)), everything, len(words))


def _textattack(module: str) -> Any:
    needed("textattack", "a part of TextAttack", "sememekit[textattack]")
    return import_module(module)
