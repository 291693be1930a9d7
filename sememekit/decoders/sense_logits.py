"""The main computation of the sememe-driven layer: logits of all senses, and the likelihood of target words, in blocks of
tokens.

Cost for each token, forward: R V E multiply-adds for the products of contexts and words (the floor, that of R softmax layers),
then R S multiply-adds for the senses. Two exact savings over the paper's formulation: the product with the word vector is the
same for all senses of a word (V rows, not S), and the gate of a sense depends on its set of sememes alone (U rows, not S).
Rows are vocabulary-major, (rows, N): a gather is then a copy of contiguous rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.layers import Incidence, product_dtype
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


class SenseInputs(NamedTuple):
    """What the logits of senses are made of, for N tokens.

    Attributes:
        structure: the graph.
        contexts_REN: the contexts in every basis.
        words_VE: word vectors.
        gates_KN: sememe gates q.
        mixing_RK: weights alpha of the bases.
        bias_S: of each sense, or None.
    """

    structure: SenseStructure
    contexts_REN: Tensor
    words_VE: Tensor
    gates_KN: Tensor
    mixing_RK: Tensor
    bias_S: Tensor | None


def sense_logits(inputs: SenseInputs) -> Tensor:
    """(S, N) logits of all senses, not normalised: Eq. (8) and (9) of Gu et al. 2018 plus the bias of the sense."""
    structure, contexts_REN, words_VE, gates_KN, mixing_RK, bias_S = inputs
    weights = structure.edge_weights(mixing_RK)
    total_SN = None
    for r, context_EN in enumerate(contexts_REN):
        score_SN = (words_VE @ context_EN).index_select(0, structure.word_of_sense)
        strength_SN = structure.sememes_of_set(gates_KN, weights[r]).index_select(0, structure.set_of_sense)
        total_SN = score_SN * strength_SN if total_SN is None else torch.addcmul(total_SN, score_SN, strength_SN)
    assert total_SN is not None
    return total_SN if bias_S is None else total_SN + bias_S[:, None]


def sense_nll(inputs: SenseInputs, target_N: Tensor, block: int, correction_V: Tensor | None = None) -> Tensor:
    """(N,) nats of target words: the log-sum-exp over all senses minus that over the target's.

    ``block`` tokens are worked on at once. ``correction_V`` is added to the logits of each word's senses in the first
    log-sum-exp, those of the target excepted: ``sampling.estimated_nll``, over senses.

    The backward pass is written by hand: it keeps the products with the words and the logits, and computes the gates again, so
    that no tensor of R x S x N ever exists.
    """
    structure, contexts_REN, words_VE, gates_KN, mixing_RK, bias_S = inputs
    offset_S1 = None if correction_V is None else correction_V.to(words_VE.dtype)[structure.word_of_sense, None]
    gates_KN = gates_KN.to(words_VE.dtype)
    lowered = product_dtype(words_VE)
    return _SenseNLL.apply(structure, contexts_REN, words_VE, gates_KN, mixing_RK, bias_S, target_N, block, offset_S1, lowered)


class _SenseNLL(torch.autograd.Function):
    """``sense_nll`` with its gradient. Products run in ``lowered``; gates, logits, sums keep the dtype of the words.

    n is the number of tokens of a block, M the most senses of a word.
    """

    @staticmethod
    def forward(
        ctx: Any,
        structure: SenseStructure,
        contexts_REN: Tensor,
        words_VE: Tensor,
        gates_KN: Tensor,
        mixing_RK: Tensor,
        bias_S: Tensor | None,
        target_N: Tensor,
        block: int,
        offset_S1: Tensor | None,
        lowered: torch.dtype,
    ) -> Tensor:
        keep = any(ctx.needs_input_grad)
        weights = structure.edge_weights(mixing_RK)
        low_words_VE, low_contexts_REN = words_VE.to(lowered), contexts_REN.to(lowered)
        num_tokens = contexts_REN.shape[2]
        log_normaliser_N, log_target_N = words_VE.new_empty(num_tokens), words_VE.new_empty(num_tokens)
        kept = []
        for begin in range(0, num_tokens, block):
            part = slice(begin, min(begin + block, num_tokens))
            scores_RVn = [low_words_VE @ context_EN[:, part] for context_EN in low_contexts_REN]
            gates_Kn = gates_KN[:, part].contiguous()
            logits_Sn = _start(bias_S, structure.num_senses, scores_RVn[0])
            for r, score_Vn in enumerate(scores_RVn):
                strength_Sn = structure.sememes_of_set(gates_Kn, weights[r]).index_select(0, structure.set_of_sense)
                logits_Sn.addcmul_(score_Vn.index_select(0, structure.word_of_sense).to(words_VE.dtype), strength_Sn)
            sense_Mn, real_Mn = structure.senses_of(target_N[part])
            own_Mn = logits_Sn.gather(0, sense_Mn)
            log_target_N[part] = own_Mn.masked_fill(~real_Mn, -torch.inf).logsumexp(dim=0)
            if offset_S1 is not None:
                logits_Sn.add_(offset_S1).scatter_(0, sense_Mn, own_Mn)
            torch.logsumexp(logits_Sn, dim=0, out=log_normaliser_N[part])
            if keep:
                kept += [*scores_RVn, logits_Sn]
        if keep:
            ctx.structure, ctx.block, ctx.lowered, ctx.with_bias = structure, block, lowered, bias_S is not None
            ctx.save_for_backward(contexts_REN, words_VE, gates_KN, mixing_RK, target_N, log_normaliser_N, log_target_N, *kept)
        return log_normaliser_N - log_target_N

    @staticmethod
    def backward(ctx: Any, grad_nll_N: Tensor) -> tuple[Any, ...]:
        structure: SenseStructure = ctx.structure
        contexts_REN, words_VE, gates_KN, mixing_RK, target_N, log_normaliser_N, log_target_N, *kept = ctx.saved_tensors
        weights, constant = structure.edge_weights(mixing_RK), structure.constant(words_VE.dtype)
        low_words_VE, low_contexts_REN = words_VE.to(ctx.lowered), contexts_REN.to(ctx.lowered)
        num_bases, width, num_tokens = contexts_REN.shape
        grad_words_VE, grad_gates_KN = torch.zeros_like(words_VE), torch.zeros_like(gates_KN)
        grad_mixing_RK, grad_contexts_REN = torch.zeros_like(mixing_RK), torch.empty_like(contexts_REN)
        grad_bias_S = words_VE.new_zeros(structure.num_senses) if ctx.with_bias else None
        for number, begin in enumerate(range(0, num_tokens, ctx.block)):
            part = slice(begin, min(begin + ctx.block, num_tokens))
            *scores_RVn, logits_Sn = kept[(num_bases + 1) * number : (num_bases + 1) * (number + 1)]
            size = logits_Sn.shape[1]
            gates_Kn = gates_KN[:, part].contiguous()
            grad_logits_Sn = (logits_Sn - log_normaliser_N[part]).exp_()
            sense_Mn, real_Mn = structure.senses_of(target_N[part])
            share_Mn = (logits_Sn.gather(0, sense_Mn) - log_target_N[part]).exp().masked_fill(~real_Mn, 0.0)
            grad_logits_Sn.scatter_add_(0, sense_Mn, -share_Mn)
            grad_logits_Sn *= grad_nll_N[part]
            if grad_bias_S is not None:
                grad_bias_S += grad_logits_Sn.sum(dim=1)
            grad_scores_VRn = words_VE.new_empty((structure.num_words, num_bases, size), dtype=ctx.lowered)
            for r, score_Vn in enumerate(scores_RVn):
                strength_Sn = structure.sememes_of_set(gates_Kn, weights[r]).index_select(0, structure.set_of_sense)
                grad_scores_VRn[:, r] = structure.senses_of_word(strength_Sn.mul_(grad_logits_Sn))
                of_sense_Sn = score_Vn.index_select(0, structure.word_of_sense).to(words_VE.dtype).mul_(grad_logits_Sn)
                of_sememe_Kn = structure.sememes_of_set.back(structure.senses_of_set(of_sense_Sn), constant)
                grad_mixing_RK[r] += (of_sememe_Kn * gates_Kn).sum(dim=1)
                grad_gates_KN[:, part] += of_sememe_Kn * mixing_RK[r][:, None]
            flat = grad_scores_VRn.flatten(1)  # (V, R n)
            contexts = low_contexts_REN[:, :, part].transpose(1, 2).reshape(num_bases * size, width)  # (R n, E)
            grad_words_VE += flat @ contexts
            grad_part = (flat.T @ low_words_VE).view(num_bases, size, width).transpose(1, 2)
            grad_contexts_REN[:, :, part] = grad_part.to(contexts_REN.dtype)
        return None, grad_contexts_REN, grad_words_VE, grad_gates_KN, grad_mixing_RK, grad_bias_S, None, None, None, None


def _start(bias_S: Tensor | None, num_senses: int, scores_Vn: Tensor) -> Tensor:
    """(S, n) float logits before any basis: the bias of each sense, or zero."""
    dtype = torch.float64 if scores_Vn.dtype == torch.float64 else torch.float32
    shape = (num_senses, scores_Vn.shape[-1])
    if bias_S is None:
        return torch.zeros(shape, dtype=dtype, device=scores_Vn.device)
    return bias_S[:, None].to(dtype).expand(shape).clone(memory_format=torch.contiguous_format)
