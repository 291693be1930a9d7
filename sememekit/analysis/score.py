"""``sememekit score``: the loss (surprisal) of each word of a text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, tee
from pathlib import Path
from typing import NamedTuple

from pydantic import SerializeAsAny

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.files import warn
from sememekit.runs.run import OfRun, Run
from sememekit.runs.stream_nats import stream_nats, with_context
from sememekit.runs.uncut import cuts, refuse_unknown, segmenter_of_raw, warn_uncut
from sememekit.runs.writing import Writer, words_read
from sememekit.tasks.base import WordPredictor, declares
from sememekit.tasks.writing import TextWriter, predictor
from sememekit.text.form import TextForm, without_ends
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.vocabulary import Vocabulary

_LINES_AT_ONCE = 32


class ScoredToken(Record):
    """One word of a text under a model."""

    sentence: int
    """Line of the input, from 1."""
    position: int
    """Number of the word in its line, from 1; an added ``<eos>`` is the last word."""
    token: str
    """The word as it was written."""
    read_as: str
    """The word as the model reads it: ``<unk>`` for a word outside its vocabulary."""
    nats: float | None
    """Negative natural logarithm of its probability; None without context."""


class OverlaidToken(ScoredToken):
    """A scored token, also with its nats under the model with an overlay."""

    nats_overlay: float | None
    """The nats with the overlay."""


class ScoreReport(OfRun):
    """All words of a text."""

    tokens: tuple[SerializeAsAny[ScoredToken], ...]


class OverlaidScoreReport(ScoreReport):
    """All words of a text, with their nats before and after an overlay."""

    overlay: str


class _Line(NamedTuple):
    number: int
    tokens: list[str]
    ids: list[int]


def score(
    run: Path | Run,
    lines: Iterable[str],
    *,
    carry: bool = False,
    segment: bool | None = None,
    name: str = "line",
    overlay: Path | str | None = None,
) -> Iterator[ScoredToken]:
    """The loss of each word of a text, in order; without ``carry``, 32 lines are read before the first row comes.

    A model of sentences that end with ``<eos>`` reads an ``<eos>`` before each line, and predicts the first word from it; the
    final ``<eos>`` of the line is predicted too. In other models the first word of a line has no context: its nats are None.
    Words are read in the form of the data (lower case, half width, a word for numbers). With ``segment`` None, raw Chinese is
    segmented like the data of the run. Empty lines give no rows, but count as lines. With ``carry`` the state continues from
    line to line: the nats add up to the sum of ``evaluate-ppl --batch-size 1``. Messages call a line ``name``. A RunWarning
    names the first source of a pair with more words than the model reads, and Chinese without blanks that is cut or read as one
    ``<unk>``. With an ``overlay``, a file that ``lookup --change`` wrote, the rows are of ``OverlaidToken``. Other arguments as
    ``sememekit score --help``. Raises ConfigError: the task predicts no words. Raises DataError: a word that a vocabulary
    without ``<unk>`` lacks, a line that should be a pair, or a segmenter other than the run's; also, as GraphError, for an
    overlay that does not fit the run."""
    loaded = Run.open(run)
    if overlay is not None:
        pairs = zip((loaded, loaded.with_overlay(overlay).load()), tee(lines), strict=True)
        rows = zip(*(score(one, own, carry=carry, segment=segment, name=name) for one, own in pairs), strict=True)
        return (OverlaidToken(**dict(row), nats_overlay=changed.nats) for row, changed in rows)
    task = predictor(loaded.task, "score")
    if declares(task, TextWriter) and carry:
        raise ConfigError(f"--carry: {run} reads pairs, which do not continue each other; leave it out")
    segmenter = loaded.segmenter() if segment else None
    lines, where, form = iter(lines), name.removesuffix(", line"), loaded.form()
    first = list(islice(lines, _LINES_AT_ONCE))
    if not segment:
        words = [line.split() for line in first if line.strip()]
        if segmenter := segmenter_of_raw(loaded, words, where, may_cut=segment is None):
            warn(f"{where}: Chinese without blanks is cut as the data of the run were, by {segmenter.description}")
    refuse_unknown(loaded, (word for line in first for word in form.cut(line, segmenter or WhiteSpace())), where)
    lines = chain(first, lines)
    if declares(task, TextWriter):
        return _score_pairs(Writer(loaded, task, segmenter), lines, name)
    end = loaded.vocabulary.end_id if loaded.signature.end_of_sentence else None
    read = _read(lines, loaded, form, segmenter, end, name)
    return _score_carrying(task, read) if carry else _score_apart(task, read, end)


@dataclass
class OverlaySums:
    """Sums of the nats over the rows so far, without and with an overlay."""

    before: float = 0.0
    after: float = 0.0

    def passing(self, rows: Iterable[ScoredToken]) -> Iterator[ScoredToken]:
        """Yield the rows unchanged, and add up their nats."""
        for row in rows:
            self.before += row.nats or 0.0
            self.after += (row.nats_overlay if isinstance(row, OverlaidToken) else row.nats) or 0.0
            yield row

    def sentence(self, overlay: Path | str) -> str:
        """Return the sentence that a person reads."""
        told = f"log-probability of all words: {-self.before:.4f} as trained, {-self.after:.4f} with {overlay}"
        return f"{told} ({self.before - self.after:+.4f})"


def _how_to_cut(run: Run) -> str:
    return f"{'add --segment, or ' * cuts(run)}cut the lines with: sememekit segment FILE"


def _read(
    lines: Iterable[str], run: Run, form: TextForm, segmenter: Segmenter | None, end: int | None, name: str
) -> Iterator[_Line]:
    vocabulary, told = run.vocabulary, segmenter is not None
    for number, line in enumerate(lines if end is None else map(without_ends, lines), start=1):
        if segmenter is not None:
            tokens = read = form.cut(line, segmenter)
        else:
            tokens = line.split()
            read = [form.word(token) for token in tokens]
        if not tokens:
            continue
        try:
            ids = vocabulary.encode(read).tolist()
        except DataError as error:
            raise DataError(f"{name} {number}: {error}") from None
        told = told or warn_uncut(_unknown(tokens, ids, vocabulary), _how_to_cut(run))
        if end is not None:
            tokens, ids = [*tokens, vocabulary.token(end)], [*ids, end]
        yield _Line(number, tokens, ids)


def _unknown(tokens: Sequence[str], ids: Sequence[int], vocabulary: Vocabulary) -> list[str]:
    return [token for token, index in zip(tokens, ids, strict=True) if index == vocabulary.unknown_id]


def _score_pairs(writer: Writer, lines: Iterable[str], name: str) -> Iterator[ScoredToken]:
    task, vocabulary = writer.task, writer.task.vocabulary
    cut, told = False, writer.segmenter is not None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        texts = line.rstrip("\r\n").split("\t")
        if len(texts) != 2:
            raise DataError(
                f"{name} {number}: {len(texts) - 1} tabs, where a line is a source, one tab and a target; a text can be "
                "written for a source alone by 'sememekit generate RUN --input FILE'"
            )
        source, target = writer.read(texts[0], f"{name} {number}"), writer.words(texts[1])
        if not cut and (most := words_read(writer.run, len(source))) < len(source):
            cut, of = True, f"this source of {len(source):,} (task.read_words)"
            warn(f"{name} {number}: the model reads the first {most:,} words of {of}")
        try:
            ids, words = vocabulary.encode(source), [*vocabulary.encode(target).tolist(), task.end]
        except DataError as error:
            raise DataError(f"{name} {number}: {error}") from None
        read = [*ids.tolist(), *words[:-1]]
        told = told or warn_uncut(_unknown([*source, *target], read, vocabulary), _how_to_cut(writer.run))
        nats = task.teacher_forced(ids, words).nats.tolist()
        yield from _rows(vocabulary, _Line(number, [*target, vocabulary.token(task.end)], words), nats)


def _score_apart(task: WordPredictor, lines: Iterator[_Line], end: int | None) -> Iterator[ScoredToken]:
    """Score each line from a fresh state, 32 lines in parallel."""
    while group := list(islice(lines, _LINES_AT_ONCE)):
        order = sorted(range(len(group)), key=lambda index: -len(group[index].ids))
        streams = [with_context(group[index].ids, end) for index in order]
        nats = dict(zip(order, stream_nats(task, streams)[0], strict=True))
        for index, line in enumerate(group):
            yield from _rows(task.vocabulary, line, nats[index])


def _score_carrying(task: WordPredictor, lines: Iterator[_Line]) -> Iterator[ScoredToken]:
    """Score the lines as one text: each line continues from the last word and the state before; the first word has no nats."""
    state, before = task.encoder.start(1), None
    for line in lines:
        stream = [before, *line.ids] if before is not None else line.ids
        (nats,), state = stream_nats(task, [stream], state)
        before = line.ids[-1]
        yield from _rows(task.vocabulary, line, nats)


def _rows(vocabulary: Vocabulary, line: _Line, nats: list[float]) -> Iterator[ScoredToken]:
    """Return the rows of a line; only the first word may lack nats."""
    values = [*[None] * (len(line.ids) - len(nats)), *nats]
    for position, (token, index, value) in enumerate(zip(line.tokens, line.ids, values, strict=True), start=1):
        read_as = vocabulary.token(index)
        yield ScoredToken(sentence=line.number, position=position, token=token, read_as=read_as, nats=value)
