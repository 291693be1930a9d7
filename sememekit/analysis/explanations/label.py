"""``sememekit explain`` for classifiers: the words and sememes that moved the decision."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sememekit.analysis.explanations.influence import PlaceInfluence, influence, no_sememes
from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.runs.classifier import Classifier, load_classifier
from sememekit.runs.run import OfRun, Run
from sememekit.tasks.base import require
from sememekit.tasks.classifier import TextClassifier


class SememeOfWord(Record):
    """A sememe of one word."""

    name: str
    """Name of the sememe."""
    effect: float
    """Fall of log p(label) in nats if this word loses it; above 0 it supports the label."""
    gradient: float
    """First-order estimate of the effect: gradient times vector."""


class ReadWord(Record):
    """A word of a text."""

    word: str
    """The word as it was written."""
    read_as: str | None = None
    """The word that the model reads in its place; None if it skips the word."""
    known: bool
    """True if the model knows the word."""
    source: str | None = None
    """The lexicon of its sememes; None for runs without a graph."""
    effect: float | None = None
    """Fall of log p(label) in nats if the model reads an unknown word instead; None if it skips the word."""
    gradient: float | None = None
    """Gradient times vector of the word; None if it skips the word."""
    without_sememes: float | None = None
    """Fall of log p(label) in nats if the word loses all sememes; None if the model reads no sememes of it."""
    sememes: tuple[SememeOfWord, ...] = ()
    """Largest absolute effect first."""


class ReadText(Record):
    """A text of the example: its name, such as "premise", and its words."""

    name: str
    """Name of the text in an example, such as ``premise``."""
    words: tuple[ReadWord, ...]
    """Its words in order."""


class StrongSememe(SememeOfWord):
    """A sememe that moved the decision, with the word and the text that it belongs to; ``place`` counts words from 1."""

    word: str
    """The word with the sememe."""
    text: str
    """Name of the text with the word."""
    place: int
    """Number of the word in its text, from 1."""


class LabelExplanation(OfRun):
    """The label that a classifier gives an example, and why."""

    encoder: str
    """Name of the encoder."""
    labels: dict[str, float]
    """Label -> probability, by falling probability."""
    label: str
    """The explained label (default: the most probable)."""
    texts: tuple[ReadText, ...]
    """The texts of the example, word by word."""
    sememes: tuple[StrongSememe, ...]
    """The ones with the largest effects; empty for models that read none."""
    no_sememes: str | None
    """The reason for empty ``sememes``, or None."""


def explain_label(
    run: Path | Run, texts: Sequence[str], *, label: str | None = None, top_sememes: int = 12
) -> LabelExplanation:
    """Predict the label of an example, and measure each word and sememe as ``influence``. Effects do not add up.

    ``texts``: the N texts of the example, segmented like the training data. Other arguments as ``sememekit explain --help``.
    Raises CheckpointError, DataError: as ``load_classifier``; also for another number of texts, or one without a known word.
    Raises ConfigError: ``top_sememes`` below 1, or a label that the model does not have."""
    if top_sememes < 1:
        raise ConfigError(f"explain: --top-sememes must be 1 at least, given {top_sememes}")
    classifier = load_classifier(run, command="explain")
    task = require(classifier.task, TextClassifier, "explain")
    if label is not None and label not in task.labels:
        raise ConfigError(f"--label {label!r}: the model has the labels {', '.join(task.labels)}")
    if len(texts) != len(classifier.texts):
        wanted = " ".join(f'"{name.upper()}"' for name in classifier.texts)
        raise DataError(
            f"explain: {len(texts)} texts, where this model takes {len(classifier.texts)}: sememekit explain {run} {wanted}"
        )
    classifier.check([texts], "explain")
    cut = [classifier.words(text) for text in texts]
    vocabulary = classifier.run.vocabulary
    for name, words in zip(classifier.texts, cut, strict=True):
        if not any(word in vocabulary for word in words):
            raise DataError(f"explain: the {name} is empty or has no word that the model knows; give another text")
    ids = [vocabulary.encode(words) for words in cut]
    found = influence(task, ids, None if label is None else task.labels.index(label))
    shown = [
        ReadText(name=name, words=tuple(_word(classifier, task, *item) for item in zip(words, own, places, strict=True)))
        for name, words, own, places in zip(classifier.texts, cut, ids, found.texts, strict=True)
    ]
    strong = [
        StrongSememe(**dict(item), word=word.word, text=text.name, place=place)
        for text in shown
        for place, word in enumerate(text.words, start=1)
        for item in word.sememes
    ]
    probabilities = np.exp(found.log_probs)
    order = np.argsort(-probabilities, kind="stable")
    encoder = classifier.run.plan.encoder.name
    return LabelExplanation(
        **classifier.run.of_run,
        encoder=encoder,
        labels={task.labels[index]: float(probabilities[index]) for index in order.tolist()},
        label=task.labels[found.label],
        texts=tuple(shown),
        sememes=tuple(sorted(strong, key=lambda item: (-abs(item.effect), item.text, item.place, item.name))[:top_sememes]),
        no_sememes=no_sememes(task, encoder),
    )


def _word(classifier: Classifier, task: TextClassifier, word: str, number: int, place: PlaceInfluence | None) -> ReadWord:
    vocabulary, graph = classifier.run.vocabulary, classifier.run.graph
    read = task.word_read(int(number))
    known = word in vocabulary
    if place is None:
        return ReadWord(word=word, known=known)
    names = graph.sememes if graph is not None else ()
    sememes = [SememeOfWord(name=names[sememe], effect=effect, gradient=slope) for sememe, effect, slope in place.sememes]
    sememes.sort(key=lambda item: (-abs(item.effect), item.name))
    read_as, source = vocabulary.token(read), graph.word_sources[read] if graph is not None else None
    effects = {"effect": place.effect, "gradient": place.gradient, "without_sememes": place.without_sememes}
    return ReadWord(word=word, read_as=read_as, known=known, source=source, **effects, sememes=tuple(sememes))


HOW = (
    "Effect: nats that the log-probability of the label falls by where the word is unknown, or lacks the sememe; above 0 it "
    "speaks for the label, below 0 against it. Effects do not add up. Gradient: the same to first order."
)
