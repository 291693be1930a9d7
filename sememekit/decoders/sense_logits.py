"""The main computation of the sememe-driven layer: logits of all senses, and the likelihood of target words, in blocks of
tokens and of words.

Cost for each token, forward: R V E multiply-adds for the products of contexts and words (the floor, that of R softmax layers),
then R edges multiply-adds for the gates of all senses and R S for their products. One exact saving over the paper's
formulation: the product with the word vector is the same for all senses of a word (V rows, not S).
Rows are vocabulary-major, (rows, N): a gather is then a copy of contiguous rows. What is done for each sense and basis is done
for some four thousand words and 64 tokens at a time, so that the numbers in between stay in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sememekit.decoders.sense_structure import SenseBlock, SenseStructure
from sememekit.layers import add_product, product_dtype


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
    blocks, _, place_of = structure.blocks(mixing_RK.dtype)
    by_block = []
    for block in blocks:
        weights = _edge_weights(block, mixing_RK)
        total_sN = contexts_REN.new_zeros(())
        for r, context_EN in enumerate(contexts_REN):
            score_vN = words_VE[block.words] @ context_EN
            score_sN = torch.cat([score_vN, score_vN.index_select(0, block.word_of_further)])
            total_sN = total_sN + score_sN * block.sememes_of_sense(gates_KN, weights[r])
        by_block.append(total_sN)
    total_SN = torch.cat(by_block).index_select(0, place_of)
    return total_SN if bias_S is None else total_SN + bias_S[:, None]


def sense_nll(inputs: SenseInputs, target_N: Tensor, block: int, correction_V: Tensor | None = None) -> Tensor:
    """(N,) nats of target words: the log-sum-exp over all senses minus that over the target's.

    ``block`` tokens are worked on at once. ``correction_V`` is added to the logits of each word's senses in the first
    log-sum-exp, those of the target excepted: ``sampling.estimated_nll``, over senses.

    The backward pass is written by hand: it keeps the products with the words and the unnormalised probabilities of senses, and
    computes the gates again, so that no tensor of R x S x N ever exists.
    """
    structure, contexts_REN, words_VE, gates_KN, mixing_RK, bias_S = inputs
    gates_KN = gates_KN.to(words_VE.dtype)
    lowered = product_dtype(words_VE)
    return _SenseNLL.apply(
        structure, contexts_REN, words_VE, gates_KN, mixing_RK, bias_S, target_N, block, correction_V, lowered
    )


class _SenseNLL(torch.autograd.Function):
    """``sense_nll`` with its gradient. Products run in ``lowered``; gates, logits, sums keep the dtype of the words.

    n is the number of tokens of a block, M the most senses of a word; s and v are senses and words of a block of words. Arrays
    over all senses are in the order of the blocks (``SenseBlocks``).
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
        correction_V: Tensor | None,
        lowered: torch.dtype,
    ) -> Tensor:
        keep = any(ctx.needs_input_grad)
        blocks, sense_at, place_of = structure.blocks(words_VE.dtype)
        weights = [_edge_weights(each, mixing_RK) for each in blocks]
        start_S = words_VE.new_zeros(structure.num_senses) if bias_S is None else bias_S.to(words_VE.dtype)[sense_at]
        offset_S = None if correction_V is None else correction_V.to(words_VE.dtype)[structure.word_of_sense[sense_at]]
        low_words_VE, low_contexts_REN = words_VE.to(lowered), contexts_REN.to(lowered)
        num_bases, num_tokens = len(contexts_REN), len(target_N)
        nats_N = words_VE.new_empty(num_tokens)
        kept = []
        for begin in range(0, num_tokens, block):
            part = slice(begin, min(begin + block, num_tokens))
            size = part.stop - begin
            scores_VRn = (low_words_VE @ _side_by_side(low_contexts_REN, part)).view(-1, num_bases, size)
            gates_Kn = gates_KN[:, part].contiguous()
            logits_Sn = start_S[:, None].repeat(1, size)
            for each, weight in zip(blocks, weights, strict=True):
                logits_sn = logits_Sn[each.places]
                for score_vn, weight_of_edge in zip(scores_VRn[each.words].unbind(1), weight, strict=True):
                    each.add_products(logits_sn, score_vn.to(words_VE.dtype), each.sememes_of_sense(gates_Kn, weight_of_edge))
            sense_Mn, real_Mn = structure.senses_of(target_N[part])
            place_Mn = place_of[sense_Mn]
            own_Mn = logits_Sn.gather(0, place_Mn)
            if offset_S is not None:
                logits_Sn.add_(offset_S[:, None]).scatter_(0, place_Mn, own_Mn)
            own_Mn = own_Mn.masked_fill(~real_Mn, -torch.inf)
            top_n = logits_Sn.amax(dim=0)
            raised_Sn = logits_Sn.sub_(top_n).exp_()
            total_n = raised_Sn.sum(dim=0)
            nats_N[part] = total_n.log() + top_n - own_Mn.logsumexp(dim=0)
            if keep:
                kept += [scores_VRn, raised_Sn, total_n, place_Mn, own_Mn.softmax(dim=0)]
        if keep:
            ctx.structure, ctx.block, ctx.lowered, ctx.with_bias = structure, block, lowered, bias_S is not None
            ctx.save_for_backward(contexts_REN, words_VE, gates_KN, mixing_RK, *kept)
        return nats_N

    @staticmethod
    def backward(ctx: Any, grad_nll_N: Tensor) -> tuple[Any, ...]:
        structure: SenseStructure = ctx.structure
        contexts_REN, words_VE, gates_KN, mixing_RK, *kept = ctx.saved_tensors
        blocks, _, place_of = structure.blocks(words_VE.dtype)
        weights = [_edge_weights(each, mixing_RK) for each in blocks]
        low_words_VE, low_contexts_REN = words_VE.to(ctx.lowered), contexts_REN.to(ctx.lowered)
        num_bases, width, num_tokens = contexts_REN.shape
        grad_words_VE, grad_gates_KN = torch.zeros_like(words_VE), torch.empty_like(gates_KN)
        grad_mixing_RK, grad_contexts_REN = torch.zeros_like(mixing_RK), torch.empty_like(contexts_REN)
        grad_bias_S = words_VE.new_zeros(structure.num_senses)
        # One buffer for all blocks of tokens: fresh memory costs more than what is written to it.
        buffer = torch.empty(
            structure.num_words * num_bases * min(ctx.block, num_tokens), dtype=ctx.lowered, device=words_VE.device
        )
        scratch = words_VE.new_empty(structure.num_senses * min(ctx.block, num_tokens))
        for number, begin in enumerate(range(0, num_tokens, ctx.block)):
            part = slice(begin, min(begin + ctx.block, num_tokens))
            size = part.stop - begin
            scores_VRn, raised_Sn, total_n, place_Mn, share_Mn = kept[5 * number : 5 * (number + 1)]
            gates_Kn = gates_KN[:, part].contiguous()
            grad_logits_Sn = raised_Sn * (grad_nll_N[part] / total_n)
            grad_logits_Sn.scatter_add_(0, place_Mn, share_Mn * -grad_nll_N[part])
            grad_bias_S += grad_logits_Sn.sum(dim=1)
            grad_scores_VRn = buffer[: scores_VRn.numel()].view(scores_VRn.shape)
            of_sense_Sn = scratch[: raised_Sn.numel()].view(raised_Sn.shape)
            of_sememe_RKn = gates_Kn.new_zeros(num_bases, *gates_Kn.shape)
            for each, weight in zip(blocks, weights, strict=True):
                grad_logits_sn, of_sense_sn = grad_logits_Sn[each.places], of_sense_Sn[each.places]
                scores_of, grads_of = scores_VRn[each.words].unbind(1), grad_scores_VRn[each.words].unbind(1)
                for r in range(num_bases):
                    each.products(scores_of[r].to(words_VE.dtype), grad_logits_sn, out=of_sense_sn)
                    of_sememe_RKn[r] += each.sememes_of_sense.back(of_sense_sn, each.back_constant)
                    strength_sn = each.sememes_of_sense(gates_Kn, weight[r]).mul_(grad_logits_sn)
                    grads_of[r].copy_(each.senses_of_word(strength_sn))
            grad_mixing_RK += (of_sememe_RKn * gates_Kn).sum(dim=2)
            grad_gates_KN[:, part] = of_sememe_RKn.mul_(mixing_RK[:, :, None]).sum(dim=0)
            flat = grad_scores_VRn.flatten(1)  # (V, R n)
            add_product(grad_words_VE, flat, _side_by_side(low_contexts_REN, part).T)
            grad_ERn = (low_words_VE.T @ flat).view(width, num_bases, size)
            grad_contexts_REN[:, :, part] = grad_ERn.transpose(0, 1).to(contexts_REN.dtype)
        grad_bias = grad_bias_S[place_of] if ctx.with_bias else None
        return None, grad_contexts_REN, grad_words_VE, grad_gates_KN, grad_mixing_RK, grad_bias, None, None, None, None


def _edge_weights(block: SenseBlock, mixing_RK: Tensor) -> Tensor:
    """(R, edges) C[k, s] alpha[r, k] for each basis and each edge between a sense and a sememe."""
    return block.constant * mixing_RK.index_select(1, block.sememes_of_sense.members)


def _side_by_side(contexts_REN: Tensor, part: slice) -> Tensor:
    """(E, R n) the contexts of some tokens in all bases, for one product."""
    return contexts_REN[:, :, part].transpose(0, 1).flatten(1)
