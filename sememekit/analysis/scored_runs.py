"""Scores of runs on a text, unit by unit, with their signatures: the common part of ``evaluate-ppl`` and ``compare``."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from sememekit.analysis.word_groups import WordKind
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.measure import PROTOCOL_VERSION, Tally
from sememekit.progress import Progress, silent
from sememekit.protocols.adaptation import Adaptation, AdaptationReport, make_scorer
from sememekit.runs.run import Run
from sememekit.tasks.base import WordPredictor, check_declares, require
from sememekit.tasks.scoring import SENTENCES, UnitScores, stream_scoring


def perplexity_signature(
    data: PreparedData, split: str, tokens: int, columns: int, adaptation: Mapping[str, str] | None = None
) -> str:
    """Return all that must agree for comparable perplexities, as one line ``name:value|name:value``.

    The text is named by the start of the SHA-256 of its ids, the vocabulary by its fingerprint. ``chunk:any`` says that the
    value does not depend on how many tokens are read at once, ``log_shift:none`` that nothing is added to a probability.
    ``adaptation`` has the parts that a cache or dynamic evaluation adds or replaces; it is empty without both."""
    signature, size = data.signature, data.signature.splits[split]
    parts = {
        "protocol": PROTOCOL_VERSION,
        "data": signature.dataset,
        "split": split,
        "text": size.sha256[:12],
        "tokens": tokens,
        "vocabulary": f"{signature.vocabulary}/{signature.vocabulary_size}",
        "unk": f"{size.unknown_rate:.4f}",
        "segmenter": signature.segmenter,
        "lexicon": signature.lexicon[:12] if signature.lexicon else "none",
        "eos": "predicted" if signature.end_of_sentence else "none",
        "columns": columns,
        "state": "carried",
        "chunk": "any",
        "log_shift": "none",
        **(adaptation or {}),
    }
    return _line(parts)


def of_text(signature: str, *, adapted: bool = True) -> str:
    """A signature without the parts of the model: the rule that sums the paths of a lattice, and intended differences. With
    ``adapted`` the parts of a cache or dynamic evaluation are kept."""
    left_out = ("marginal",) if adapted else ("marginal", "cache", "dynamic")
    return "|".join(part for part in signature.split("|") if part.split(":", 1)[0] not in left_out)


def label_signature(data: PreparedData, split: str) -> str:
    """Return all that must agree for comparable accuracies, in one line: the examples of the split with their gold labels.

    ``text`` is the start of the SHA-256 over the checksums of the files of the split. ``examples`` has their number, and the
    start of the SHA-256 over their lengths in words and their labels. The vocabulary is left out, since classifiers with other
    vocabularies label the same texts. ``data`` must have labels."""
    signature, summary = data.signature, data.signature.examples
    assert summary is not None
    assert summary.labels is not None
    found = summary.splits[split]
    files = [source.sha256 for source in signature.sources if source.split in (split, "all")]
    return _line(
        {
            "metric": "accuracy",
            "data": signature.dataset,
            "split": split,
            "text": hashlib.sha256("\n".join(files).encode()).hexdigest()[:12],
            "examples": f"{found.sha256[:12]}/{found.examples}",
            "labels": "/".join(summary.labels),
            "segmenter": signature.segmenter,
        }
    )


def _line(parts: Mapping[str, object]) -> str:
    return "|".join(f"{name}:{str(value).replace('|', '/')}" for name, value in parts.items())


Sums = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]  # values and number of predictions, unit by unit: (U,) each


@dataclass(frozen=True)
class TextReading:
    """The text to score and the way to read it; see ``evaluate_ppl``."""

    split: str = "test"
    data: Path | None = None
    batch_size: int | None = None
    adaptation: Adaptation | None = None


class TextSums:
    """Sums over a scored text: by target word, by unit (``units``: of all words, then of each kind), by term of the loss."""

    def __init__(self, num_units: int, num_words: int, kinds: Sequence[WordKind] = ()) -> None:
        self._nats_V, self._counts_V = np.zeros(num_words), np.zeros(num_words, dtype=np.int64)
        self._chosen: list[WordKind | None] = [None, *kinds]
        self.units: list[Sums] = [(np.zeros(num_units), np.zeros(num_units, dtype=np.int64)) for _ in self._chosen]
        self._parts: dict[str, float] = {}

    def add(self, scores: UnitScores) -> None:
        """Add some predictions in order, so that sums are the same to the last bit."""
        words = scores.words
        if words is not None:
            self._nats_V += np.bincount(words, scores.values, minlength=len(self._nats_V))
            self._counts_V += np.bincount(words, minlength=len(self._nats_V))
        for (values_U, counts_U), kind in zip(self.units, self._chosen, strict=True):
            own = slice(None) if kind is None or words is None else kind.words[words]
            if kind is not None and kind.units is not None:
                own = kind.units[scores.units]
            np.add.at(values_U, scores.units[own], scores.values[own])
            np.add.at(counts_U, scores.units[own], scores.counts[own])
        for name, nats in scores.parts.items():
            self._parts[name] = self._parts.get(name, 0.0) + nats

    @property
    def total(self) -> Tally:
        """Sums over the whole text: over words if single words have values, otherwise over units."""
        values, counts = (self._nats_V, self._counts_V) if self._counts_V.any() else self.units[0]
        return Tally(float(values.sum()), int(counts.sum()))

    def of(self, words: npt.NDArray[np.bool_]) -> Tally:
        """The predictions of some words (V,)."""
        return Tally(float(self._nats_V[words].sum()), int(self._counts_V[words].sum()))

    @property
    def parts(self) -> dict[str, float] | None:
        """The perplexity of each term of the loss, or None without terms."""
        return {name: Tally(nats, self.total.count).perplexity for name, nats in self._parts.items()} or None


class RunText:
    """A text as one run reads it and, after ``score``, its sums under that run. ``scoring``: how the task, or a cache or
    dynamic evaluation, reads the text; ``num_predictions``: the number of tokens, after ``score`` of predictions."""

    sums: TextSums
    adaptation: AdaptationReport | None = None

    def __init__(self, run: Run, text: TextReading, command: str, figures: Sequence[str], grouped: bool) -> None:
        """Args and errors as ``open_texts``."""
        self.run, self.text, self.data, adaptation = run, text, run.data(text.data), text.adaptation
        scoring = run.task.scored(self.data, text.split, text.batch_size or (1 if adaptation else None))
        if scoring is None or scoring.figure not in figures:
            check_declares(type(run.task), WordPredictor, command)
        assert scoring is not None
        cache, dynamic = (adaptation.cache, adaptation.dynamic) if adaptation else (None, None)
        asked = {"by": grouped, "overlay": grouped, "cache": cache, "dynamic": dynamic, "batch_size": text.batch_size}
        if any(asked.get(name) for name in scoring.without):
            options = (f"--{name.replace('_', '-')}" for name in scoring.without)
            raise ConfigError(f"{run} {scoring.how}; leave out {', '.join(options)}")
        self.scoring, self.num_predictions = scoring, len(self.data.tokens(text.split))

    @property
    def signature(self) -> str:
        if self.scoring.figure == "accuracy":
            return label_signature(self.data, self.text.split)
        scoring = self.scoring
        return perplexity_signature(self.data, self.text.split, self.num_predictions, scoring.columns, scoring.reading)

    @property
    def side(self) -> tuple[str, str]:
        """Return the name of the run and its signature, a side of ``check_comparable``."""
        return str(self.run), f"{of_text(self.signature)}|dtype:{self.run.settings.dtype}"

    def score(self, kinds: Sequence[WordKind], progress: Progress) -> None:
        """Score the text. Raises ConfigError: dynamic evaluation diverged."""
        run, data, split, columns, reader = self.run, self.data, self.text.split, self.scoring.columns, None
        self.sums, tokens = TextSums(self.scoring.num_units, len(run.vocabulary), kinds), data.tokens(split)
        with run.autocast():
            if self.text.adaptation is not None:
                task = require(run.task, WordPredictor, "evaluate-ppl")
                reader = make_scorer(task, data, run.path, self.text.adaptation, run.settings.dtype, columns, progress)
                segments = partial(reader.segments, tokens, columns)
                self.scoring = stream_scoring(data, split, segments, columns, reader.signature())
            for part in self.scoring.chunks(partial(progress, self.scoring.counted)):
                self.sums.add(part)
            if reader is not None:
                self.adaptation = reader.report(tokens, columns, progress)
        self.num_predictions = self.sums.total.count
        if reader is not None and reader.dynamic is not None and not np.isfinite(self.sums.total.perplexity):
            raise ConfigError(
                f"dynamic evaluation diverged: the perplexity of {split} is not finite at a rate of "
                f"{reader.dynamic.rate:g}; use a smaller --set dynamic.rate, or find one with --tune"
            )


def open_texts(
    runs: Sequence[Run], text: TextReading, command: str, *, figures: Sequence[str] = ("perplexity",), grouped: bool = False
) -> list[RunText]:
    """A text as several runs read it; nothing is scored yet. ``grouped``: whether words will be grouped. Raises ConfigError: a
    run without such a figure; different figures, signatures or dtypes; or an unsuitable option. Raises DataError: the data are
    absent, lack the split, or have another vocabulary."""
    texts = [RunText(run, text, command, figures, grouped) for run in runs]
    for other in texts[1:]:
        check_comparable(texts[0].side, other.side)
    return texts


def score_texts(texts: Sequence[RunText], kinds: Sequence[WordKind] = (), progress: Progress = silent) -> None:
    """Score the text by each run, with sums of some kinds of words. Raises ConfigError: as ``score``, or signatures differ."""
    for one in texts:
        one.score(kinds, progress)
        check_comparable(texts[0].side, one.side)


_OPTIONS: Final = {"columns": "--batch-size", "dtype": "--dtype"}  # parts of a signature that an option can make equal


def check_comparable(first: tuple[str, str], other: tuple[str, str]) -> None:
    """Raise ConfigError if the figures of two runs are not of the same text by the same rule. The message names all
    differences, and for columns and dtype the option that makes them agree."""
    sides = [dict(part.split(":", 1) for part in signature.split("|")) for _, signature in (first, other)]
    names = [name for name in {**sides[0], **sides[1]} if sides[0].get(name) != sides[1].get(name)]
    if not names:
        return
    if ("metric" in sides[0]) != ("metric" in sides[1]):
        labels, texts = (first[0], other[0]) if "metric" in sides[0] else (other[0], first[0])
        raise ConfigError(
            f"{labels} is a classifier and {texts} is not, so they have no metric in common; compare models of one task"
        )
    differing = "; ".join(f"{name} is {sides[0].get(name, 'none')} and {sides[1].get(name, 'none')}" for name in names)
    advice = f"evaluate each alone: sememekit {'eval' if 'metric' in sides[0] else 'evaluate-ppl'} RUN"
    if "state" in names and SENTENCES["state"] in (sides[0]["state"], sides[1]["state"]):
        advice += "; beside lattices belongs a plain LSTM over sentences: --task lattice --set task.longest_chunk=1"
    if _OPTIONS.keys() >= set(names):
        advice = "add " + " ".join(f"{_OPTIONS[name]} {sides[0][name]}" for name in names)
    raise ConfigError(f"{first[0]} and {other[0]} cannot be compared in one table: {differing}; {advice}")
