"""The chunk vocabulary: every word of the vocabulary, and the most frequent n-grams of words.

File ``chunks.tsv`` of a prepared-data folder: the first line is ``chunks TAB fingerprint of the vocabulary TAB L``, every
further line an n-gram in the order of its id, ``count TAB word TAB word ...``."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from sememekit.errors import DataError
from sememekit.files import read_text
from sememekit.text.vocabulary import Vocabulary, parse_count

CHUNKS: Final = "chunks.tsv"
LONGEST: Final = 1000  # most words of an n-gram; a limit, since the table of ``windows`` has an entry for each length
_REMEDY: Final = "write it with: sememekit preprocess DATASET SOURCE --chunks N --chunk-length L --out DIR"


@final
class ChunkVocabulary:
    """Immutable: V words with their ids 0..V-1, then M n-grams of 2..L words with ids V..V+M-1, by falling count.

    >>> chunks = ChunkVocabulary(words, [(0, 1)], [2], max_length=2)
    >>> chunks.text(len(chunks) - 1)
    ('今天', '工人')

    Ties go to the shorter n-gram, then to smaller word ids from the left. No n-gram contains ``<unk>``, and ``<eos>`` can only
    be its last word, so none crosses a sentence end.

    Attributes:
        num_tokens, max_length: V and L.
        counts: (M,) counts of the n-grams in the training split.
        vocabulary_fingerprint: of the vocabulary that the ids belong to.
        fingerprint: 16 hexadecimal digits of the SHA-256 over the file."""

    def __init__(
        self, vocabulary: Vocabulary, ngrams: Sequence[tuple[int, ...]] = (), counts: Iterable[int] = (), *, max_length: int
    ) -> None:
        """Take sorted n-grams: M tuples of 2..L word ids with falling counts."""
        self.num_tokens = len(vocabulary)
        self.max_length = max_length
        self.vocabulary_fingerprint = vocabulary.fingerprint
        self.counts = np.fromiter(counts, dtype=np.int64)
        self._vocabulary, self._words = vocabulary, vocabulary.tokens
        self._ngrams = tuple(ngrams)
        self.fingerprint = hashlib.sha256(self.content).hexdigest()[:16]
        self._keys, self._nodes, self._chunks = _trie(self._ngrams, self.num_tokens)

    def __len__(self) -> int:
        return self.num_tokens + len(self._ngrams)

    def __repr__(self) -> str:
        return f"ChunkVocabulary({self.num_tokens} words and {len(self._ngrams)} n-grams, at most {self.max_length} words)"

    @property
    def num_ngrams(self) -> int:
        return len(self._ngrams)

    def tokens(self, id: int) -> tuple[int, ...]:
        """Return the word ids of a chunk. Raises DataError: an id outside 0..V+M-1."""
        if not 0 <= id < len(self):
            raise DataError(f"chunk id {id} is outside the chunk vocabulary: allowed are 0 to {len(self) - 1}")
        return (id,) if id < self.num_tokens else self._ngrams[id - self.num_tokens]

    def text(self, id: int) -> tuple[str, ...]:
        return tuple(self._words[token] for token in self.tokens(id))

    def up_to(self, length: int, num_ngrams: int | None = None) -> "ChunkVocabulary":
        """Return a vocabulary of chunks of at most ``length`` words: the first ``num_ngrams`` n-grams, with new ids."""
        kept = [index for index, ngram in enumerate(self._ngrams) if len(ngram) <= length][:num_ngrams]
        ngrams = [self._ngrams[index] for index in kept]
        return ChunkVocabulary(self._vocabulary, ngrams, self.counts[kept].tolist(), max_length=length)

    def of_vocabulary(self, vocabulary: Vocabulary) -> "ChunkVocabulary":
        """Return the same n-grams with the ids of a vocabulary that has all of these words, in the same order."""
        ngrams = [tuple(vocabulary.encode(self.text(id)).tolist()) for id in range(self.num_tokens, len(self))]
        return ChunkVocabulary(vocabulary, ngrams, self.counts.tolist(), max_length=self.max_length)

    def windows(self, tokens: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """The chunks that end at each position of ``tokens`` (B, T); a negative id is padding and belongs to no chunk.

        Returns (B, T, L) int64: entry [b, t, l - 1] is the id of the chunk of the l words that end at t, or -1 if it is not a
        chunk or begins before the text. So [b, t, 0] is ``tokens[b, t]`` itself.

        It uses a trie in sorted arrays: l steps from each start, with one binary search for all positions."""
        ids = np.asarray(tokens, dtype=np.int64)
        rows, places = ids.shape
        found = np.full((rows, places, self.max_length), -1, dtype=np.int64)
        nodes = np.where(ids < 0, -1, ids)  # [b, s]: the node after the words s .. s + l - 1
        found[:, :, 0] = nodes
        for length in range(2, min(self.max_length, places) + 1):
            if not len(self._keys):
                break
            start, last = nodes[:, :-1], ids[:, length - 1 :]
            keys = np.where((start < 0) | (last < 0), -1, start * self.num_tokens + last)
            index = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            nodes = np.where(self._keys[index] == keys, self._nodes[index], -1)
            found[:, length - 1 :, length - 1] = np.where(nodes < 0, -1, self._chunks[nodes])
        return found

    def check_vocabulary(self, vocabulary: Vocabulary) -> None:
        if vocabulary.fingerprint != self.vocabulary_fingerprint:
            raise DataError(
                f"the chunks belong to the vocabulary {self.vocabulary_fingerprint}, this one is "
                f"{vocabulary.fingerprint}; {_REMEDY}"
            )

    def save(self, path: Path | str) -> None:
        Path(path).write_bytes(self.content)

    @classmethod
    def load(cls, path: Path | str, vocabulary: Vocabulary) -> "ChunkVocabulary":
        """Read what :meth:`save` wrote. Raises DataError, with ``file:line``: an invalid file, or another vocabulary."""
        text = read_text(Path(path), lambda why: DataError(f"{why}; {_REMEDY}"))
        head, *lines = text.split("\n")
        fields = head.split("\t")
        length = parse_count(fields[2]) if len(fields) == 3 else None
        if length is None or length > LONGEST or fields[0] != "chunks" or lines[-1:] != [""]:
            raise DataError(f"{path}: no file of chunks, or cut short: it begins with {head[:60]!r}; {_REMEDY}")
        if fields[1] != vocabulary.fingerprint:
            raise DataError(
                f"{path}: the chunks belong to the vocabulary {fields[1]}, this one is {vocabulary.fingerprint}; {_REMEDY}"
            )
        ngrams, counts = [], []
        for number, line in enumerate(lines[:-1], start=2):
            count, *words = line.split("\t")
            strange = [word for word in words if word not in vocabulary]
            value = parse_count(count)
            if value is None or strange or not 2 <= len(words) <= length:
                reason = f"{line[:40]!r} is no count before 2 to {length} words"
                reason = f"{strange[0][:40]!r} is no word of the vocabulary" if strange else reason
                raise DataError(f"{path}:{number}: {reason}; {_REMEDY}")
            counts.append(value)
            ngrams.append(tuple(vocabulary.id(word) for word in words))
        return cls(vocabulary, ngrams, counts, max_length=length)

    @property
    def content(self) -> bytes:
        """The file of :meth:`save`."""
        lines = [f"chunks\t{self.vocabulary_fingerprint}\t{self.max_length}"]
        for count, ngram in zip(self.counts.tolist(), self._ngrams, strict=True):
            lines.append("\t".join([str(count), *(self._words[token] for token in ngram)]))
        return ("\n".join(lines) + "\n").encode()


def _trie(
    ngrams: Sequence[tuple[int, ...]], num_tokens: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return sorted keys ``node * V + word``, the nodes they lead to, and each node's chunk or -1; V nodes are the words."""
    table: dict[tuple[int, int], int] = {}
    chunks = dict(enumerate(range(num_tokens)))
    for index, ngram in enumerate(ngrams):
        node = ngram[0]
        for token in ngram[1:]:
            node = table.setdefault((node, token), num_tokens + len(table))
        chunks[node] = num_tokens + index
    keys = np.array([node * num_tokens + token for node, token in table], dtype=np.int64)
    nodes = np.fromiter(table.values(), dtype=np.int64, count=len(table))
    order = np.argsort(keys)
    of_node = np.full(num_tokens + len(table), -1, dtype=np.int64)
    of_node[list(chunks)] = list(chunks.values())
    return keys[order], nodes[order], of_node
