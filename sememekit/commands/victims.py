"""Who is attacked: a run folder of ours, or any function that gives texts probabilities."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sememekit.attack import Victim
from sememekit.build import load_run, prepare_torch
from sememekit.commands.predict import load_classifier
from sememekit.commands.score import stream_nats, with_context
from sememekit.config import check_code, load_variant
from sememekit.errors import ConfigError
from sememekit.tasks.base import word_predictor
from sememekit.text.examples import EXAMPLE_SETS


@dataclass(frozen=True)
class NamedVictim:
    """A victim, and what tells it from others.

    Attributes:
        victim: to ask.
        identity: what ``attack.json`` keeps: kind, name, and for a run the snapshot.
        num_fields: texts that an example must have, where that is known.
        spelled: other spellings of its labels, as the data set of a run has them: ``1`` for positive.
    """

    victim: Victim
    identity: dict[str, Any]
    num_fields: int | None
    spelled: Mapping[str, str]


def open_victim(
    name: str,
    *,
    labels: Sequence[str] = (),
    batch_size: int = 512,
    which: Literal["best", "last"] = "best",
    device: str = "auto",
) -> NamedVictim:
    """Open a victim.

    Args:
        name: a run folder, or ``module:function``; the module may lie in the working folder. A function may carry its label
            names as an attribute ``labels``, and the words that it knows, most frequent first, as ``words``.
        labels: names of the labels, where the function does not carry them.
        batch_size: texts in one call at most.
        which, device: of a run.

    Raises:
        ConfigError: no such function, no labels, or a run that classifies no texts.
        CheckpointError: no run, or a torn one.
    """
    if ":" in name and not Path(name).exists():
        with _working_folder_importable():
            function = load_variant("victim", name, {})
        if not callable(function):
            raise ConfigError(f"victim {name!r} is no function; it must take a list of texts and give probabilities")
        found = tuple(labels) or tuple(getattr(function, "labels", ()))
        if len(found) < 2:
            raise ConfigError(f"victim {name!r}: name its labels in the order of its columns, as in --labels negative,positive")
        words = getattr(function, "words", None)
        victim = Victim(function, found, name=name, batch_size=batch_size, words=words)
        return NamedVictim(victim, {"kind": "function", "name": name, "labels": list(found)}, None, {})
    classifier = load_classifier(Path(name), which=which, device=device, command="attack")
    if labels and tuple(labels) != classifier.labels:
        raise ConfigError(f"--labels: the run {name} has its own labels: {', '.join(classifier.labels)}; leave --labels out")
    victim = Victim(
        classifier.probabilities,
        classifier.labels,
        name=name,
        batch_size=batch_size,
        words=classifier.run.vocabulary.tokens,
    )
    identity = {"kind": "run", "name": name, "snapshot": classifier.run.snapshot, "labels": list(classifier.labels)}
    check_code({"dataset": classifier.run.folder.data_signature().dataset}, f"{name}/data.json")
    kind = load_variant("data set", classifier.run.folder.data_signature().dataset, EXAMPLE_SETS)
    return NamedVictim(victim, identity, len(classifier.texts), kind.spelled)


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """The console script does not look for modules where it is called; a victim of one's own lies just there."""
    here = os.getcwd()
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)


class SentenceNats:
    """Sentences under one of our language models. A word that it does not know is tried in lower case."""

    def __init__(self, run: Path, device: str = "auto") -> None:
        """Load the model.

        Raises:
            CheckpointError: no run, or a torn one.
            ConfigError: its task predicts no words.
        """
        self._loaded = load_run(run, device=device)
        self._task = word_predictor(self._loaded.task, "attack --lm")
        prepare_torch(self._loaded.plan.run.model_copy(update={"device": device}))
        ends = self._loaded.folder.data_signature().end_of_sentence
        self._end = self._loaded.vocabulary.end_id if ends else None
        self.snapshot = self._loaded.snapshot

    def __call__(self, sentences: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """(N,) nats of whole sentences."""
        return np.array([sum(nats) for nats in self._by_word(sentences)])

    def totals(self, sentences: Sequence[Sequence[str]]) -> tuple[float, int]:
        """Nats of all sentences together, and how many predictions they are the sum of."""
        nats = self._by_word(sentences)
        return sum(map(sum, nats)), sum(map(len, nats))

    def _by_word(self, sentences: Sequence[Sequence[str]]) -> list[list[float]]:
        streams = [with_context(self._ids(words), self._end) for words in sentences]
        order = sorted((index for index, stream in enumerate(streams) if len(stream) > 1), key=lambda i: -len(streams[i]))
        found: list[list[float]] = [[] for _ in streams]
        for begin in range(0, len(order), 256):
            part = order[begin : begin + 256]
            for index, nats in zip(part, stream_nats(self._task, [streams[index] for index in part]), strict=True):
                found[index] = nats
        return found

    def _ids(self, words: Sequence[str]) -> list[int]:
        vocabulary = self._loaded.vocabulary
        read = [word if word in vocabulary else word.lower() for word in words]
        ids = vocabulary.encode(read).tolist()
        return [*ids, self._end] if self._end is not None else ids
