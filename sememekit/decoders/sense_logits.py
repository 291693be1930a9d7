"""The hot loop of the sememe-driven layer: logits of all senses, and the likelihood of target words, in blocks of tokens.

Cost for each token, forward: R V E multiply-adds for the products of contexts and words (the floor, that of R softmax layers),
then R S multiply-adds for the senses. Two exact savings over the paper's formulation: the product with the word vector is the
same for all senses of a word (V rows, not S), and the gate of a sense depends on its set of sememes alone (U rows, not S).
Rows are vocabulary-major, (rows, N): a gather is then a copy of contiguous rows.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers import Incidence
from sememekit.sememes import SememeGraph


@final
class SenseStructure(nn.Module):
    """Words, senses, sets of sememes and sememes as index arrays on the device; it holds nothing that is learned.

    Made from a sememe graph by ``from_graph``, and cut to some of its words by ``of_words``.

    Attributes:
        senses_of_word: Incidence (V x S).
        senses_of_set: Incidence (U x S).
        sememes_of_set: Incidence (U x K).
        squared_degree: (edges of sememes_of_set,) 1 / C[k, s]^2, an integer: |E(s)|^2, or |E(s)| |D(k)| in the symmetric form.
        word_of_sense, set_of_sense: (S,).
        sense_offsets: (V + 1,) where the senses of each word begin and end.
        most_senses: M, the most senses that any word of the graph has.
    """

    word_of_sense: Tensor
    set_of_sense: Tensor
    sense_offsets: Tensor
    squared_degree: Tensor

    def __init__(
        self,
        sense_offsets: Tensor,
        set_of_sense: Tensor,
        set_offsets: Tensor,
        set_sememes: Tensor,
        squared_degree: Tensor,
        num_sememes: int,
        most_senses: int,
    ) -> None:
        super().__init__()
        self.num_words, self.num_senses, self.most_senses = len(sense_offsets) - 1, len(set_of_sense), most_senses
        num_sets, every_sense = len(set_offsets) - 1, torch.arange(len(set_of_sense), device=set_of_sense.device)
        set_sense_offsets = functional.pad(torch.bincount(set_of_sense, minlength=num_sets).cumsum(0), (1, 0))
        self.senses_of_word = Incidence(sense_offsets, every_sense, self.num_senses)
        self.senses_of_set = Incidence(set_sense_offsets, set_of_sense.argsort(stable=True), self.num_senses)
        self.sememes_of_set = Incidence(set_offsets, set_sememes, num_sememes)
        self.register_buffer("word_of_sense", self.senses_of_word.row_of_edge, persistent=False)
        self.register_buffer("set_of_sense", set_of_sense, persistent=False)
        self.register_buffer("sense_offsets", sense_offsets, persistent=False)
        self.register_buffer("squared_degree", squared_degree, persistent=False)

    @classmethod
    def from_graph(cls, graph: SememeGraph, *, symmetric: bool) -> SenseStructure:
        """The whole graph, with C[k, s] in its left or its symmetric form."""
        set_sizes = np.diff(graph.set_offsets)
        own = np.repeat(set_sizes, set_sizes)
        squared_degree = own * (graph.senses_per_sememe[graph.set_sememes] if symmetric else own)
        arrays = (graph.sense_offsets, graph.sense_set, graph.set_offsets, graph.set_sememes, squared_degree)
        offsets, set_of_sense, set_offsets, members, degrees = (torch.from_numpy(array.astype(np.int64)) for array in arrays)
        most_senses = int(np.diff(graph.sense_offsets).max())
        return cls(offsets, set_of_sense, set_offsets, members, degrees, graph.num_sememes, most_senses)

    def of_words(self, words: Tensor) -> tuple[SenseStructure, Tensor]:
        """The part of the structure that the distinct words (W,) reach, and the (S',) numbers of their senses in the whole.

        Words, senses and sets are numbered anew in it, sememes keep their numbers, and so does C[k, s], which counts the senses
        of the whole graph.
        """
        sense_offsets, senses = _ranges(self.sense_offsets, words)
        sets, set_of_sense = self.set_of_sense[senses].unique(return_inverse=True)
        set_offsets, edges = _ranges(self.sememes_of_set.offsets, sets)
        members, num_sememes = self.sememes_of_set.members[edges], self.sememes_of_set.num_columns
        part = SenseStructure(
            sense_offsets, set_of_sense, set_offsets, members, self.squared_degree[edges], num_sememes, self.most_senses
        )
        return part, senses

    def constant(self, dtype: torch.dtype) -> Tensor:
        """(edges,) C[k, s], which depends on the set of the sense alone."""
        return self.squared_degree.to(dtype).rsqrt()

    def edge_weights(self, mixing: Tensor) -> Tensor:
        """(R, edges) C[k, s] alpha[r, k] for each basis and each edge between a set and a sememe. ``mixing``: (R, K)."""
        return self.constant(mixing.dtype) * mixing[:, self.sememes_of_set.members]

    def senses_of(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """All senses of ``words`` (N,), padded to M, the most that any word has: (M, N) senses and (M, N) which are real.

        A fixed M keeps the shape known beforehand, so that nothing waits for the device.
        """
        first = self.sense_offsets[words]
        count = self.sense_offsets[words + 1] - first
        rank = torch.arange(self.most_senses, device=words.device)[:, None]
        return first + torch.minimum(rank, count - 1), rank < count


def _ranges(offsets: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The members offsets[r] to offsets[r + 1] of some rows (n,), one after the other: new offsets (n + 1,), and members."""
    first, count = offsets[rows], offsets[rows + 1] - offsets[rows]
    new = functional.pad(count.cumsum(0), (1, 0))
    members = torch.arange(int(new[-1]), device=offsets.device)
    return new, members + (first - new[:-1]).repeat_interleave(count)


def sense_logits(
    structure: SenseStructure, transformed: Tensor, words: Tensor, gates: Tensor, mixing: Tensor, bias: Tensor | None
) -> Tensor:
    """Logits of all senses, Eq. (8) and (9) of Gu et al. 2018 plus the bias of the sense.

    Args:
        structure: the graph.
        transformed: (R, E, N) the contexts in every basis.
        words: (V, E) word vectors.
        gates: (K, N) sememe gates q.
        mixing: (R, K) weights alpha of the bases.
        bias: (S,) or None.

    Returns:
        (S, N) in the natural-log domain, not normalised.
    """
    weights = structure.edge_weights(mixing)
    total = None
    for r in range(transformed.shape[0]):
        scores = (words @ transformed[r]).index_select(0, structure.word_of_sense)
        strength = structure.sememes_of_set(gates, weights[r]).index_select(0, structure.set_of_sense)
        total = scores * strength if total is None else torch.addcmul(total, scores, strength)
    assert total is not None
    return total if bias is None else total + bias[:, None]


def sense_nll(
    structure: SenseStructure,
    transformed: Tensor,
    words: Tensor,
    gates: Tensor,
    mixing: Tensor,
    bias: Tensor | None,
    target: Tensor,
    block: int,
    correction: Tensor | None = None,
) -> Tensor:
    """Negative log-likelihood (N,) in nats of target words (N,): log-sum-exp over all senses minus that over the target's.

    Arguments as ``sense_logits``; ``block`` tokens are worked on at once. A ``correction`` (V,) is added to the logits of each
    word's senses in the first log-sum-exp, those of the target excepted: ``sampling.estimated_nll``, over senses.

    The backward pass is written by hand: it keeps the products with the words and the logits, and computes the gates again, so
    that no tensor of R x S x N ever exists.
    """
    if torch.is_autocast_enabled(transformed.device.type):
        product_dtype = torch.get_autocast_dtype(transformed.device.type)
    else:
        product_dtype = words.dtype
    offset = None if correction is None else correction.to(words.dtype)[structure.word_of_sense, None]
    gates = gates.to(words.dtype)
    return _SenseNLL.apply(structure, transformed, words, gates, mixing, bias, target, block, offset, product_dtype)


class _SenseNLL(torch.autograd.Function):
    """``sense_nll`` with its gradient. Products run in ``product_dtype``; gates, logits, sums keep the dtype of the words."""

    @staticmethod
    def forward(
        ctx: Any,
        structure: SenseStructure,
        transformed: Tensor,
        words: Tensor,
        gates: Tensor,
        mixing: Tensor,
        bias: Tensor | None,
        target: Tensor,
        block: int,
        offset: Tensor | None,
        product_dtype: torch.dtype,
    ) -> Tensor:
        keep = any(ctx.needs_input_grad)
        weights = structure.edge_weights(mixing)
        words_lowered, transformed_lowered = words.to(product_dtype), transformed.to(product_dtype)
        num_bases, _, num_tokens = transformed.shape
        log_normaliser = words.new_empty(num_tokens)
        log_target = words.new_empty(num_tokens)
        kept = []
        for begin in range(0, num_tokens, block):
            part = slice(begin, min(begin + block, num_tokens))
            contexts = transformed_lowered[:, :, part].transpose(1, 2)
            scores = [words_lowered @ contexts[r].T for r in range(num_bases)]
            part_gates = gates[:, part].contiguous()
            logits = _start(bias, structure.num_senses, scores[0])
            for r in range(num_bases):
                strength = structure.sememes_of_set(part_gates, weights[r]).index_select(0, structure.set_of_sense)
                logits.addcmul_(scores[r].index_select(0, structure.word_of_sense).to(words.dtype), strength)
            sense, real = structure.senses_of(target[part])
            own = logits.gather(0, sense)
            log_target[part] = own.masked_fill(~real, -torch.inf).logsumexp(dim=0)
            if offset is not None:
                logits.add_(offset).scatter_(0, sense, own)
            torch.logsumexp(logits, dim=0, out=log_normaliser[part])
            if keep:
                kept += [*scores, logits]
        if keep:
            ctx.structure, ctx.block, ctx.product_dtype = structure, block, product_dtype
            ctx.with_bias = bias is not None
            ctx.save_for_backward(transformed, words, gates, mixing, target, log_normaliser, log_target, *kept)
        return log_normaliser - log_target

    @staticmethod
    def backward(ctx: Any, grad_nll: Tensor) -> tuple[Any, ...]:
        structure: SenseStructure = ctx.structure
        transformed, words, gates, mixing, target, log_normaliser, log_target, *kept = ctx.saved_tensors
        weights, constant = structure.edge_weights(mixing), structure.constant(words.dtype)
        words_lowered, transformed_lowered = words.to(ctx.product_dtype), transformed.to(ctx.product_dtype)
        num_bases, width, num_tokens = transformed.shape
        grad_words, grad_gates = torch.zeros_like(words), torch.zeros_like(gates)
        grad_mixing, grad_transformed = torch.zeros_like(mixing), torch.empty_like(transformed)
        grad_bias = words.new_zeros(structure.num_senses) if ctx.with_bias else None
        for number, begin in enumerate(range(0, num_tokens, ctx.block)):
            part = slice(begin, min(begin + ctx.block, num_tokens))
            *scores, logits = kept[(num_bases + 1) * number : (num_bases + 1) * (number + 1)]
            size = logits.shape[1]
            part_gates = gates[:, part].contiguous()
            grad_logits = (logits - log_normaliser[part]).exp_()
            sense, real = structure.senses_of(target[part])
            share = (logits.gather(0, sense) - log_target[part]).exp().masked_fill(~real, 0.0)
            grad_logits.scatter_add_(0, sense, -share)
            grad_logits *= grad_nll[part]
            if grad_bias is not None:
                grad_bias += grad_logits.sum(dim=1)
            grad_scores = torch.empty((structure.num_words, num_bases, size), dtype=ctx.product_dtype, device=words.device)
            for r in range(num_bases):
                strength = structure.sememes_of_set(part_gates, weights[r]).index_select(0, structure.set_of_sense)
                grad_scores[:, r] = structure.senses_of_word(strength.mul_(grad_logits))
                of_sense = scores[r].index_select(0, structure.word_of_sense).to(words.dtype).mul_(grad_logits)
                of_sememe = structure.sememes_of_set.back(structure.senses_of_set(of_sense), constant)
                grad_mixing[r] = grad_mixing[r] + (of_sememe * part_gates).sum(dim=1)
                grad_gates[:, part] += of_sememe * mixing[r][:, None]
            flat = grad_scores.view(structure.num_words, num_bases * size)
            contexts = transformed_lowered[:, :, part].transpose(1, 2).reshape(num_bases * size, width)
            grad_words += flat @ contexts
            grad_part = (flat.T @ words_lowered).view(num_bases, size, width).transpose(1, 2)
            grad_transformed[:, :, part] = grad_part.to(transformed.dtype)
        return None, grad_transformed, grad_words, grad_gates, grad_mixing, grad_bias, None, None, None, None


def _start(bias: Tensor | None, num_senses: int, scores: Tensor) -> Tensor:
    """(S, n) float logits before any basis: the bias of each sense, or zero."""
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    shape = (num_senses, scores.shape[-1])
    if bias is None:
        return torch.zeros(shape, dtype=dtype, device=scores.device)
    return bias[:, None].to(dtype).expand(shape).clone(memory_format=torch.contiguous_format)
