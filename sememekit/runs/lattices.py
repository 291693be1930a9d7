"""Read raw lines with a lattice model: segmentations and edge posteriors, for segment, eval and explain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, tee
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from sememekit.errors import ConfigError
from sememekit.measure import Tally
from sememekit.runs.run import Run
from sememekit.runs.uncut import refuse_unknown
from sememekit.tasks.base import require
from sememekit.tasks.lattice.model import Lattice
from sememekit.tasks.lattice.scoring import Segment
from sememekit.text.form import without_ends
from sememekit.text.reading import FaultCounter, read_named
from sememekit.text.segmenters import Segmenter, WhiteSpace
from sememekit.text.sentencepieces import SentencePieces

Decoding = Literal["viterbi", "posterior"]

LINES_AT_ONCE: Final = 64
LONGEST: Final = 400  # most tokens of a sentence; a longer line is cut, if possible after a sentence mark

_MARKS: Final = frozenset("。！？；，、.!?;,")
_BLANK: Final = "▁"


class Token(NamedTuple):
    """A token of a text: its original form, its form for the model, and whether a blank before it ends a word."""

    written: str
    read: str
    after_blank: bool


@dataclass(frozen=True)
class Reading:
    """A sentence under a lattice model, with T tokens (the end mark not counted)."""

    tokens: tuple[str, ...]
    read_as: tuple[str, ...]  # (T,) tokens as the model reads them, ``<unk>`` for unknown tokens
    after_blank: tuple[bool, ...]  # (T,) whether a blank stands before the token, so that a new word begins there
    posteriors: npt.NDArray[np.float64]  # (T + 1, L, C) posterior of each edge by its last token, the end mark included
    listed: npt.NDArray[np.bool_]  # (T + 1, L) whether the chunk is in the chunk vocabulary
    best: tuple[Segment, ...]  # the most probable path, the end mark included
    nats: float  # negative logarithm of the probability of the sentence

    @property
    def boundaries(self) -> npt.NDArray[np.float64]:
        """(T,) the probability that a chunk ends with each token; 1 for the last token."""
        ends = self.posteriors[: len(self.tokens)].sum((1, 2))
        ends[-1:] = 1.0
        return ends

    def chunks(self, decoding: Decoding) -> list[tuple[int, int]]:
        """Return for every word its first token, and the token after its last.

        ``viterbi`` takes the most probable path. ``posterior`` decides each boundary on its own and cuts if a chunk ends there
        with probability 1/2 or more, which maximises the expected number of correct boundaries. These decisions may form no
        path, so words can be longer than the chunks. Both decodings also cut at each blank of the text, even inside a chunk,
        since the model reads the text without blanks. Raises ConfigError: another decoding."""
        if decoding not in get_args(Decoding):
            raise ConfigError(f"decoding {decoding!r}: allowed are {' and '.join(get_args(Decoding))}")
        last = len(self.tokens)
        if decoding == "viterbi":
            ends = {min(segment.end, last) for segment in self.best}
        else:
            ends = set((np.flatnonzero(self.boundaries >= 0.5) + 1).tolist())
        cuts = sorted(ends | {place for place, after_blank in enumerate(self.after_blank) if after_blank} | {0, last})
        return list(pairwise(cuts)) if last else []


class LatticeReader:
    """A trained lattice model that tokenizes text like its training data."""

    def __init__(self, run: Run, task: Lattice, segmenter: Segmenter) -> None:
        self.run, self.task, self._segmenter, self._form = run, task, segmenter, run.form()
        self._characters = str(run.signature.options["segmenter"]) == "characters"

    @property
    def finds_words(self) -> bool:
        """True if its tokens are parts of words (characters or pieces), so that it can segment text without blanks."""
        return self._characters or isinstance(self._segmenter, SentencePieces)

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of a text, normalised like the data, with the blanks that end words."""
        if isinstance(self._segmenter, SentencePieces):
            return self._pieces(self._segmenter, text)
        if self._characters:
            parts = (self._form.as_written(part) for part in text.split())
            read = (zip(written, self._form.words(form), strict=True) for form, written in parts)
            return [Token(own, word, not place) for part in read for place, (own, word) in enumerate(part)]
        if isinstance(self._segmenter, WhiteSpace):
            return [Token(word, self._form.word(word), False) for word in text.split()]
        return [Token(word, word, False) for word in self._form.cut(text, self._segmenter)]

    def _pieces(self, segmenter: SentencePieces, text: str) -> list[Token]:
        form, written = self._form.as_written(" ".join(text.split()))
        pieces = segmenter.as_written(form)
        tokens, place = [], 0
        for read, (_, covered) in zip(self._form.words(piece for piece, _ in pieces), pieces, strict=True):
            own = "".join(written[place : place + len(covered)])
            tokens.append(Token(own.strip(), read, " " in covered))
            place += len(covered)
        return tokens

    def word(self, tokens: Sequence[str]) -> str:
        """Join tokens into one word: characters and pieces directly, words with ``_``."""
        return ("" if self.finds_words else "_").join(tokens)

    def text(self, tokens: Sequence[str]) -> str:
        """Join tokens into text: characters and pieces directly, words with blanks."""
        if isinstance(self._segmenter, SentencePieces):
            return "".join(tokens).replace(_BLANK, " ").strip()
        return ("" if self._characters else " ").join(tokens)

    def ngrams(self) -> frozenset[str]:
        """Return the n-grams of the chunk vocabulary as words, without n-grams with an end mark."""
        chunks, end = self.task.entries.chunks, self.run.vocabulary.token(self.task.end)
        texts = (chunks.text(index) for index in range(chunks.num_tokens, len(chunks)))
        return frozenset(self.word(text).replace(_BLANK, "") for text in texts if end not in text)

    def words(self, reading: Reading, decoding: Decoding) -> list[str]:
        found = (self.word(reading.tokens[begin:end]) for begin, end in reading.chunks(decoding))
        return [word for word in found if word]

    def read(self, texts: Sequence[str]) -> list[list[Reading]]:
        """Read each text as sentences of at most ``LONGEST`` tokens; a text without tokens has no sentence."""
        pieces = [list(_cut(self.tokens(text))) for text in texts]
        flat = [(number, piece) for number, parts in enumerate(pieces) for piece in parts]
        readings: list[list[Reading]] = [[] for _ in texts]
        found = self._read([piece for _, piece in flat])
        for (number, _), reading in zip(flat, found, strict=True):
            readings[number].append(reading)
        return readings

    def tally(self, texts: Sequence[str]) -> Tally:
        """Return nats and number of predictions for each text as one sentence with an end mark; both are 0 without tokens.

        Unlike ``tally``, ``read`` cuts long texts, since it stores every edge."""
        read = ([token.read for token in self.tokens(without_ends(text))] for text in texts)
        sentences = [np.append(self.run.vocabulary.encode(tokens), self.task.end) for tokens in read if tokens]
        return Tally(sum(float(part.sum()) for _, part in self.task.nats(sentences)), sum(map(len, sentences)))

    def _read(self, pieces: Sequence[list[Token]]) -> list[Reading]:
        """Read ``pieces`` in order; pieces of similar length go through the model together."""
        vocabulary, end = self.run.vocabulary, self.task.end
        order = sorted(range(len(pieces)), key=lambda index: len(pieces[index]))
        readings: dict[int, Reading] = {}
        for first in range(0, len(order), self.task.settings.evaluation_batch_size):
            chosen = order[first : first + self.task.settings.evaluation_batch_size]
            ids = [vocabulary.encode(token.read for token in pieces[index]) for index in chosen]
            lattices = self.task.lattices([np.append(sentence, end) for sentence in ids])
            posteriors = lattices.posteriors().double().cpu().numpy()
            listed = (lattices.chunks >= 0).cpu().numpy()
            nats = (-lattices.log_probabilities()).tolist()
            for row, (index, best) in enumerate(zip(chosen, lattices.best(), strict=True)):
                tokens = pieces[index]
                size = len(tokens) + 1
                readings[index] = Reading(
                    tuple(token.written for token in tokens),
                    tuple(vocabulary.decode(ids[row])),
                    tuple(token.after_blank for token in tokens),
                    posteriors[row, :size],
                    listed[row, :size],
                    tuple(best),
                    nats[row],
                )
        return [readings[index] for index in range(len(pieces))]


def open_reader(run: Path | Run, command: str) -> LatticeReader:
    """Load a trained lattice model, for ``command``; ConfigError for another kind."""
    loaded = Run.open(run)
    return LatticeReader(loaded, require(loaded.task, Lattice, command), loaded.segmenter())


def segment_lines(reader: LatticeReader, lines: Iterable[str], decoding: Decoding = "viterbi") -> Iterator[list[str]]:
    """The words of each line, in order; 64 lines are read before the first result. A line without tokens is unchanged."""
    rest = iter(lines)
    while group := list(islice(rest, LINES_AT_ONCE)):
        for line, readings in zip(group, reader.read(group), strict=True):
            yield [word for reading in readings for word in reader.words(reading, decoding)] or line.split()


def segment_raw(
    reader: LatticeReader, file: BinaryIO, *, decoding: Decoding = "viterbi", name: str = "stdin", faults: FaultCounter
) -> Iterator[str]:
    """Segment a stream as ``commands.segment.segment_stream`` does, with a lattice model.

    An empty line gives an empty line. A line of more than ``LONGEST`` tokens is read in parts, and a word ends at the end of
    each part. Raises DataError: the model knows no token of the first lines."""
    pieces = read_named(file, name, faults)
    first = list(islice(pieces, LINES_AT_ONCE))
    refuse_unknown(reader.run, (token.read for piece in first for token in reader.tokens(piece.text)), name)
    pieces, kept = tee(chain(first, pieces))
    for piece, words in zip(kept, segment_lines(reader, (piece.text for piece in pieces), decoding), strict=True):
        yield " ".join(words) + ("\n" if piece.ends_line else " ")


def _cut(tokens: list[Token]) -> Iterator[list[Token]]:
    """Cut into parts of at most ``LONGEST`` tokens, if possible after the last mark in the second half of a part."""
    begin = 0
    while begin < len(tokens):
        end = min(begin + LONGEST, len(tokens))
        if end < len(tokens):
            marks = [place for place in range(begin + LONGEST // 2, end) if tokens[place].written in _MARKS]
            end = marks[-1] + 1 if marks else end
        yield tokens[begin:end]
        begin = end
