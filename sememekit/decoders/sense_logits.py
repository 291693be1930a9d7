"""The hot loop of the sememe-driven layer: logits of all senses, and the likelihood of target words, in blocks of tokens.

Cost for each token, forward: R V E multiply-adds for the products of contexts and words (the floor, that of R softmax layers),
then R S multiply-adds for the senses. Two exact savings over the paper's formulation: the product with the word vector is the
same for all senses of a word (V rows, not S), and the gate of a sense depends on its set of sememes alone (U rows, not S).
Rows are vocabulary-major, (rows, N): a gather is then a copy of contiguous rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sememekit.layers import Incidence, product
from sememekit.sememes import SememeGraph


class SenseStructure(nn.Module):
    """The sememe graph as index arrays on the device; it holds nothing that is learned.

    Attributes:
        senses_of_word: Incidence (V x S).
        senses_of_set: Incidence (U x S).
        sememes_of_set: Incidence (U x K).
        squared_degree: (edges of sememes_of_set,) 1 / C[k, s]^2, an integer: |E(s)|^2, or |E(s)| |D(k)| in the symmetric form.
    """

    word_of_sense: Tensor
    set_of_sense: Tensor
    sense_offsets: Tensor
    squared_degree: Tensor

    def __init__(self, graph: SememeGraph, symmetric: bool) -> None:
        super().__init__()
        self.num_words, self.num_senses = graph.num_words, graph.num_senses
        self.most_senses = int(np.diff(graph.sense_offsets).max())
        by_set = np.argsort(graph.sense_set, kind="stable")
        set_sense_offsets = np.concatenate([[0], np.cumsum(np.bincount(graph.sense_set, minlength=graph.num_sets))])
        self.senses_of_word = Incidence(graph.sense_offsets, np.arange(graph.num_senses), graph.num_senses)
        self.senses_of_set = Incidence(set_sense_offsets, by_set, graph.num_senses)
        self.sememes_of_set = Incidence(graph.set_offsets, graph.set_sememes, graph.num_sememes)
        set_sizes = np.diff(graph.set_offsets)
        own = np.repeat(set_sizes, set_sizes)
        squared_degree = own * (graph.senses_per_sememe[graph.set_sememes] if symmetric else own)
        self.register_buffer("word_of_sense", torch.from_numpy(graph.word_of_sense.copy()), persistent=False)
        self.register_buffer("set_of_sense", torch.from_numpy(graph.sense_set.copy()), persistent=False)
        self.register_buffer("sense_offsets", torch.from_numpy(graph.sense_offsets.copy()), persistent=False)
        self.register_buffer("squared_degree", torch.from_numpy(squared_degree.astype(np.int64)), persistent=False)

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
) -> Tensor:
    """Negative log-likelihood (N,) in nats of target words (N,): log-sum-exp over all senses minus that over the target's.

    Arguments as ``sense_logits``; ``block`` tokens are worked on at once. The backward pass is written by hand: it keeps the
    products with the words and the logits, and computes the gates again, so that no tensor of R x S x N ever exists.
    """
    if torch.is_autocast_enabled(transformed.device.type):
        product_dtype = torch.get_autocast_dtype(transformed.device.type)
    else:
        product_dtype = words.dtype
    return _SenseNLL.apply(structure, transformed, words, gates.to(words.dtype), mixing, bias, target, block, product_dtype)


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
            scores = [product(words_lowered, contexts[r]) for r in range(num_bases)]
            part_gates = gates[:, part].contiguous()
            logits = _start(bias, structure.num_senses, scores[0])
            for r in range(num_bases):
                strength = structure.sememes_of_set(part_gates, weights[r]).index_select(0, structure.set_of_sense)
                logits.addcmul_(scores[r].index_select(0, structure.word_of_sense).to(words.dtype), strength)
            torch.logsumexp(logits, dim=0, out=log_normaliser[part])
            sense, real = structure.senses_of(target[part])
            log_target[part] = logits.gather(0, sense).masked_fill(~real, -torch.inf).logsumexp(dim=0)
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
            grad_words += product(flat, contexts.T)
            grad_part = product(flat.T, words_lowered.T).view(num_bases, size, width).transpose(1, 2)
            grad_transformed[:, :, part] = grad_part.to(transformed.dtype)
        return None, grad_transformed, grad_words, grad_gates, grad_mixing, grad_bias, None, None, None


def _start(bias: Tensor | None, num_senses: int, scores: Tensor) -> Tensor:
    """(S, n) float logits before any basis: the bias of each sense, or zero."""
    dtype = torch.float64 if scores.dtype == torch.float64 else torch.float32
    shape = (num_senses, scores.shape[-1])
    if bias is None:
        return torch.zeros(shape, dtype=dtype, device=scores.device)
    return bias[:, None].to(dtype).expand(shape).clone(memory_format=torch.contiguous_format)
