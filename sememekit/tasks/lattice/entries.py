"""What the main softmax of a lattice model chooses from: chunks in one or several copies, and a sentinel for all the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.tasks.lattice.settings import LatticeSettings
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

_JOINS, _COPY, _SENTINEL = "\x1f", "\x1e", "\x1d"
"""Inside the names of entries: between the words of an n-gram, before the number of a copy, and alone for the sentinel."""


@dataclass(frozen=True)
class Entries:
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
        """(rows,) how often each row is met: copies share the count of their chunk, the sentinel has that of the commonest.

        Args:
            words: (V,) how often each word is met in the training text; n-grams were counted there.
        """
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
        """C."""
        return self.rows.shape[1]


def entries_of(
    settings: LatticeSettings, vocabulary: Vocabulary, chunks: ChunkVocabulary | None, graph: SememeGraph | None = None
) -> Entries:
    """The entries of a model with these settings.

    Raises:
        ConfigError: chunks of several tokens are asked for, and there is no chunk vocabulary, or one of shorter chunks; or
            senses are, and there is no graph.
        DataError: the chunks are of another vocabulary.
    """
    longest = settings.longest_chunk
    if chunks is not None:
        chunks.check_vocabulary(vocabulary)
    if longest > 1 and settings.num_chunks != 0 and (chunks is None or chunks.max_length < longest):
        have = "no chunk vocabulary" if chunks is None else f"chunks of at most {chunks.max_length} tokens"
        raise ConfigError(
            f"task.longest_chunk is {longest}, and the data have {have}; count them with 'sememekit preprocess ... "
            f"--chunks 10000 --chunk-length {longest}', or set task.longest_chunk={chunks.max_length if chunks else 1}"
        )
    if chunks is None or longest == 1:
        chunks = ChunkVocabulary(vocabulary, max_length=longest)
    else:
        chunks = chunks.up_to(longest, settings.num_chunks)
    copies = _sense_copies(graph, settings.copies) if settings.senses else settings.copies
    return make_entries(vocabulary, chunks, copies, sentinel=settings.sub_model)


def _sense_copies(graph: SememeGraph | None, most: int) -> npt.NDArray[np.int64]:
    """(V,) copies of each word: its senses in the graph, which differ in their sememes, and ``most`` at most.

    Of more senses the first are taken, in the order of the lexicon. A word that no lexicon knows has one copy.

    Raises:
        ConfigError: no graph, or a bound that leaves one copy for each word.
    """
    if graph is None:
        raise ConfigError(
            "task.senses takes the embeddings of a word from its senses; give them with --graph FILE (see 'sememekit "
            "build-sememe-graph'), or set task.senses=false"
        )
    if most < 2:
        raise ConfigError(f"task.senses with task.copies={most}: a word has that many embeddings at most; set 2 or more")
    return np.minimum(np.diff(graph.sense_offsets), most)


def make_entries(
    vocabulary: Vocabulary, chunks: ChunkVocabulary, copies: int | npt.NDArray[np.int64], *, sentinel: bool
) -> Entries:
    """Give every copy of every chunk a row.

    Args:
        vocabulary: the V words.
        chunks: words and n-grams.
        copies: of each word, one number for all or (V,) one each; at least 1. N-grams have as many as their first word would
            have where it is one number for all, and one otherwise.
        sentinel: whether there is a row for chunks outside the vocabulary.
    """
    num_words, num_chunks = len(vocabulary), len(chunks)
    of_chunk = np.ones(num_chunks, dtype=np.int64)
    if isinstance(copies, int):
        of_chunk[:] = copies
    else:
        of_chunk[:num_words] = copies
    counts = np.concatenate([vocabulary.counts, chunks.counts])
    names: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    for chunk in range(num_chunks):
        name = _JOINS.join(chunks.text(chunk))
        for copy in range(int(of_chunk[chunk])):
            names[name if copy == 0 else f"{name}{_COPY}{copy}"] = int(counts[chunk] // of_chunk[chunk])
            places.append((chunk, copy))
    spellings = list(names)
    if sentinel:
        names[_SENTINEL] = int(counts.max())
    ordered = Vocabulary.from_counts(names)
    rows = np.full((num_chunks, int(of_chunk.max())), -1, dtype=np.int64)
    rows[tuple(np.array(places).T)] = ordered.encode(spellings)
    return Entries(chunks, ordered, rows, ordered.id(_SENTINEL) if sentinel else None)
