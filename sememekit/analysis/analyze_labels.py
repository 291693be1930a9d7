"""``sememekit analyze`` for classifiers: accuracy by groups, and the mean influence of words and sememes."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sememekit.analysis.explanations.influence import influence, no_sememes
from sememekit.config import Record
from sememekit.data.examples import Examples
from sememekit.errors import ConfigError, DataError
from sememekit.figures import percent
from sememekit.measure.classes import Accuracy, accuracy_of
from sememekit.measure.intervals import wilson_interval
from sememekit.progress import Progress, silent
from sememekit.runs.classifier import load_classifier
from sememekit.runs.run import OfRun, Run
from sememekit.tasks.base import require
from sememekit.tasks.classifier import TextClassifier

LENGTHS: Final = (1, 11, 16, 21, 31, 51, 101)  # the lower bounds of the groups of lengths, in tokens of all texts of an example
SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)  # lower bounds of groups by share of words with sememes; 1 is a group of its own
AT_LEAST: Final = 5  # fewest occurrences of a word or a sememe in the examples for its mean to be shown


class Group(Record):
    """Examples of one kind: their number, and the accuracy on them with its 95 % interval (Wilson)."""

    name: str
    examples: int
    accuracy: float
    low: float
    high: float


class Moved(Record):
    """A word or a sememe, and the mean effect of taking it away."""

    name: str
    times: int
    """Occurrences in the examples that were analysed."""
    effect: float
    """Mean fall of the label's log-probability in nats; above 0 it supports the chosen label."""
    size: float


class LabelRun(OfRun):
    """Accuracy of one run, and what moves its decisions."""

    encoder: str
    accuracy: Accuracy
    """The accuracy on the whole split, with the confusion matrix."""
    by_sememes: tuple[Group, ...]
    """Accuracy by the share of tokens with sememes in the run's graph; empty for runs without a graph."""
    by_length: tuple[Group, ...]
    """Accuracy by the number of tokens in an example."""
    words: tuple[Moved, ...]
    sememes: tuple[Moved, ...]
    """words, sememes: the largest absolute mean effects; each occurs at least ``AT_LEAST`` times in the examples."""
    rare_words: int
    rare_sememes: int
    """rare_words, rare_sememes: number of rarer words and sememes, which are left out."""
    no_sememes: str | None
    """Reason why there are no sememes, or None."""


class LabelComparison(Record):
    """Two runs on the same examples."""

    both: int
    first: int
    second: int
    neither: int
    """both, first, second, neither: number of examples that these runs label correctly."""
    p: float
    """Two-sided p of McNemar's exact test, on the examples that only one run labels correctly."""


class LabelAnalysis(Record):
    """The analysis of one or two classifiers."""

    split: str
    labels: tuple[str, ...]
    """Names of the rows and columns of the confusion matrix."""
    examples: int
    looked_into: int
    """Number of examples in which words and sememes were removed; ``seed`` draws them."""
    seed: int
    at_least: int
    runs: tuple[LabelRun, ...]
    comparison: LabelComparison | None


def analyze_labels(
    run: Path | Run,
    other: Path | Run | None = None,
    *,
    split: str = "test",
    data: Path | None = None,
    contexts: int = 200,
    top: int = 12,
    seed: int = 1,
    progress: Progress = silent,
) -> LabelAnalysis:
    """Accuracy by kinds of examples on a whole split, and the mean influence of words and sememes on a sample of it.

    The sample of ``contexts`` examples is drawn once for both runs, without replacement. Arguments as ``sememekit analyze
    --help``. Raises ConfigError: a model that predicts no labels, or numbers below 1. Raises DataError: the data are absent,
    lack the split, have no labels, or one of the runs has another vocabulary."""
    if contexts < 1 or top < 1:
        raise ConfigError(f"analyze: --contexts and --top must be 1 at least, given {contexts} and {top}")
    classifiers = [load_classifier(one, command="analyze") for one in (run, other) if one is not None]
    prepared = classifiers[0].run.data(data)
    summary = prepared.signature.examples
    models = []
    for number, classifier in enumerate(classifiers, start=1):
        task = require(classifier.task, TextClassifier, "analyze")
        if classifier.run.vocabulary.fingerprint != prepared.vocabulary.fingerprint or summary is None:
            raise DataError(
                f"{classifier.run} has the vocabulary {classifier.run.vocabulary.fingerprint} and {prepared.folder} has "
                f"{prepared.vocabulary.fingerprint}; two runs can be compared only where both were trained on the same data"
            )
        examples = task.examples(prepared, split)
        with classifier.run.autocast():
            progress(f"reading with run {number}", 0, None)
            probabilities = task.probabilities([examples.texts(number) for number in range(len(examples))])
        models.append((classifier.run, task, probabilities.argmax(1)))
    labels = np.asarray(examples.labels, dtype=np.int64)
    looked_into = min(contexts, len(examples))
    chosen = np.sort(np.random.default_rng(seed).choice(len(examples), looked_into, replace=False)).tolist()
    return LabelAnalysis(
        split=split,
        labels=models[0][1].labels,
        examples=len(examples),
        looked_into=looked_into,
        seed=seed,
        at_least=AT_LEAST,
        runs=tuple(_analysis(model, examples, chosen, top, progress) for model in models),
        comparison=_comparison(*(guessed == labels for _, _, guessed in models)) if len(models) == 2 else None,
    )


def _analysis(
    model: tuple[Run, TextClassifier, npt.NDArray[np.intp]], examples: Examples, chosen: list[int], top: int, progress: Progress
) -> LabelRun:
    (loaded, task, guessed), labels = model, np.asarray(examples.labels, dtype=np.int64)
    right = guessed == labels
    confusion = np.zeros((len(task.labels), len(task.labels)), dtype=np.int64)
    np.add.at(confusion, (labels, guessed), 1)
    of_words: dict[str, list[float]] = defaultdict(list)
    of_sememes: dict[str, list[float]] = defaultdict(list)
    for done, texts in enumerate(map(examples.texts, chosen), start=1):
        found = influence(task, texts)
        for text, places in zip(texts, found.texts, strict=True):
            for word, place in zip(text.tolist(), places, strict=True):
                if place is None:
                    continue
                of_words[loaded.vocabulary.token(word)].append(place.effect)
                for item in place.sememes:
                    assert loaded.graph is not None, "sememes come from a graph"
                    of_sememes[loaded.graph.sememes[item.sememe]].append(item.effect)
        progress(f"taking words from {loaded.path.name}", done, len(chosen))
    words, rare_words = _largest(of_words, top)
    sememes, rare_sememes = _largest(of_sememes, top)
    encoder, lengths = loaded.plan.encoder.name, examples.lengths().sum(1)
    return LabelRun(
        **loaded.of_run,
        encoder=encoder,
        accuracy=accuracy_of(confusion, task.labels),
        by_sememes=_by_sememes(loaded, examples, right),
        by_length=_binned(
            lengths, LENGTHS, lambda begin, end: f"{begin} {f'to {end - 1} words' if end else 'words and more'}", right
        ),
        words=words,
        sememes=sememes,
        rare_words=rare_words,
        rare_sememes=rare_sememes,
        no_sememes=no_sememes(task, encoder),
    )


def _largest(effects: dict[str, list[float]], top: int) -> tuple[tuple[Moved, ...], int]:
    """Return the influences of the largest mean size, and the number left out as too rare."""
    often = {name: np.array(values) for name, values in effects.items() if len(values) >= AT_LEAST}
    found = [
        Moved(name=name, times=len(values), effect=float(values.mean()), size=float(np.abs(values).mean()))
        for name, values in often.items()
    ]
    return tuple(sorted(found, key=lambda item: (-item.size, item.name))[:top]), len(effects) - len(often)


def _binned(
    values: npt.NDArray[Any], begins: Sequence[float], name: Callable[[float, float | None], str], right: npt.NDArray[np.bool_]
) -> tuple[Group, ...]:
    """Group the examples into bins of their values; the last bin has no upper end, empty bins are left out."""
    groups = []
    for begin, end in zip(begins, (*begins[1:], None), strict=True):
        inside = right[(values >= begin) & (values < (math.inf if end is None else end))]
        if len(inside):
            low, high = wilson_interval(int(inside.sum()), len(inside))
            groups.append(Group(name=name(begin, end), examples=len(inside), accuracy=float(inside.mean()), low=low, high=high))
    return tuple(groups)


def _by_sememes(loaded: Run, examples: Examples, right: npt.NDArray[np.bool_]) -> tuple[Group, ...]:
    if loaded.graph is None:
        return ()
    set_of_word, offsets, _ = loaded.graph.pooled_sets()
    has = np.diff(offsets)[set_of_word] > 0
    running = np.concatenate([[0], np.cumsum(has[np.asarray(examples.tokens, dtype=np.int64)])])
    ends = examples.offsets[:: examples.num_texts]
    shares = (running[ends[1:]] - running[ends[:-1]]) / np.maximum(np.diff(ends), 1)
    between = {begin: f"{percent(begin, 0)} to under {percent(end, 0)} of the" for begin, end in pairwise(SHARES)}
    return _binned(shares, SHARES, lambda begin, end: f"{between.get(begin, 'all')} words have sememes", right)


def _comparison(first: npt.NDArray[np.bool_], second: npt.NDArray[np.bool_]) -> LabelComparison:
    neither, two, one, both = np.bincount(2 * first.astype(np.int64) + second, minlength=4).tolist()
    return LabelComparison(both=both, first=one, second=two, neither=neither, p=sign_test(one, two))


def sign_test(one: int, other: int) -> float:
    """Two-sided sign test of the counts ``one`` and ``other``: p = 2 P(X <= min), X binomial(n, 1/2), at most 1."""
    total, few = one + other, min(one, other)
    # The binomial coefficients of thousands of trials do not fit into a float; their logarithms do.
    log_half = total * math.log(0.5)
    terms = [math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) + log_half for k in range(few + 1)]
    return min(1.0, 2.0 * math.fsum(math.exp(term) for term in terms))
