"""``sememekit explain`` for lattice models: edges with their posteriors, and what each embedding of a word is used for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.runs.lattices import Decoding, LatticeReader, Reading, open_reader
from sememekit.runs.run import Which
from sememekit.text.vocabulary import UNKNOWN

LEAST: Final = 0.005
"""Edges below this posterior are left out of the list and the picture."""

_AROUND: Final = 6
"""Tokens of context on each side."""


class LatticeToken(Record):
    """A token of a sentence.

    Attributes:
        text: as it was written.
        read_as: the word of the vocabulary that the model read.
        known: whether the model knows it.
        boundary: the probability that a chunk ends with it.
    """

    text: str
    read_as: str
    known: bool
    boundary: float


class LatticeEdge(Record):
    """An edge of a lattice.

    Attributes:
        begin, end: its first token and the one behind its last, from 0.
        copy_number: which embedding of the chunk, from 1.
        text: the chunk.
        probability: posterior of the edge: the share of the sentence's probability whose paths go over it.
        listed: whether the chunk is in the chunk vocabulary; others have the probability of the model of token sequences.
        best: whether the most probable path goes over it.
    """

    begin: int
    end: int
    copy_number: int
    text: str
    probability: float
    listed: bool
    best: bool


class LatticeSentence(Record):
    """A sentence.

    Attributes:
        tokens: its T tokens.
        edges: those with a posterior of 0.005 or more and those of the most probable path, by beginning, end and copy. An edge
            that takes the end mark along is shown without it.
        viterbi, posterior: its words, by the most probable path and by the most probable answer at each place.
        nats: negative logarithm of its probability, end mark included.
    """

    tokens: tuple[LatticeToken, ...]
    edges: tuple[LatticeEdge, ...]
    viterbi: tuple[str, ...]
    posterior: tuple[str, ...]
    nats: float


class LatticeExplanation(Record):
    """What a lattice model sees in a text.

    Attributes:
        run, checkpoint: the run folder and its snapshot.
        marginal: what the probabilities of the model are: a sum over segmentations, and by which rule states merge.
        longest: L, tokens of a chunk at most.
        copies: E, embeddings of a chunk at most.
        sentences: one, or several for a text of more tokens than are read at once.
    """

    run: str
    checkpoint: str
    marginal: str
    longest: int
    copies: int
    sentences: tuple[LatticeSentence, ...]


class EmbeddingContext(Record):
    """An occurrence of a word where one of its embeddings wins.

    Attributes:
        before, after: what stands beside it, as the model reads it.
        probability: posterior of this embedding among those of the word.
    """

    before: str
    after: str
    probability: float


class EmbeddingUse(Record):
    """One embedding of a word.

    Attributes:
        number: from 1.
        sense: part of speech and gloss, or sememes, of the sense that it began as; None for embeddings without.
        wins: occurrences where it has the largest posterior.
        mean: its mean posterior over all occurrences.
        contexts: some of those occurrences, evenly spaced over the text.
    """

    number: int
    sense: str | None
    wins: int
    mean: float
    contexts: tuple[EmbeddingContext, ...]


class WordEmbeddings(Record):
    """What the embeddings of a word are used for (Table 4, Buckman and Neubig 2018).

    Attributes:
        word: as the vocabulary has it.
        occurrences: in the text; of a word inside a longer chunk the share that stands alone decides.
        embeddings: of the word.
    """

    word: str
    occurrences: int
    embeddings: tuple[EmbeddingUse, ...]


class EmbeddingsReport(Record):
    """Where each embedding of some words wins.

    Attributes:
        run, checkpoint: the run folder and its snapshot.
        split: the text that was looked through.
        words: in the order in which they were asked for.
    """

    run: str
    checkpoint: str
    split: str
    words: tuple[WordEmbeddings, ...]


def explain_lattice(run: Path, text: str, *, device: str = "auto", which: Which = "best") -> LatticeExplanation:
    """The lattice of a raw text under a trained model.

    Args:
        run: the run folder of a lattice model.
        text: cut into tokens as the data of the run were.
        device: ``auto``, ``cpu`` or ``cuda``.
        which: the best weights by validation, or the last.

    Raises:
        CheckpointError: no run, or a torn one.
        ConfigError: the run is no lattice model.
        DataError: an empty text.
    """
    reader = open_reader(run, "explain", device=device, which=which)
    readings = reader.read([text])[0]
    if not readings:
        raise DataError('explain: the text is empty; give a sentence, as in "去年美国贸易逆差"')
    return LatticeExplanation(
        run=str(run),
        checkpoint=reader.run.snapshot,
        marginal=reader.task.marginal,
        longest=reader.task.settings.longest_chunk,
        copies=reader.task.entries.most_copies,
        sentences=tuple(_sentence(reader, reading) for reading in readings),
    )


def _sentence(reader: LatticeReader, reading: Reading) -> LatticeSentence:
    size = len(reading.tokens)
    taken = {(segment.begin, segment.end, segment.copy) for segment in reading.best}
    shares: dict[tuple[int, int, int], list[float | bool]] = {}
    for last, less, copy in np.argwhere(reading.posteriors > 0).tolist():
        begin, end = last - less, last + 1
        probability, best = float(reading.posteriors[last, less, copy]), (begin, end, copy) in taken
        if begin == size or (probability < LEAST and not best):
            continue  # the end mark by itself says nothing
        found = shares.setdefault((begin, min(end, size), copy), [0.0, False, False])
        found[0] += probability
        found[1] = found[1] or bool(reading.listed[last, less])
        found[2] = found[2] or best
    edges = [
        LatticeEdge(
            begin=begin,
            end=end,
            copy_number=copy + 1,
            text=reader.word(reading.tokens[begin:end]),
            probability=min(float(share), 1.0),
            listed=bool(listed),
            best=bool(best),
        )
        for (begin, end, copy), (share, listed, best) in sorted(shares.items())
    ]
    words: dict[Decoding, tuple[str, ...]] = {
        decoding: tuple(reader.words(reading, decoding)) for decoding in ("viterbi", "posterior")
    }
    return LatticeSentence(
        tokens=tuple(
            LatticeToken(text=text, read_as=read, known=read != UNKNOWN or text == UNKNOWN, boundary=float(boundary))
            for text, read, boundary in zip(reading.tokens, reading.read_as, reading.boundaries, strict=True)
        ),
        edges=tuple(edges),
        viterbi=words["viterbi"],
        posterior=words["posterior"],
        nats=reading.nats,
    )


def explain_embeddings(
    run: Path,
    words: Sequence[str],
    *,
    split: str = "valid",
    data: Path | None = None,
    contexts: int = 5,
    device: str = "auto",
    which: Which = "best",
    progress: Callable[[str, int, int | None], None] | None = None,
) -> EmbeddingsReport:
    """The contexts in which each embedding of a word wins, from the sentences of a split that hold the word.

    Args:
        run: the run folder of a lattice model with several embeddings.
        words: of its vocabulary.
        split: the text to look through.
        data: prepared data in place of that of the training; of the same vocabulary.
        contexts: how many to show of each embedding.
        device: ``auto``, ``cpu`` or ``cuda``.
        which: the best weights by validation, or the last.
        progress: called with ("sentences", done, total).

    Raises:
        ConfigError: the run is no lattice model, or one with a single embedding for each word.
        DataError: no words, one outside the vocabulary, or data that do not fit.
    """
    reader = open_reader(run, "explain --embeddings", device=device, which=which)
    task, vocabulary = reader.task, reader.run.vocabulary
    if task.entries.most_copies == 1:
        raise ConfigError(f"explain --embeddings: {run} has one embedding for each word; train one with --set task.copies=2")
    strange = [word for word in words if word not in vocabulary]
    if strange or not words:
        raise DataError(
            f"explain --embeddings: {strange[0]!r} is no word of {run}/vocabulary.tsv"
            if strange
            else "explain --embeddings: give the words, a blank between"
        )
    prepared = reader.run.data(data)
    tokens, bounds = task.sentences(prepared, split)
    ids = dict.fromkeys(vocabulary.id(word) for word in words)
    wanted = np.isin(tokens, list(ids))
    holding = np.flatnonzero(np.add.reduceat(wanted, bounds[:-1]) > 0) if len(bounds) > 1 else np.zeros(0, dtype=np.int64)
    holding = holding[np.argsort(np.diff(bounds)[holding], kind="stable")]
    uses: dict[int, list[tuple[int, np.ndarray]]] = {word: [] for word in ids}
    size = task.settings.evaluation_batch_size
    for first in range(0, len(holding), size):
        chosen = holding[first : first + size]
        posteriors = task.lattices([tokens[bounds[index] : bounds[index + 1]] for index in chosen]).posteriors().double().cpu()
        for row, index in enumerate(chosen.tolist()):
            for place in range(int(bounds[index]), int(bounds[index + 1])):
                if wanted[place]:
                    word = int(tokens[place])
                    alone = posteriors[row, place - int(bounds[index]), 0, : task.entries.num_copies[word]].numpy()
                    uses[word].append((place, alone / max(float(alone.sum()), 1e-300)))
        if progress is not None:
            progress("sentences", min(first + size, len(holding)), len(holding))

    def context(place: int, probability: float) -> EmbeddingContext:
        sentence = int(np.searchsorted(bounds, place, side="right")) - 1
        begin, end = max(int(bounds[sentence]), place - _AROUND), min(int(bounds[sentence + 1]) - 1, place + 1 + _AROUND)
        before, after = vocabulary.decode(tokens[begin:place]), vocabulary.decode(tokens[place + 1 : end])
        return EmbeddingContext(before=reader.text(before), after=reader.text(after), probability=probability)

    report = []
    for word, found in uses.items():
        shares = np.array([share for _, share in sorted(found, key=lambda use: use[0])]).reshape(len(found), -1)
        places = sorted(place for place, _ in found)
        embeddings = []
        for copy in range(int(task.entries.num_copies[word])):
            wins = np.flatnonzero(shares.argmax(1) == copy) if len(found) else np.zeros(0, dtype=np.int64)
            shown = wins[np.unique(np.linspace(0, len(wins) - 1, min(contexts, len(wins))).round().astype(int))]
            embeddings.append(
                EmbeddingUse(
                    number=copy + 1,
                    sense=_sense(reader, word, copy),
                    wins=len(wins),
                    mean=float(shares[:, copy].mean()) if len(found) else 0.0,
                    contexts=tuple(context(places[index], float(shares[index, copy])) for index in shown),
                )
            )
        report.append(WordEmbeddings(word=vocabulary.token(word), occurrences=len(found), embeddings=tuple(embeddings)))
    return EmbeddingsReport(run=str(run), checkpoint=reader.run.snapshot, split=split, words=tuple(report))


def _sense(reader: LatticeReader, word: int, copy: int) -> str | None:
    """The sense that an embedding of a word began as, in a sense lattice."""
    graph = reader.run.graph
    if not reader.task.settings.senses or graph is None or not graph.annotated[word]:
        return None
    return graph.sense_labels[int(graph.sense_offsets[word]) + copy]
