"""``sememekit explain``: why a trained model expects certain next words."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.analysis.explanations.sememe_mass import COUNTS, MIN_COUNT
from sememekit.analysis.explanations.sememes import (
    AskedWord,
    ContextSememe,
    PredictedWord,
    SememeReader,
    SememeViews,
    asked_word,
    check_numbers,
    known_word,
    ranked,
    senses_of,
    views,
)
from sememekit.analysis.senses.tagger import LineReader
from sememekit.config import Record
from sememekit.decoders.base import Sensed
from sememekit.errors import ConfigError, DataError
from sememekit.progress import OneStage, Progress, silent
from sememekit.runs.published import PublishedRun
from sememekit.runs.run import OfRun, Run
from sememekit.runs.uncut import CUT_FIRST, cuts, refuse_unknown, segmenter_of_raw, warn_uncut
from sememekit.sememes.overlay import ChangedSense
from sememekit.tasks.base import WordPredictor, require
from sememekit.text.form import CLOSING, without_ends

BLANKS: Final = "blanks"


class ContextWord(Record):
    """One word of the context."""

    word: str
    """The given word, or a word from the segmenter."""
    read_as: str
    """The word of the vocabulary that the model read in its place."""
    known: bool
    """True if the model knows the word; it reads other words as the unknown word."""


class SenseChange(ChangedSense):
    """A sense that an overlay changes, with its share of the word's probability; None for models without senses."""

    share_before: float | None
    """Share of the sense in the probability of the word, as trained; None for models without senses."""
    share_after: float | None
    """The same share with the overlay."""


class ChangedWord(Record):
    """A word with changed senses: its probability as the next word, before and after; ranks among all words, from 1."""

    before: PredictedWord
    """The word as trained."""
    after: PredictedWord
    """The word with the overlay."""
    rank_before: int
    """Rank of its probability among all words as trained, from 1."""
    rank_after: int
    """Rank of its probability with the overlay, from 1."""


class ChangedSememe(Record):
    """A sememe of changed senses, before and after; ranks are among all sememes by gain."""

    before: ContextSememe
    """The sememe as trained."""
    after: ContextSememe
    """The sememe with the overlay."""
    rank_before: int
    """Rank of its gain among all sememes as trained, from 1."""
    rank_after: int
    """Rank of its gain with the overlay, from 1."""


class Explanation(OfRun, SememeViews):
    """The words that a model expects after a context, and why; ``run`` names the overlay, too, if there is one."""

    decoder: str
    """Name of the output layer."""
    context: tuple[ContextWord, ...]
    """The words as the model read them."""
    segmentation: str
    """The method that cut the context into words."""
    words: tuple[PredictedWord, ...]
    """The most probable next words, by falling probability."""
    mean: str | None = None
    """The text or counts of the mean masses; None without masses."""
    min_count: int = MIN_COUNT
    """Sememes of fewer tokens are uncertain."""
    no_senses: str | None
    """The reason if there are no senses, otherwise None."""
    asked: AskedWord | None = None
    """The requested word; None without one."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Words of the context that the model does not know, each once."""
        return tuple(dict.fromkeys(word.word for word in self.context if not word.known))


class OverlayExplanation(Explanation):
    """An explanation with an overlay, and the differences from the explanation without the overlay."""

    overlay: str
    """Name of the overlay."""
    before: Explanation
    """The explanation of the run as it was trained."""
    changes: tuple[SenseChange, ...]
    """The changed senses."""
    changed_words: tuple[ChangedWord, ...]
    """Words with changed senses, by falling difference of their probabilities."""
    changed_sememes: tuple[ChangedSememe, ...]
    """Sememes that a changed sense has before or after, by falling difference of their probabilities; empty without senses."""


@dataclass(frozen=True)
class _Reading:
    """The predictions of a run after a context."""

    run: Run
    context: tuple[ContextWord, ...]
    segmentation: str
    log_probs_V: Tensor
    best: list[int]  # ids of the most probable words
    predicted: dict[int, PredictedWord]  # id -> word, for the most probable and the requested words
    shares: dict[int, float]  # number of a sense -> its share, for these words
    sememes: list[ContextSememe] | None  # all, in the order of the graph; None for models without senses
    mean: str | None

    def rank(self, word: int) -> int:
        return 1 + int((self.log_probs_V > self.log_probs_V[word]).sum())


def explain(
    run: Path | Run,
    context: str,
    *,
    top: int = 10,
    top_sememes: int = 12,
    min_count: int = MIN_COUNT,
    mean: str = COUNTS,
    data: Path | None = None,
    overlay: Path | None = None,
    word: str | None = None,
    right: str = "",
    progress: Progress = silent,
) -> Explanation:
    """Return the words that a model expects after a context, with their senses and sememes; with an ``overlay`` an
    ``OverlayExplanation``, with the changed words, senses and sememes before and after.

    The state is zero before the first word. Words stand between blanks; Chinese without blanks is segmented like the data of
    the run, and refused if the data had blanks between words. Words are normalised like the data (lower case, one word for
    numbers). For the tagged month of People's Daily, words outside the lexicon are cut as in the training text.

    With ``word`` the result has its senses given the context and the words ``right`` after it (``AskedWord``).

    Arguments as ``sememekit explain --help``; ``progress`` is called with ("mean", done, total) while the split ``mean`` of
    ``data`` is read. Raises ConfigError: ``top`` or ``top_sememes`` below 1, an unknown split, a task that predicts no words,
    or an overlay that does not fit the run. Raises GraphError: words or sememes of the overlay do not fit. Raises DataError: a
    context without known words, a word that a vocabulary without ``<unk>`` lacks, absent data of the split, or no overlay."""
    check_numbers(top=top, top_sememes=top_sememes, min_count=min_count)
    show = partial(progress, "mean")
    loaded = Run.open(run)
    if overlay is None:
        if word is None:
            return _explanation(_reading(loaded, context, top, (), mean, data, show), str(run), top_sememes, min_count)
        named = known_word(loaded, word)
        reading = _reading(loaded, context, top, [named], mean, data, show)
        left, given = [item.word for item in reading.context], reading.predicted[named]
        found = asked_word(loaded, left, given, reading.rank(named), right.split())
        return _explanation(reading, str(run), top_sememes, min_count).model_copy(update={"asked": found})
    if word is not None or right:
        raise ConfigError("--overlay compares the words of its changes; leave out --word and --right")
    changed = loaded.with_overlay(overlay)
    asked = [loaded.vocabulary.id(word) for word in dict.fromkeys(sense.word for sense in changed.changed_senses)]
    after, before = (_reading(one, context, top, asked, mean, data, show) for one in (changed, loaded))
    assert changed.graph is not None, "an overlay changes a graph"
    first = changed.graph.sense_offsets  # senses keep their numbers
    numbers = [int(first[loaded.vocabulary.id(sense.word)]) + sense.sense - 1 for sense in changed.changed_senses]
    return OverlayExplanation(
        **dict(_explanation(after, f"{run} with {overlay}", top_sememes, min_count)),
        overlay=str(overlay),
        before=_explanation(before, str(run), top_sememes, min_count),
        changes=tuple(
            SenseChange(**dict(sense), share_before=before.shares.get(number), share_after=after.shares.get(number))
            for sense, number in zip(changed.changed_senses, numbers, strict=True)
        ),
        changed_words=_changed_words(asked, before, after),
        changed_sememes=_changed_sememes(changed.changed_senses, before, after),
    )


def _reading(
    loaded: Run, context: str, top: int, asked: Sequence[int], mean: str, data: Path | None, progress: OneStage
) -> _Reading:
    """Predict the ``top`` words after a context, and the ``asked`` words; errors as ``explain``."""
    task = require(loaded.task, WordPredictor, "explain")
    words, segmentation, numbers = _read(loaded, context)
    ids = torch.from_numpy(numbers)
    with torch.no_grad():
        hidden = task.contexts(ids[:, None].to(task.device), task.encoder.start(1))[0][-1, 0]
        log_probs = task.decoder.log_probs(hidden).double().cpu()
        best = log_probs.topk(min(top, len(log_probs))).indices.tolist()
        shown = list(dict.fromkeys([*best, *asked]))
        number = torch.tensor(shown, device=task.device)
    probabilities = list(zip(shown, log_probs[shown].exp().tolist(), strict=True))
    shares, sememes, over = dict[int, float](), None, None
    if not isinstance(task.decoder, Sensed) or loaded.graph is None:
        predicted = [PredictedWord(word=loaded.vocabulary.token(word), probability=value) for word, value in probabilities]
    else:
        with torch.no_grad():
            attribution = task.decoder.sense_attribution(hidden, number)
        empty = torch.zeros_like(hidden)
        reader = loaded.once(("sememes", mean, data), lambda: SememeReader(loaded, task, empty, mean, data, progress))
        sememes, over = reader.read(hidden, attribution), reader.mean
        graph, priors = loaded.graph, reader.priors(shown)
        predicted = []
        for (word, value), own in zip(probabilities, attribution.word_senses, strict=True):
            given, source = graph.words[word], graph.word_sources[word]
            annotated, senses = bool(graph.annotated[word]), senses_of(graph, own, sememes, priors)
            predicted.append(PredictedWord(word=given, probability=value, source=source, annotated=annotated, senses=senses))
        shares = {sense: share for senses in attribution.word_senses for sense, share in senses}
    found = dict(zip(shown, predicted, strict=True))
    return _Reading(loaded, tuple(words), segmentation, log_probs, best, found, shares, sememes, over)


def _explanation(reading: _Reading, run: str, top_sememes: int, min_count: int) -> Explanation:
    loaded, found, reason = reading.run, SememeViews(), None
    decoder = loaded.plan.decoder.name if loaded.plan.decoder else ""
    if reading.sememes is None:
        reason = (
            f"the output layer {decoder!r} gives words a probability at once; it knows of no senses or sememes; a lexicon "
            "shows them: --source open"
        )
    else:
        found = views(reading.sememes, top_sememes)
    return Explanation(
        **dict(found),
        run=run,
        checkpoint=loaded.snapshot,
        decoder=decoder,
        context=reading.context,
        segmentation=reading.segmentation,
        words=tuple(reading.predicted[word] for word in reading.best),
        mean=reading.mean,
        min_count=min_count,
        no_senses=reason,
    )


def _changed_words(asked: Sequence[int], before: _Reading, after: _Reading) -> tuple[ChangedWord, ...]:
    found = []
    for word in asked:
        ranks = {"rank_before": before.rank(word), "rank_after": after.rank(word)}
        found.append(ChangedWord(before=before.predicted[word], after=after.predicted[word], **ranks))
    return tuple(sorted(found, key=lambda one: -abs(one.after.probability - one.before.probability)))


def _changed_sememes(changes: Sequence[ChangedSense], before: _Reading, after: _Reading) -> tuple[ChangedSememe, ...]:
    if before.sememes is None or after.sememes is None:
        return ()
    names = dict.fromkeys(name for sense in changes for name in (*sense.before, *sense.after))
    first, second = ({item.name: (rank, item) for rank, item in ranked(one)} for one in (before.sememes, after.sememes))
    found = [
        ChangedSememe(before=first[name][1], after=second[name][1], rank_before=first[name][0], rank_after=second[name][0])
        for name in names
    ]
    return tuple(sorted(found, key=lambda one: -abs(one.after.mass - one.before.mass)))


def _read(loaded: Run, context: str) -> tuple[list[ContextWord], str, NDArray[np.int64]]:
    """Return the words of a context, how they were cut, and the ids that the model reads."""
    vocabulary, form = loaded.vocabulary, loaded.form()
    context = context.removeprefix("\ufeff")
    words, segmentation = context.split(), BLANKS
    if (end := vocabulary.end_id) is not None and loaded.signature.end_of_sentence:  # that of a sentence before is read, too
        words = without_ends(context).split() + [vocabulary.token(end)] * context.rstrip().endswith(CLOSING)
    if "\0" in context:
        raise DataError("explain: the context holds a NUL character; take it out")
    if not words:
        raise DataError('explain: the context is empty; give the words before the one to predict, as in "去年 美国 贸易 逆差"')
    if isinstance(loaded, PublishedRun):  # words as tag reads them; it reads raw Chinese in its own pieces
        line = LineReader(loaded).read(words)
        bounds = pairwise((*line.place, len(line.ids)))
        spelled = [[vocabulary.token(number) for number in line.ids[begin:end]] for begin, end in bounds]
        unknown = vocabulary.unknown_id is not None and vocabulary.token(vocabulary.unknown_id)
        read = [
            ContextWord(word=word, read_as=" ".join(pieces), known=unknown not in pieces)
            for word, pieces in zip(words, spelled, strict=True)
        ]
        return read, BLANKS, np.array(line.ids, dtype=np.int64)
    if segmenter := segmenter_of_raw(loaded, [words], "explain"):
        words, segmentation = form.cut(" ".join(words), segmenter), "the segmenter of the training data"
    elif form.classes and cuts(loaded) and not all(form.word(word) in vocabulary for word in words):
        own, whole = loaded.segmenter(), words
        words = [part for word in whole for part in ([word] if form.word(word) in vocabulary else own.segment(form.text(word)))]
        segmentation = BLANKS if words == whole else "blanks, and words outside the lexicon as in the training text"
    read = []
    for given in words:
        normal = form.word(given)
        known = normal in vocabulary
        if not known and vocabulary.unknown_id is None:
            raise DataError(
                f"explain: {given!r} is not in the vocabulary of the model, which has no <unk> for such words; leave it out"
            )
        read.append(ContextWord(word=given, read_as=vocabulary.token(vocabulary.id(normal)), known=known))
    warn_uncut([word.word for word in read if not word.known], CUT_FIRST)
    refuse_unknown(loaded, map(form.word, words), "explain")
    return read, segmentation, vocabulary.encode(word.read_as for word in read)
