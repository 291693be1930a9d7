"""The entries of a lattice model's main softmax: chunks in one or several copies, and a sentinel for all the others."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.tasks.lattice.settings import LatticeSettings
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

_JOINS, _COPY, _SENTINEL = "\x1f", "\x1e", "\x1d"
"""Inside the names of entries: between the words of an n-gram, before the number of a copy, and alone for the sentinel."""


class Entries(NamedTuple):
    """The entries of the main softmax, one row of vectors each.

    Attributes:
        chunks: the words and n-grams.
        names: a name and a count for each row, by falling count, so that an output layer may go by frequency. The copies of a
            chunk share its count.
        rows: (N, C) the row of each copy of each of the N chunks, -1 where a chunk has fewer than C.
        sentinel: the row that stands for every chunk outside the vocabulary, or None for lattices without such edges.
    """

    chunks: ChunkVocabulary
    names: Vocabulary
    rows: npt.NDArray[np.int64]
    sentinel: int | None

    @property
    def num_copies(self) -> npt.NDArray[np.int64]:
        """(N,) how many copies each chunk has, one at least."""
        return (self.rows >= 0).sum(1)

    def counts(self, words: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """(rows,) how often each row occurs, from counts (V,) of words; the sentinel counts as the most frequent chunk."""
        of_chunk = np.concatenate([words, self.chunks.counts])
        found = np.zeros(len(self.names), dtype=np.int64)
        for copy in range(self.most_copies):
            has = self.rows[:, copy] >= 0
            found[self.rows[has, copy]] = (of_chunk // self.num_copies)[has]
        if self.sentinel is not None:
            found[self.sentinel] = of_chunk.max()
        return found

    @property
    def most_copies(self) -> int:
        return self.rows.shape[1]


def entries_of(
    settings: LatticeSettings, vocabulary: Vocabulary, chunks: ChunkVocabulary | None, graph: SememeGraph | None = None
) -> Entries:
    """The entries of a model with these settings; with ``senses`` words have one copy a sense and n-grams one. Raises
    ConfigError: chunks of several tokens are asked for, and there is no chunk vocabulary, or one of shorter chunks; or senses
    are, and there is no graph. Raises DataError: the chunks are of another vocabulary.
    """
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
    """(V,) copies of each word: its first ``most`` senses in the graph; one for a word that no lexicon knows."""
    if graph is None:
        raise ConfigError(
            "task.senses takes the embeddings of a word from its senses; give them with --graph FILE (see 'sememekit "
            "build-sememe-graph'), or set task.senses=false"
        )
    if most < 2:
        raise ConfigError(f"task.senses with task.copies={most}: a word has that many embeddings at most; set 2 or more")
    return np.minimum(np.diff(graph.sense_offsets), most)
