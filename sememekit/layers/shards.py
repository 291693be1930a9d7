"""Tables of words in shards: each rank has the rows of some words, and they put together what they find.

Every rank has a range of word ids. In a step the ranks look up the words of all columns in the rows of all, and score the
contexts of all columns, each with own words alone; a sum or a maximum over the ranks makes the whole. So the gradient of own
rows is complete on the rank that has them, and nothing as large as a table is ever sent.

In training the columns of ranks differ, and they are put side by side first; in evaluation all ranks read the same columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from torch import Tensor, nn

from sememekit.layers.shared import differentiable_once
from sememekit.ranks import Ranks


def rows_of_ranks(tensor: Tensor) -> Sequence[int] | None:
    """Return the first rows of all ranks in the whole table of which this tensor is a shard, and the table's end; None for a
    tensor that is whole."""
    return getattr(tensor, "_rows_of_ranks", None)


def note_rows(tensor: Tensor, bounds: Sequence[int]) -> None:
    """Say that a tensor is a shard: ``rows_of_ranks`` knows it from now on. A copy of it knows nothing."""
    tensor._rows_of_ranks = tuple(bounds)  # type: ignore[attr-defined]


def whole_size(tensor: Tensor) -> int:
    """Return the number of elements of a tensor, for a shard of all ranks together."""
    bounds = rows_of_ranks(tensor)
    return tensor.numel() if bounds is None else bounds[-1] * tensor[:1].numel()


@final
class WordShard:
    """The words of one of several ranks, and what it needs of the others.

    Attributes:
        bounds: (size + 1,) where the words of each rank begin, and V.
    """

    def __init__(self, ranks: Ranks, num_words: int) -> None:
        self.ranks = ranks
        self.bounds = [num_words * rank // ranks.size for rank in range(ranks.size + 1)]
        self.words = slice(self.bounds[ranks.rank], self.bounds[ranks.rank + 1])

    def cut_(self, table: Tensor, bounds: Sequence[int] | None = None) -> None:
        """Leave in a whole table the rows of this rank, by ``bounds`` (default: the bounds of words)."""
        bounds = self.bounds if bounds is None else bounds
        rank = self.ranks.rank
        table.data = table.data[bounds[rank] : bounds[rank + 1]].clone()
        note_rows(table, bounds)

    def places(self, words: Tensor) -> Tensor:
        """Return the row of each word id (...) on this rank; -1 for words of other ranks."""
        own = (words >= self.words.start) & (words < self.words.stop)
        return torch.where(own, words - self.words.start, -1)

    def columns(self, tensor: Tensor) -> Columns:
        """Return the number of columns of each rank, along the second axis."""
        ranks = self.ranks
        return Columns(ranks, ranks.sum([tensor.shape[1] if rank == ranks.rank else 0 for rank in range(ranks.size)]))

    def look_up(self, rows_vE: Tensor, tokens_TB: Tensor, together: bool, sparse: bool) -> Tensor:
        """(T, B, E) the vectors of any words, out of the rows of all ranks.

        Args:
            together: whether each rank has columns of its own; otherwise all have the same.
            sparse: whether the gradient of the rows is sparse.
        """
        return _LookUp.apply(rows_vE, tokens_TB, self, together, sparse)

    def nll(self, log_normaliser_N: Tensor, score_N: Tensor, own_N: Tensor) -> Tensor:
        """(N,) nats of targets, log sum over ranks exp(log_normaliser) - score, for contexts that are the same on all ranks.

        In the backward pass the gradients that reach the ranks are added up: of each context one rank uses the nats.

        Args:
            log_normaliser_N: of the words of this rank.
            score_N: of the target, on the rank that has it; finite on the others.
            own_N: whether the target is a word of this rank.
        """
        return _NLL.apply(log_normaliser_N, score_N, own_N, self.ranks)

    @contextmanager
    def same_random_numbers(self, draws: torch.Generator | None) -> Iterator[None]:
        """Inside, torch's generators give the same numbers on all ranks, seeded by the generator ``draws`` that they share."""
        if draws is None:
            raise RuntimeError("train_together was not called")
        seed = int(torch.randint(1 << 62, (), generator=draws, device=draws.device))
        with torch.random.fork_rng([draws.device] if draws.device.type == "cuda" else []):
            torch.manual_seed(seed)
            yield


@final
class Columns:
    """Columns of all ranks side by side."""

    def __init__(self, ranks: Ranks, sizes: Sequence[int]) -> None:
        self.ranks, self.sizes = ranks, sizes
        begin = sum(sizes[: ranks.rank])
        self.own = slice(begin, begin + sizes[ranks.rank])

    def joined(self, part: Tensor) -> Tensor:
        """(T, B, ...) of all ranks from each rank's part (T, b, ...), with no gradient."""
        whole = self.ranks.joined_along(part.detach(), 1, self.sizes)
        assert whole is not None
        return whole

    def join(self, part: Tensor) -> Tensor:
        """``joined`` with a gradient: summed over the ranks for all columns; each rank gets its own columns."""
        return _Join.apply(part, self)


class _LookUp(torch.autograd.Function):
    """``WordShard.look_up``: zeros where a word is not own, summed over the ranks."""

    @staticmethod
    def forward(ctx: Any, rows_vE: Tensor, tokens_TB: Tensor, shard: WordShard, together: bool, sparse: bool) -> Tensor:
        columns = shard.columns(tokens_TB) if together else None
        place_TB = shard.places(tokens_TB if columns is None else columns.joined(tokens_TB))
        own_TB1 = (place_TB >= 0).unsqueeze(-1)
        found_TBE = rows_vE[place_TB.clamp(min=0)] * own_TB1
        shard.ranks.add_up_([found_TBE])
        ctx.columns, ctx.num_rows, ctx.sparse = columns, len(rows_vE), sparse
        ctx.save_for_backward(place_TB)
        return found_TBE if columns is None else found_TBE[:, columns.own].clone()

    @staticmethod
    @differentiable_once("WordShard.look_up")
    def backward(ctx: Any, grad_TbE: Tensor) -> tuple[Any, ...]:
        (place_TB,) = ctx.saved_tensors
        grad_TBE = ctx.columns.joined(grad_TbE) if ctx.columns is not None else grad_TbE
        grad_NE = (grad_TBE * (place_TB >= 0).unsqueeze(-1)).flatten(0, 1)
        place_N, shape = place_TB.clamp(min=0).flatten(), (ctx.num_rows, grad_NE.shape[-1])
        if ctx.sparse:
            grad_vE = torch.sparse_coo_tensor(place_N[None], grad_NE, shape, check_invariants=False)
        else:
            grad_vE = grad_NE.new_zeros(shape).index_add_(0, place_N, grad_NE)
        return grad_vE, None, None, None, None


class _Join(torch.autograd.Function):
    """``Columns.join``."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, columns: Columns) -> Tensor:
        ctx.columns = columns
        return columns.joined(part)

    @staticmethod
    @differentiable_once("Columns.join")
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        grad = grad.clone(memory_format=torch.contiguous_format)
        ctx.columns.ranks.add_up_([grad])
        return grad[:, ctx.columns.own], None


class _NLL(torch.autograd.Function):
    """``WordShard.nll``: d/d log_normaliser = exp(log_normaliser - log Z), d/d score = -1 where the target is own."""

    @staticmethod
    def forward(ctx: Any, log_normaliser_N: Tensor, score_N: Tensor, own_N: Tensor, ranks: Ranks) -> Tensor:
        top_N = log_normaliser_N.clone()
        ranks.largest_(top_N)
        sums_2N = torch.stack([(log_normaliser_N - top_N).exp(), torch.where(own_N, score_N, 0.0)])
        ranks.add_up_([sums_2N])
        log_total_N = top_N + sums_2N[0].log()
        ctx.ranks = ranks
        ctx.save_for_backward((log_normaliser_N - log_total_N).exp(), own_N)
        return log_total_N - sums_2N[1]

    @staticmethod
    @differentiable_once("WordShard.nll")
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Any, ...]:
        share_N, own_N = ctx.saved_tensors
        grad_N = grad_N.clone(memory_format=torch.contiguous_format)
        ctx.ranks.add_up_([grad_N])
        return grad_N * share_N, -grad_N * own_N, None, None


@final
class WordVectors(nn.Embedding):
    """``nn.Embedding`` of words, whose rows several processes may divide among themselves.

    Attributes:
        shard: of which words this process has the rows; None: of all.
    """

    shard: WordShard | None = None

    def shard_words(self, shard: WordShard) -> None:
        """Keep the rows of some words alone; once for a table that several modules share."""
        if self.shard is None:
            shard.cut_(self.weight)
            self.num_embeddings, self.shard = len(self.weight), shard

    def forward(self, input: Tensor) -> Tensor:
        """Vectors (..., E) of word ids (...). In shards these are (T, B): in training of this rank's columns, in evaluation the
        same on all ranks."""
        if self.shard is None:
            return super().forward(input)
        return self.shard.look_up(self.weight, input, self.training, self.sparse)


def uniform_embedding(num_rows: int, size: int, spread: float = 0.1) -> WordVectors:
    """(V, E) vectors, uniform in +-``spread``."""
    embedding = WordVectors(num_rows, size)
    nn.init.uniform_(embedding.weight, -spread, spread)
    return embedding
