"""Vectors and biases for new words of a model, by a regression on sememes and characters of its own words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.sememes.graph import WordEntry
from sememekit.text.vocabulary import UNKNOWN, Vocabulary

RIDGE: Final = 1.5  # penalty of the regression, chosen on the validation text of docs/results/growing.md
_CHARACTERS, _CONSTANT, _SEEN = 0.7, 10.0, 10.0
_SEMEME: Final = "sememe "  # beginning of the name of a feature that is a sememe
_MOST_PARTS: Final = 3000  # number of most frequent characters that are features, which bounds the size of the regression
_AT_ONCE: Final = 4096


@final
class WordFit:
    """A regression from the sememes and characters of words to their vectors or biases in a model.

    >>> fit = WordFit(larger_graph, counts, known)
    >>> vectors_nE = fit.predict(vectors_VE, fit.known_words, fit.new_words)

    x(w) = W f(w), where f(w) has the sememes of the word's senses, each sense normalised, its characters and their places, the
    logarithm of its count, and a constant. W minimises sum_w c_w / (c_w + 10) |x(w) - W f(w)|^2 + ridge |W|^2 over the words of
    the model; the weights depend on counts c_w, since vectors of rare words are noisy. A word or sense without a sememe of
    f(w) is predicted by a second W, which is learned without sememes.

    ``graph`` has the senses of V' words, new words included; ``counts`` (V',) has the count of each word, assumed for new
    words; ``known`` (V',) is the mask of the words of the model."""

    def __init__(self, graph: SememeGraph, counts: NDArray[np.int64], known: NDArray[np.bool_]) -> None:
        self._entries, self._counts, self._graph = list(graph.entries()), counts, graph
        self.known_words, self.new_words = np.flatnonzero(known), np.flatnonzero(~known)
        self.known_senses, self.new_senses = (np.flatnonzero(of[graph.word_of_sense]) for of in (known, ~known))
        self._columns = _columns([self._entries[word] for word in self.known_words])
        self._of_sememes = torch.tensor([False] * 3 + [name.startswith(_SEMEME) for name in self._columns])
        self._mean_log = float(np.log(counts[known] + 1.0).mean())

    @property
    def num_features(self) -> int:
        """F, the constant and the two of the count included."""
        return 3 + len(self._columns)

    def predict(self, values: Tensor, rows: NDArray[np.int64], new: NDArray[np.int64], *, of_senses: bool = False) -> Tensor:
        """(n, ...) predicted values of ``new`` words or senses, from the ``values`` (R, ...) of the known ``rows`` (R,)."""
        targets = values.detach().float().cpu().reshape(len(values), -1)
        inner, cross = torch.zeros(self.num_features, self.num_features), torch.zeros(self.num_features, targets.shape[1])
        for begin in range(0, len(rows), _AT_ONCE):
            some = rows[begin : begin + _AT_ONCE]
            counts = torch.from_numpy(self._counts[self._graph.word_of_sense[some] if of_senses else some]).float()
            features = self._features(some, of_senses=of_senses)
            weighted = features.T * (counts / (counts + _SEEN))
            inner += weighted @ features
            cross += weighted @ targets[begin : begin + _AT_ONCE]
        inner.diagonal().add_(RIDGE)
        asked = self._features(new, of_senses=of_senses)
        result, bare = asked.new_empty(len(new), targets.shape[1]), ~asked[:, self._of_sememes].any(dim=1)
        for rows_of_kind, kept in ((~bare, torch.ones_like(self._of_sememes)), (bare, ~self._of_sememes)):
            if rows_of_kind.any():
                solved = torch.cholesky_solve(cross[kept], torch.linalg.cholesky(inner[kept][:, kept]))
                result[rows_of_kind] = asked[rows_of_kind][:, kept] @ solved
        return result.reshape(len(new), *values.shape[1:])

    def vote(self, values: Tensor, rows: NDArray[np.int64], new: NDArray[np.int64]) -> Tensor:
        """(n,) the most frequent integer, such as a cluster, of the ten most similar words, weighted by similarity."""
        asked = torch.nn.functional.normalize(self._features(new)[:, 3:])
        parts = np.array_split(rows, range(_AT_ONCE, len(rows), _AT_ONCE))
        similar = torch.cat([asked @ torch.nn.functional.normalize(self._features(part)[:, 3:]).T for part in parts], dim=1)
        best = similar.topk(min(10, len(rows)))
        votes = torch.zeros(len(new), int(values.max()) + 1)
        votes.scatter_add_(1, values.cpu().long()[best.indices], best.values.clamp(min=1e-6))
        return votes.argmax(dim=1).to(values.dtype)

    def _features(self, rows: NDArray[np.int64], *, of_senses: bool = False) -> Tensor:
        """(N, F) features of words or senses."""
        table = torch.zeros(len(rows), self.num_features)
        words = self._graph.word_of_sense[rows] if of_senses else rows
        logs = torch.from_numpy(np.log(self._counts[words] + 1.0) - self._mean_log).float()
        table[:, 0], table[:, 1], table[:, 2] = _CONSTANT, 2.0 * logs, 0.5 * logs**2
        for values, row, word in zip(table, rows.tolist(), words.tolist(), strict=True):
            entry = self._entries[word]
            senses = (entry.senses[row - int(self._graph.sense_offsets[word])],) if of_senses else entry.senses
            for sense in senses:
                names = [self._columns[name] for one in sense.sememes if (name := f"{_SEMEME}{one}") in self._columns]
                values[names] += (max(1, len(names)) * len(senses)) ** -0.5
            parts = [self._columns[part] for part in _parts(entry.word) if part in self._columns]
            values[parts] += _CHARACTERS / max(1, len(parts)) ** 0.5
        return table


def _columns(entries: Sequence[WordEntry]) -> dict[str, int]:
    """Feature -> column, after the constant and the count; characters of only one word are left out."""
    sememes = sorted({f"{_SEMEME}{name}" for entry in entries for name in entry.sememes() - {UNKNOWN}})
    seen = Counter(part for entry in entries for part in _parts(entry.word))
    parts = sorted(part for part, times in seen.most_common(_MOST_PARTS) if times > 1)
    return {name: column for column, name in enumerate([*sememes, *parts], start=3)}


def _parts(word: str) -> set[str]:
    """Return the characters (first and last with their places) and the length; special tokens such as ``<N>`` have no parts."""
    if word.startswith("<") and word.endswith(">"):
        return set()
    return {*word, f"^{word[0]}", f"{word[-1]}$", f"length {min(4, len(word))}"}


@final
class Growth:
    """The tables of a model, from the V words of ``vocabulary`` to the V' of ``larger``; new words have ``counts``."""

    def __init__(
        self, vocabulary: Vocabulary, larger: Vocabulary, graph: SememeGraph, counts: Mapping[str, int], of_unknown: float
    ) -> None:
        """Take both vocabularies. ``of_unknown``: share of ``<unk>`` in a new vector; at 1 it depends on no other new word."""
        self.num_words, self.larger, self.graph, self.of_unknown = len(vocabulary), larger, graph, of_unknown
        known = np.isin(np.arange(len(larger)), larger.encode(vocabulary.tokens))
        assumed = larger.counts.copy()
        assumed[~known] = [counts[larger.token(number)] for number in np.flatnonzero(~known).tolist()]
        self.fit = WordFit(graph, assumed, known)

    def weights(self, old: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], tuple[str, ...]]:
        """The state of the larger model, and the names of the tensors that have rows of new words."""
        done: dict[tuple[int, torch.Size], Tensor] = {}  # a tied table has two names
        weights = {}
        for name, tensor in old.items():
            if tensor.shape == new[name].shape:
                weights[name] = tensor
                continue
            key = tensor.data_ptr(), tensor.shape
            if key not in done:
                done[key] = self.grown(name, tensor, new[name])
            weights[name] = done[key]
        return weights, tuple(name for name, tensor in old.items() if tensor.shape != weights[name].shape)

    def grown(self, name: str, old: Tensor, new: Tensor) -> Tensor:
        """A table with rows of new words, or of their senses; (V, ...), (S, ...), or of the last words of the vocabulary."""
        fit, senses = self.fit, len(self.fit.known_senses)
        of_senses = len(old) == senses != self.num_words and len(new) == self.graph.num_senses
        first = 0 if of_senses else len(self.larger) - len(new)
        known, added = (fit.known_senses, fit.new_senses) if of_senses else (fit.known_words, fit.new_words)
        known = known[known >= first]
        if old.shape[1:] != new.shape[1:] or len(known) != len(old) or (added < first).any():
            raise ConfigError(
                f"{name} has the shape {list(old.shape)}, and {list(new.shape)} with the new words, so its rows do not "
                "belong to words; this model cannot be extended: train one with the words instead"
            )
        result = new.clone()
        result[torch.from_numpy(known - first)] = old.cpu()
        if not old.is_floating_point():
            predicted = fit.vote(old, known, added)
        else:
            both = fit.predict(old, known, np.concatenate([known, added]), of_senses=of_senses)
            of_known, predicted = both[: len(known)], both[len(known) :]
            unknown = self.larger.unknown_id
            if old.ndim > 1 and unknown is not None and unknown in known:
                mean = (of_known if self.of_unknown == 1.0 else predicted).mean(dim=0)
                predicted = predicted + self.of_unknown * (result[unknown - first] - mean)
        result[torch.from_numpy(added - first)] = predicted.to(new.dtype)
        return result
