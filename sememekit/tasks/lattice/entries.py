"""The entries of a lattice model's main softmax: chunks in one or several copies, and a sentinel for all other chunks."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.tasks.lattice.settings import LatticeSettings
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

_JOINS, _COPY, _SENTINEL = "\x1f", "\x1e", "\x1d"
"""Separators in the names of entries: between words of an n-gram, before the copy number; alone it names the sentinel."""


class Entries(NamedTuple):
    """The entries of the main softmax, one row of vectors each."""

    chunks: ChunkVocabulary  # the words and n-grams
    # name and count of each row, by falling count, as output layers that use frequency need. Copies share the count of the
    # chunk
    names: Vocabulary
    rows: npt.NDArray[np.int64]  # (N, C) the row of each copy of each of the N chunks, -1 where a chunk has fewer than C
    sentinel: int | None  # the row for all chunks outside the vocabulary; None if such edges do not exist

    @property
    def num_copies(self) -> npt.NDArray[np.int64]:
        """(N,) how many copies each chunk has, one at least."""
        return (self.rows >= 0).sum(1)

    def counts(self, words: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return (rows,) the count of each row from counts (V,) of words; the sentinel has the highest count of a chunk."""
        of_chunk = np.concatenate([words, self.chunks.counts])
        found = np.zeros(len(self.names), dtype=np.int64)
        chunk, copy = np.nonzero(self.rows >= 0)
        found[self.rows[chunk, copy]] = (of_chunk // self.num_copies)[chunk]
        if self.sentinel is not None:
            found[self.sentinel] = of_chunk.max()
        return found

    @property
    def most_copies(self) -> int:
        return self.rows.shape[1]


def entries_of(
    settings: LatticeSettings, vocabulary: Vocabulary, chunks: ChunkVocabulary | None, graph: SememeGraph | None = None
) -> Entries:
    """Return the entries of a model; with ``senses`` a word has a copy for each sense, an n-gram one. Raises ConfigError:
    chunks are absent or shorter than in the settings, or senses need a graph. Raises DataError: another vocabulary's chunks."""
    longest = settings.longest_chunk
    if chunks is not None:
        chunks.check_vocabulary(vocabulary)
    if longest > 1 and settings.num_chunks != 0 and (chunks is None or chunks.max_length < longest):
        have = f"chunks of at most {chunks.max_length} tokens" if chunks and chunks.max_length > 1 else "no chunk vocabulary"
        raise ConfigError(
            f"task.longest_chunk is {longest}, and the data have {have}; count them with 'sememekit preprocess ... "
            f"--chunks 10000 --chunk-length {longest}', or set task.longest_chunk={chunks.max_length if chunks else 1}"
        )
    if chunks is None or longest == 1:
        chunks = ChunkVocabulary(vocabulary, max_length=longest)
    else:
        chunks = chunks.up_to(longest, settings.num_chunks)
    copies = np.full(len(chunks), 1 if settings.senses else settings.copies)
    if settings.senses:
        copies[: len(vocabulary)] = _sense_copies(graph, settings.copies)
    counts = np.concatenate([vocabulary.counts, chunks.counts])
    places = np.argwhere(np.arange(copies.max()) < copies[:, None])
    names = {}
    for chunk, copy in places.tolist():
        name = _JOINS.join(chunks.text(chunk))
        names[name if copy == 0 else f"{name}{_COPY}{copy}"] = int(counts[chunk] // copies[chunk])
    ordered = Vocabulary.from_counts(names | ({_SENTINEL: int(counts.max())} if settings.sub_model else {}))
    rows = np.full((len(chunks), int(copies.max())), -1, dtype=np.int64)
    rows[tuple(places.T)] = ordered.encode(names)
    return Entries(chunks, ordered, rows, ordered.id(_SENTINEL) if settings.sub_model else None)


def _sense_copies(graph: SememeGraph | None, most: int) -> npt.NDArray[np.int64]:
    """Return (V,) the copies of each word: at most ``most`` senses of the graph; one for an unannotated word."""
    if graph is None:
        raise ConfigError(
            "task.senses takes the embeddings of a word from its senses; give them with --graph FILE (see 'sememekit "
            "build-sememe-graph'), or set task.senses=false"
        )
    if most < 2:
        raise ConfigError(
            f"task.senses with task.copies={most}: words have at most task.copies embeddings; set 2 or more for senses"
        )
    return np.minimum(np.diff(graph.sense_offsets), most)
