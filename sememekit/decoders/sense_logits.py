"""The main computation of the sememe-driven layer: logits of senses and likelihood of targets, in blocks of tokens and words.

The forward cost of a token in multiply-adds: R V E for the products of contexts and words (as in R softmax layers), R times the
number of edges for the gates of all senses, and R S for the products of gates and scores. The product with the word vector is
computed once for all senses of a word (V rows instead of S as in the paper), which is exact. Arrays of words, senses and
sememes are transposed, (rows, n), so that a gather copies contiguous rows. Blocks of some thousand senses and 64 tokens are
processed at a time, so that intermediate values stay in the cache."""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sememekit.decoders.sense_structure import SenseBlock, SenseStructure
from sememekit.layers import add_product, differentiable_once, product_dtype

KEPT_FROM = 96
"""Below this width, the backward pass recomputes the products with the words, which saves R V stored numbers a token."""


class SenseInputs(NamedTuple):
    """Inputs of the logits of senses, for N tokens."""

    structure: SenseStructure
    contexts_RNE: Tensor  # the contexts in every basis
    words_VE: Tensor
    gates_KN: Tensor  # sememe gates q
    mixing_RK: Tensor  # weights alpha of the bases
    bias_S: Tensor | None  # of each sense, or None


def sense_logits(inputs: SenseInputs) -> Tensor:
    """Return (S, N) unnormalised logits of all senses: the exponent of Eq. (8) of Gu et al. 2018 plus the sense bias."""
    structure, contexts_RNE, words_VE, gates_KN, mixing_RK, bias_S = inputs
    order, contexts_EX = structure.blocks(mixing_RK.dtype), contexts_RNE.flatten(0, 1).T
    # The narrower of scores and vectors is copied into the order of the blocks; an exported program has any number of contexts.
    few = not torch.compiler.is_compiling() and contexts_EX.shape[1] < len(contexts_EX)
    table = (words_VE @ contexts_EX if few else words_VE).index_select(0, order.word_at)
    by_block = []
    for block in order.blocks:
        scores_vX = table[block.words] if few else table[block.words] @ contexts_EX
        scores_RvN = scores_vX.view(len(scores_vX), *contexts_RNE.shape[:2]).unbind(1)
        total_sN = contexts_RNE.new_zeros(())
        for scores_vN, weight in zip(scores_RvN, _edge_weights(block, mixing_RK), strict=True):
            total_sN = total_sN + block.of_senses(scores_vN) * block.sememes_of_sense(gates_KN, weight)
        by_block.append(total_sN)
    total_SN = torch.cat(by_block).index_select(0, order.place_of)
    return total_SN if bias_S is None else total_SN + bias_S[:, None]


def normaliser_and_score(
    inputs: SenseInputs, target_N: Tensor, block: int, correction_V: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the log-sum-exp (N,) over all senses, and (N,) over the senses of the target; the loss is their difference.

    ``block`` tokens are computed at once. ``correction_V`` is added to the logits of each word's senses in the first
    log-sum-exp, except for the target, as in ``sampling.estimated_nll``.

    The hand-written backward pass keeps the products with the words and the unnormalised sense probabilities, and recomputes
    the gates, so that no tensor of R x S x N exists. For a compiler, which cannot trace writes into parts of tensors, the same
    sums use plain operations."""
    if torch.compiler.is_compiling() and correction_V is None:  # the number of sampled words varies
        logits_SN = sense_logits(inputs)
        sense_MN, real_MN = inputs.structure.senses_of(target_N)
        own_MN = logits_SN.gather(0, sense_MN)
        return logits_SN.logsumexp(dim=0), own_MN.masked_fill(~real_MN, -torch.inf).logsumexp(dim=0)
    structure, contexts_RNE, words_VE, gates_KN, mixing_RK, bias_S = inputs
    # Inside the function it is not known whether gradients are recorded.
    how = structure, target_N, block, product_dtype(words_VE), torch.is_grad_enabled(), correction_V
    return _SenseSums.apply(contexts_RNE, words_VE, gates_KN.to(words_VE.dtype), mixing_RK, bias_S, *how)


class _SenseSums(torch.autograd.Function):
    """``normaliser_and_score`` with its gradient. Products run in ``lowered``; gates, logits, sums keep the dtype of the words.

    n is the number of tokens of a block, M the most senses of a word; s and v are senses and words of a block of words. Arrays
    over all words or senses are in the order of the blocks (``SenseBlocks``). The kept tensors have some megabytes each, so
    that malloc reuses their memory in the next step; one array for all tokens would need new memory in every step."""

    @staticmethod
    def forward(
        ctx: Any, contexts_RNE: Tensor, words_VE: Tensor, gates_KN: Tensor, mixing_RK: Tensor, bias_S: Tensor | None, *how: Any
    ) -> tuple[Tensor, Tensor]:
        structure, target_N, block, lowered, learns, correction_V = how
        order = structure.blocks(words_VE.dtype)
        weights = [_edge_weights(each, mixing_RK) for each in order.blocks]
        start_S = None if bias_S is None else bias_S.to(words_VE.dtype)[order.sense_at]
        offset_S = None
        if correction_V is not None:
            offset_S = correction_V.to(words_VE.dtype)[structure.word_of_sense[order.sense_at]]
        low_words_VE, low_contexts_RNE = words_VE.to(lowered).index_select(0, order.word_at), contexts_RNE.to(lowered)
        num_bases, num_tokens, width = contexts_RNE.shape
        keep = learns and any(ctx.needs_input_grad)  # inputs may have gradients that nobody records
        keep_scores = keep and width >= KEPT_FROM
        buffer = None if keep_scores else low_words_VE.new_empty(num_bases * order.most_words * min(block, num_tokens))
        normaliser_N, score_N = (words_VE.new_empty(num_tokens) for _ in range(2))
        total_N = words_VE.new_empty(num_tokens, dtype=sum_dtype(words_VE))
        kept, scores = [], []
        for part in parts_of(num_tokens, block):
            # Contiguous, so that the rows that are gathered for each sense are copies of whole lines of the cache.
            gates_Kn, context_RnE = gates_KN[:, part].contiguous(), low_contexts_RNE[:, part].contiguous()
            logits_Sn = words_VE.new_empty(structure.num_senses, gates_Kn.shape[1])
            for each, weight in zip(order.blocks, weights, strict=True):
                logits_sn = logits_Sn[each.places]
                scores_Rvn = _products(low_words_VE[each.words], context_RnE, buffer)
                if keep_scores:
                    scores.append(scores_Rvn)
                logits = each.by_rank(logits_sn)
                # The first basis writes the logits and the others add, so that the memory need not be cleared before.
                for basis, score in enumerate(each.by_basis(scores_Rvn.to(words_VE.dtype))):
                    gates = each.by_rank(each.sememes_of_sense(gates_Kn, weight[basis]))
                    if basis == 0:
                        each.products(score, gates, out=logits)
                    else:
                        each.add_products(logits, score, gates)
                if start_S is not None:
                    logits_sn.add_(start_S[each.places, None])
            found = likelihood(logits_Sn, structure, order.place_of, target_N[part], offset_S)
            normaliser_N[part], score_N[part], total_N[part] = found.normaliser_n, found.score_n, found.total_n
            if keep:
                kept += [found.raised_Sn, found.place_Mn, found.share_Mn]
        if keep:
            ctx.how, ctx.with_bias = (structure, block, lowered), bias_S is not None
            ctx.save_for_backward(contexts_RNE, gates_KN, mixing_RK, low_words_VE, total_N, *kept, *scores)
        return normaliser_N, score_N

    @staticmethod
    @differentiable_once("The likelihood of words by their senses")
    def backward(ctx: Any, grad_normaliser_N: Tensor, grad_score_N: Tensor) -> tuple[Any, ...]:
        structure, block, lowered = ctx.how
        contexts_RNE, gates_KN, mixing_RK, low_words_VE, total_N, *kept = ctx.saved_tensors
        order = structure.blocks(gates_KN.dtype)
        weights = [_edge_weights(each, mixing_RK) for each in order.blocks]
        low_contexts_RNE = contexts_RNE.to(lowered)
        num_bases, num_tokens, _ = contexts_RNE.shape
        most, parts = min(block, num_tokens), parts_of(num_tokens, block)
        scores = iter(kept[3 * len(parts) :])
        grad_words_VE = gates_KN.new_zeros(low_words_VE.shape)
        grad_gates_KN, grad_mixing_RK = torch.empty_like(gates_KN), torch.zeros_like(mixing_RK)
        grad_contexts_RNE = torch.empty_like(contexts_RNE)
        grad_bias_S = gates_KN.new_zeros(structure.num_senses)
        # Buffers for all blocks: fresh memory costs more than what is written to it.
        buffer = low_words_VE.new_empty(num_bases * order.most_words * most)
        grad_scores = gates_KN.new_empty(num_bases * order.most_words * most)
        grad_logits = gates_KN.new_empty(structure.num_senses * most)
        of_senses = gates_KN.new_empty(order.most_senses * most)
        of_sememes, products = gates_KN.new_empty(2, num_bases * len(gates_KN) * most)
        for number, part in enumerate(parts):
            gates_Kn, context_RnE = gates_KN[:, part].contiguous(), low_contexts_RNE[:, part].contiguous()
            by_normaliser_n, likelihood_of_part = grad_normaliser_N[part] / total_N[part], kept[3 * number : 3 * number + 3]
            grad_logits_Sn = grad_of_logits(likelihood_of_part, by_normaliser_n, grad_score_N[part], grad_logits)
            grad_bias_S += grad_logits_Sn.sum(dim=1)
            of_sememe_RKn = piece(of_sememes, (num_bases, *gates_Kn.shape)).zero_()
            grad_context_RnE = contexts_RNE.new_zeros(context_RnE.shape)
            for each, weight in zip(order.blocks, weights, strict=True):
                words_vE, grad_logits_sn = low_words_VE[each.words], grad_logits_Sn[each.places]
                kept_scores = next(scores, None)
                scores_Rvn = _products(words_vE, context_RnE, buffer) if kept_scores is None else kept_scores
                grads_Rvn = _scores_in(grad_scores, scores_Rvn.shape)
                of_sense_sn = piece(of_senses, grad_logits_sn.shape)
                grads, of_sense = each.by_rank(grad_logits_sn), each.by_rank(of_sense_sn)
                scores_of, grads_of = each.by_basis(scores_Rvn.to(gates_Kn.dtype)), each.by_basis(grads_Rvn)
                for score, grad, weight_of_edge, of_sememe_Kn in zip(scores_of, grads_of, weight, of_sememe_RKn, strict=True):
                    # A logit is the product of a score and a sum of gates: the gradient of each is by the other.
                    each.products(score, grads, out=of_sense)
                    of_sememe_Kn += each.sememes_of_sense.back(of_sense_sn, each.back_constant)
                    each.sum_products(each.by_rank(each.sememes_of_sense(gates_Kn, weight_of_edge)), grads, out=grad)
                grad_words_vE, low_grads_Rvn = grad_words_VE[each.words], grads_Rvn.to(lowered)
                grads_v = low_grads_Rvn.transpose(0, 1).flatten(1)
                add_product(grad_words_vE, grads_v, context_RnE.flatten(0, 1))
                add_product(grad_context_RnE.view(-1, words_vE.shape[1]), grads_v.T, words_vE)
            grad_contexts_RNE[:, part] = grad_context_RnE
            # The sums over the senses of a sememe serve gate and mixing alike: q and alpha are factors of one product.
            grad_mixing_RK += torch.mul(of_sememe_RKn, gates_Kn, out=piece(products, of_sememe_RKn.shape)).sum(dim=2)
            grad_gates_KN[:, part] = of_sememe_RKn.mul_(mixing_RK[:, :, None]).sum(dim=0)
        grad_words_VE = grad_words_VE.index_select(0, order.word_place)
        grad_bias = grad_bias_S[order.place_of] if ctx.with_bias else None
        return grad_contexts_RNE, grad_words_VE, grad_gates_KN, grad_mixing_RK, grad_bias, *[None] * 6


def _products(words_vE: Tensor, context_RnE: Tensor, buffer: Tensor | None) -> Tensor:
    """(R, v, n) the scores of words with the contexts, in ``buffer`` where there is one."""
    shape = (len(context_RnE), len(words_vE), context_RnE.shape[1])
    scores_Rvn = _scores_in(words_vE.new_empty(prod(shape)) if buffer is None else buffer, shape)
    torch.mm(words_vE, context_RnE.flatten(0, 1).T, out=scores_Rvn.transpose(0, 1).flatten(1))
    return scores_Rvn


def _scores_in(memory: Tensor, shape: Sequence[int]) -> Tensor:
    """(R, v, n) of flat memory, word after word, so that one product serves all bases."""
    num_bases, num_words, num_tokens = shape
    return piece(memory, (num_words, num_bases, num_tokens)).transpose(0, 1)


def _edge_weights(block: SenseBlock, mixing_RK: Tensor) -> Tensor:
    """(R, edges) C[k, s] alpha[r, k] for each basis and each edge between a sense and a sememe."""
    return block.constant * mixing_RK.index_select(1, block.sememes_of_sense.members)


class Likelihood(NamedTuple):
    """The likelihood of the n tokens of a block; M is the largest number of senses of a word."""

    normaliser_n: Tensor  # log-sum-exp over all senses
    score_n: Tensor  # log-sum-exp over the senses of the target
    total_n: Tensor  # sum of ``raised_Sn``, at least in single precision: half precision overflows with 65,504 senses
    raised_Sn: Tensor  # exp(logit - maximum of the token), in the memory of the logits
    place_Mn: Tensor  # places of the senses of the target
    share_Mn: Tensor  # their shares of the target's probability, padded with 0


def likelihood(
    logits_Sn: Tensor, structure: SenseStructure, place_of: Tensor, target_n: Tensor, offset_S: Tensor | None = None
) -> Likelihood:
    """Compute the likelihood of target words from the logits of all senses; sense s is at ``place_of[s]``.

    ``logits_Sn`` is overwritten. ``offset_S`` is added to the logits in the normaliser, except for the target."""
    sense_Mn, real_Mn = structure.senses_of(target_n)
    place_Mn = place_of[sense_Mn]
    own_Mn = logits_Sn.gather(0, place_Mn)
    if offset_S is not None:
        logits_Sn.add_(offset_S[:, None])
        logits_Sn.scatter_(0, place_Mn, own_Mn)  # the target was not drawn, so that it stands for itself alone
    own_Mn = own_Mn.masked_fill(~real_Mn, -torch.inf)
    top_n = logits_Sn.amax(dim=0)
    total_n = logits_Sn.sub_(top_n).exp_().sum(dim=0, dtype=sum_dtype(logits_Sn))
    return Likelihood(total_n.log() + top_n, own_Mn.logsumexp(dim=0), total_n, logits_Sn, place_Mn, own_Mn.softmax(dim=0))


def grad_of_logits(kept: Sequence[Tensor], by_normaliser_n: Tensor, by_score_n: Tensor, memory: Tensor) -> Tensor:
    """Return the gradient of logits (S, n) in ``memory``, from ``raised_Sn``, ``place_Mn``, ``share_Mn`` of a ``Likelihood``.

    ``by_normaliser_n`` is the gradient of the normaliser, already divided by ``total_n``: n divisions instead of S n."""
    raised_Sn, place_Mn, share_Mn = kept
    grad_Sn = torch.mul(raised_Sn, by_normaliser_n, out=piece(memory, raised_Sn.shape))
    return grad_Sn.scatter_add_(0, place_Mn, share_Mn * by_score_n)


def sum_dtype(values: Tensor) -> torch.dtype:
    """The dtype of ``total_n``."""
    return torch.promote_types(values.dtype, torch.float32)


def parts_of(num_tokens: int, block: int) -> list[slice]:
    """The blocks of tokens."""
    return [slice(begin, min(begin + block, num_tokens)) for begin in range(0, num_tokens, block)]


def piece(memory: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the first numbers of a flat tensor as a view of this shape."""
    return memory[: prod(shape)].view(shape)
