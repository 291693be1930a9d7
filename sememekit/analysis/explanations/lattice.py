"""``sememekit explain`` for lattice models: edges with their posteriors, and the uses of each embedding of a word."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.progress import Progress, silent
from sememekit.runs.lattices import LatticeReader, Reading, open_reader
from sememekit.runs.run import OfRun, Run
from sememekit.runs.uncut import refuse_unknown
from sememekit.text.vocabulary import UNKNOWN

LEAST: Final = 0.005  # edges with a lower posterior are left out of the list and the picture

_AROUND: Final = 6  # tokens of context on each side


class LatticeToken(Record):
    """A token of a sentence."""

    text: str
    """The token as it was written."""
    read_as: str
    """The word of the vocabulary that the model read."""
    known: bool
    """True if the model knows the token."""
    boundary: float
    """The probability that a chunk ends with this token."""


class LatticeEdge(Record):
    """An edge of a lattice."""

    begin: int
    """Number of its first token, from 0."""
    end: int
    """Number of the token after its last, from 0."""
    copy_number: int
    """Number of the chunk's embedding, from 1."""
    text: str
    """The tokens of the chunk together."""
    probability: float
    """Posterior of the edge: share of the sentence's probability on paths with this edge."""
    listed: bool
    """True if the chunk is in the chunk vocabulary; other chunks get their probability from the token model."""
    best: bool
    """True if it is on the most probable path."""


class LatticeSentence(Record):
    """A sentence."""

    tokens: tuple[LatticeToken, ...]
    """Its tokens in order."""
    edges: tuple[LatticeEdge, ...]
    """Edges with a posterior of 0.005 or more, or on the most probable path, by beginning, end and copy; no end mark."""
    viterbi: tuple[str, ...]
    """Its words by the most probable path."""
    posterior: tuple[str, ...]
    """Its words by a separate decision at each boundary."""
    nats: float
    """Negative logarithm of its probability, end mark included."""


class LatticeExplanation(OfRun):
    """The words that a lattice model sees in a text."""

    marginal: str
    """The segmentations that the model sums, and the rule that merges states."""
    longest: int
    """L, the most tokens of a chunk."""
    copies: int
    """The most embeddings of a chunk."""
    sentences: tuple[LatticeSentence, ...]
    """One sentence; several if the text has more tokens than are read at once."""


class EmbeddingContext(Record):
    """An occurrence of a word, with the embedding of the largest posterior."""

    before: str
    after: str
    """before, after: the tokens around it, as the model reads them."""
    probability: float
    """Posterior of this embedding among the embeddings of the word."""


class EmbeddingUse(Record):
    """One embedding of a word."""

    number: int
    """The number from 1."""
    sense: str | None
    """The sense that initialised the embedding (part of speech and gloss, or sememes), or None."""
    wins: int
    """Number of occurrences where this embedding has the largest posterior."""
    mean: float
    """Its mean posterior over all occurrences."""
    contexts: tuple[EmbeddingContext, ...]
    """Some of the occurrences in ``wins``, evenly spaced over the text."""


class WordEmbeddings(Record):
    """The uses of the embeddings of a word (Table 4, Buckman and Neubig 2018)."""

    word: str
    occurrences: int
    """Occurrences in the text; inside a longer chunk only the posterior share of the word alone counts."""
    embeddings: tuple[EmbeddingUse, ...]


class EmbeddingsReport(OfRun):
    """The contexts in which each embedding of some words wins."""

    split: str
    """The text that was searched."""
    words: tuple[WordEmbeddings, ...]
    """The words in the requested order."""


def explain_lattice(run: Path | Run, text: str) -> LatticeExplanation:
    """Return the lattice of a raw text under a trained model; the text is tokenized like the data of the run. Raises
    ConfigError: the run is no lattice model. Raises DataError: an empty text."""
    reader = open_reader(run, "explain")
    readings = reader.read([text])[0]
    refuse_unknown(reader.run, (token.read for token in reader.tokens(text)), "explain")
    if not readings:
        raise DataError('explain: the text is empty; give a sentence, as in "去年美国贸易逆差"')
    task, sentences = reader.task, tuple(_sentence(reader, reading) for reading in readings)
    sizes = {"longest": task.settings.longest_chunk, "copies": task.entries.most_copies}
    return LatticeExplanation(**reader.run.of_run, marginal=task.marginal, **sizes, sentences=sentences)


def _sentence(reader: LatticeReader, reading: Reading) -> LatticeSentence:
    tokens = tuple(
        LatticeToken(text=text, read_as=read, known=read != UNKNOWN or text == UNKNOWN, boundary=boundary)
        for text, read, boundary in zip(reading.tokens, reading.read_as, reading.boundaries.tolist(), strict=True)
    )
    edges, viterbi = tuple(_edges(reader, reading)), tuple(reader.words(reading, "viterbi"))
    posterior = tuple(reader.words(reading, "posterior"))
    return LatticeSentence(tokens=tokens, edges=edges, viterbi=viterbi, posterior=posterior, nats=reading.nats)


def _edges(reader: LatticeReader, reading: Reading) -> Iterator[LatticeEdge]:
    size, taken = len(reading.tokens), {(segment.begin, segment.end, segment.copy) for segment in reading.best}
    # (begin, end, copy) without the end mark -> posterior, whether listed, whether on the most probable path
    found: dict[tuple[int, int, int], tuple[float, bool, bool]] = {}
    for last, shorter, copy in np.argwhere(reading.posteriors > 0).tolist():
        begin, end = last - shorter, last + 1
        probability, best = float(reading.posteriors[last, shorter, copy]), (begin, end, copy) in taken
        if begin == size:
            continue  # the end mark by itself says nothing
        so_far, listed, is_best = found.get((begin, min(end, size), copy), (0.0, False, False))
        listed = listed or bool(reading.listed[last, shorter])
        found[begin, min(end, size), copy] = so_far + probability, listed, is_best or best
    for (begin, end, copy), (share, listed, best) in sorted(found.items()):
        if share >= LEAST or best:
            place = {"begin": begin, "end": end, "copy_number": copy + 1}
            text = reader.word(reading.tokens[begin:end])
            yield LatticeEdge(**place, text=text, probability=min(share, 1.0), listed=listed, best=best)


def explain_embeddings(
    run: Path | Run,
    words: Sequence[str],
    *,
    split: str = "valid",
    data: Path | None = None,
    contexts: int = 5,
    progress: Progress = silent,
) -> EmbeddingsReport:
    """The contexts in which each embedding of a word wins, from the sentences of a split with the word.

    ``words`` must be in the vocabulary; each embedding is shown with ``contexts`` contexts. Other arguments as ``sememekit
    explain --help``. Raises ConfigError: the run is no lattice model, or has a single embedding for each word. Raises
    DataError: no words, one outside the vocabulary, or data that do not fit."""
    reader = open_reader(run, "explain --embeddings")
    task, vocabulary = reader.task, reader.run.vocabulary
    graph = reader.run.graph if task.settings.senses else None
    if task.entries.most_copies == 1:
        raise ConfigError(f"explain --embeddings: {run} has one embedding for each word; train one with --set task.copies=2")
    if not words:
        raise DataError("explain --embeddings: give the words, a blank between")
    if strange := [word for word in words if word not in vocabulary]:
        raise DataError(f"explain --embeddings: {strange[0]!r} is no word of {run}/vocabulary.tsv")
    tokens, bounds = task.sentences(reader.run.data(data), split)
    ids = list(dict.fromkeys(vocabulary.id(word) for word in words))
    places = np.flatnonzero(np.isin(tokens, ids))
    sentence_of = np.searchsorted(bounds, places, side="right") - 1
    shares = np.zeros((len(places), task.entries.most_copies))
    holding = np.unique(sentence_of)
    holding = holding[np.argsort(np.diff(bounds)[holding], kind="stable")]
    size = task.settings.evaluation_batch_size
    for first in range(0, len(holding), size):
        chosen = holding[first : first + size]
        lattices = task.lattices([tokens[bounds[index] : bounds[index + 1]] for index in chosen])
        alone = lattices.posteriors()[:, :, 0].double().cpu().numpy()
        for row, index in enumerate(chosen):
            begin, end = np.searchsorted(places, bounds[index : index + 2])
            shares[begin:end] = alone[row, places[begin:end] - bounds[index]]
        progress("sentences", min(first + size, len(holding)), len(holding))
    shares /= np.maximum(shares.sum(1, keepdims=True), 1e-300)

    def context(occurrence: int, copy: int) -> EmbeddingContext:
        place, sentence = int(places[occurrence]), sentence_of[occurrence]
        begin, end = max(int(bounds[sentence]), place - _AROUND), min(int(bounds[sentence + 1]) - 1, place + 1 + _AROUND)
        before, after = vocabulary.decode(tokens[begin:place]), vocabulary.decode(tokens[place + 1 : end])
        probability = float(shares[occurrence, copy])
        return EmbeddingContext(before=reader.text(before), after=reader.text(after), probability=probability)

    def use(word: int, copy: int, occurrences: NDArray[np.int64]) -> EmbeddingUse:
        wins = occurrences[shares[occurrences].argmax(1) == copy]
        shown = wins[np.unique(np.linspace(0, len(wins) - 1, min(contexts, len(wins))).round().astype(int))]
        sense = graph.sense_labels[int(graph.sense_offsets[word]) + copy] if graph and graph.annotated[word] else None
        mean = float(shares[occurrences, copy].mean()) if len(occurrences) else 0.0
        found = tuple(context(int(occurrence), copy) for occurrence in shown)
        return EmbeddingUse(number=copy + 1, sense=sense, wins=len(wins), mean=mean, contexts=found)

    report = []
    for word in ids:
        occurrences = np.flatnonzero(tokens[places] == word)
        uses = tuple(use(word, copy, occurrences) for copy in range(int(task.entries.num_copies[word])))
        report.append(WordEmbeddings(word=vocabulary.token(word), occurrences=len(occurrences), embeddings=uses))
    return EmbeddingsReport(run=str(run), checkpoint=reader.run.snapshot, split=split, words=tuple(report))
