"""The likelihood of target words by the sememe-driven layer, one product for each edge between a sense and a sememe.

The logit of a sense is linear in the context g (H): with word vector x, bases Q_r and mixing alpha,

    sum over k in E(s) of C[k, s] q_k sum_r alpha[k, r] (g Q_r) . x = sum over the edges e of s of q_k(e) g . y_e,
    y_e = C[k, s] sum_r alpha[k, r] Q_r x,

so the vectors y of the edges are computed once for all tokens, and a token costs E H multiply-adds in place of R V H, and what
is done beside the products is done for each edge and not for each edge, sense and basis. The vectors cost R V H^2 once a call:
that pays for many tokens at small widths (``pays``). Nothing may come between the bases and the words that differs by token, as
tanh or a mask for each sequence. Exact; the two ways differ by rounding.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from sememekit.decoders.edge_blocks import EdgeBlock, EdgeBlocks
from sememekit.decoders.sense_likelihood import Asked, grad_of_logits, likelihood, parts_of, piece, sum_dtype
from sememekit.decoders.sense_structure import SenseStructure
from sememekit.layers import Incidence, add_product, differentiable_once, product_dtype


def pays(num_tokens: int, width: int, num_bases: int, num_words: int, num_senses: int, num_edges: int) -> bool:
    """Whether a call with so many tokens takes less time by edges than by bases.

    In multiply-adds of a product by bases. The cost of a number beside the products was fitted to times forward and backward on
    an Intel Xeon: two graphs of 47,531 and 60,466 edges, widths of 48 to 400, 1 to 10 bases, 128 to 1,400 tokens.
    """
    by_edges = 1.5 * num_bases * num_words * width**2 + num_tokens * num_edges * (0.62 * width + 24)
    by_bases = num_tokens * num_bases * (num_words * width + 7 * (num_edges + num_senses))
    return by_edges < by_bases


class EdgeInputs(NamedTuple):
    """Inputs of the logits of senses, for N tokens.

    Attributes:
        bases_RHE: the matrices Q.
        gates_KN: sememe gates q.
        mixing_RK: weights alpha of the bases.
        bias_S: of each sense, or None.
    """

    structure: SenseStructure
    contexts_NH: Tensor
    bases_RHE: Tensor
    words_VE: Tensor
    gates_KN: Tensor
    mixing_RK: Tensor
    bias_S: Tensor | None


def normaliser_and_score_by_edges(inputs: EdgeInputs, target_N: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """(N,) the log-sum-exp over all senses, and (N,) that over the senses of the target, as ``sense_logits`` has them."""
    structure, contexts_NH, bases_RHE, words_VE, gates_KN, mixing_RK, bias_S = inputs
    lowered, dtype = product_dtype(words_VE), words_VE.dtype
    blocks = structure.edge_blocks(dtype, len(bases_RHE))
    with torch.autocast(words_VE.device.type, enabled=False):
        products_VRH = words_VE @ bases_RHE.flatten(0, 1).T
        weight_eR = blocks.constant[:, None] * mixing_RK.T.index_select(0, blocks.sememe_of_edge)
        vectors_eH = _WeightedSums.apply(blocks.bases_of_edge, products_VRH.view(-1, bases_RHE.shape[1]), weight_eR.flatten())
        gates_KN = gates_KN.to(dtype)
        asked = Asked(structure, target_N, block, lowered, torch.is_grad_enabled())
        return _EdgeSums.apply(vectors_eH, contexts_NH, gates_KN, bias_S, blocks, asked)


class _WeightedSums(torch.autograd.Function):
    """``incidence(rows, weight)``, with the gradient for both."""

    @staticmethod
    def forward(ctx: Any, incidence: Incidence, rows: Tensor, weight: Tensor) -> Tensor:
        ctx.incidence = incidence
        ctx.save_for_backward(rows, weight)
        return incidence(rows, weight)

    @staticmethod
    @differentiable_once("The likelihood of words by their senses")
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        incidence: Incidence = ctx.incidence
        rows, weight = ctx.saved_tensors
        with torch.enable_grad():  # torch has no other name for the product of each row with its gradient, which is this one
            of_weight = weight.detach().requires_grad_()
            (grad_weight,) = torch.autograd.grad(incidence(rows, of_weight), of_weight, grad)
        return None, incidence.back(grad, weight[incidence.back_edges]), grad_weight


class _EdgeSums(torch.autograd.Function):
    """The likelihood out of the vectors of edges, with its gradient. Products run in ``lowered``; sums in the dtype of words.

    n is the number of tokens of a block, s and e are senses and edges of a block of edges. The unnormalised probabilities of
    senses and the products of edges are kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors_eH: Tensor,
        contexts_NH: Tensor,
        gates_KN: Tensor,
        bias_S: Tensor | None,
        blocks: EdgeBlocks,
        asked: Asked,
    ) -> tuple[Tensor, Tensor]:
        structure, target_N, block, lowered, learns, _ = asked
        dtype, num_tokens = vectors_eH.dtype, len(contexts_NH)
        start_S = None if bias_S is None else bias_S.to(dtype)[blocks.sense_at]
        low_vectors_eH, low_contexts_NH = vectors_eH.to(lowered), contexts_NH.to(lowered)
        keep = learns and any(ctx.needs_input_grad)  # inputs may have gradients that nobody records
        most = blocks.most_edges * min(block, num_tokens)
        buffer = None if keep else low_vectors_eH.new_empty(most)
        gates = vectors_eH.new_empty(most)
        normaliser_N, score_N = (vectors_eH.new_empty(num_tokens) for _ in range(2))
        total_N = vectors_eH.new_empty(num_tokens, dtype=sum_dtype(vectors_eH))
        kept, kept_scores = [], []
        for part in parts_of(num_tokens, block):
            gates_Kn, context_Hn = gates_KN[:, part].contiguous(), low_contexts_NH[part].T
            logits_Sn = vectors_eH.new_empty(structure.num_senses, gates_Kn.shape[1])
            for each in blocks.blocks:
                low_en, gate_en = _scores(each, low_vectors_eH, context_Hn, buffer), _gates(each, gates_Kn, gates)
                if keep:
                    kept_scores.append(low_en)
                logits_sn, score_en = logits_Sn[each.senses], low_en.to(gate_en.dtype)
                for rank, (score, gate) in enumerate(zip(score_en.split(each.ranks), gate_en.split(each.ranks), strict=True)):
                    if rank == 0:
                        torch.mul(score, gate, out=logits_sn)
                    else:
                        logits_sn[: len(score)].addcmul_(score, gate)
            if start_S is not None:
                logits_Sn.add_(start_S[:, None])
            found = likelihood(logits_Sn, structure, blocks.place_of, target_N[part])
            normaliser_N[part], score_N[part], total_N[part] = found.normaliser_n, found.score_n, found.total_n
            if keep:
                kept += [found.raised_Sn, found.place_Mn, found.share_Mn]
        if keep:
            ctx.asked, ctx.blocks, ctx.with_bias = asked, blocks, bias_S is not None
            ctx.save_for_backward(contexts_NH, gates_KN, low_vectors_eH, total_N, *kept, *kept_scores)
        return normaliser_N, score_N

    @staticmethod
    @differentiable_once("The likelihood of words by their senses")
    def backward(ctx: Any, grad_normaliser_N: Tensor, grad_score_N: Tensor) -> tuple[Any, ...]:
        structure, _, block, *_ = ctx.asked
        blocks: EdgeBlocks = ctx.blocks
        contexts_NH, gates_KN, low_vectors_eH, total_N, *kept = ctx.saved_tensors
        num_tokens = len(contexts_NH)
        low_contexts_NH = contexts_NH.to(low_vectors_eH.dtype)
        grad_vectors_eH = gates_KN.new_zeros(low_vectors_eH.shape)
        grad_contexts_NH, grad_gates_KN = gates_KN.new_zeros(contexts_NH.shape), torch.empty_like(gates_KN)
        grad_bias_S = gates_KN.new_zeros(structure.num_senses)
        # Buffers for all blocks: fresh memory costs more than what is written to it. Gradients of edges replace their gates.
        tokens, parts = min(block, num_tokens), parts_of(num_tokens, block)
        scores = iter(kept[3 * len(parts) :])
        gates, grad_gates = gates_KN.new_empty(2, blocks.most_edges * tokens)
        grad_logits = gates_KN.new_empty(structure.num_senses * tokens)
        for number, part in enumerate(parts):
            gates_Kn, context_nH = gates_KN[:, part].contiguous(), low_contexts_NH[part]
            by_normaliser_n, likelihood_of_part = grad_normaliser_N[part] / total_N[part], kept[3 * number : 3 * number + 3]
            grad_logits_Sn = grad_of_logits(likelihood_of_part, by_normaliser_n, grad_score_N[part], grad_logits)
            grad_bias_S += grad_logits_Sn.sum(dim=1)
            grad_gates_Kn, grad_context_nH = torch.zeros_like(gates_Kn), grad_contexts_NH[part]
            for each in blocks.blocks:
                score_en, grad_en = next(scores).to(gates_Kn.dtype), _gates(each, gates_Kn, gates)
                grad_gate_en = piece(grad_gates, score_en.shape)
                rows = (array.split(each.ranks) for array in (score_en, grad_en, grad_gate_en))
                grad_logits_sn = grad_logits_Sn[each.senses]
                for score, grad, grad_gate in zip(*rows, strict=True):
                    of_rank = grad_logits_sn[: len(score)]
                    grad.mul_(of_rank)
                    torch.mul(of_rank, score, out=grad_gate)
                grad_gates_Kn += each.edges_of_sememe(grad_gate_en)
                low_en = grad_en.to(low_vectors_eH.dtype)
                add_product(grad_vectors_eH[each.edges], low_en, context_nH)
                add_product(grad_context_nH, low_en.T, low_vectors_eH[each.edges])
            grad_gates_KN[:, part] = grad_gates_Kn
        grad_bias = grad_bias_S[blocks.place_of] if ctx.with_bias else None
        grad_contexts_NH = grad_contexts_NH.to(contexts_NH.dtype)
        return grad_vectors_eH, grad_contexts_NH, grad_gates_KN, grad_bias, None, None


def _scores(each: EdgeBlock, low_vectors_eH: Tensor, context_Hn: Tensor, buffer: Tensor | None) -> Tensor:
    """(e, n) the products of the edges with the contexts, in ``buffer`` where there is one."""
    shape = (each.num_edges, context_Hn.shape[1])
    memory = context_Hn.new_empty(shape) if buffer is None else piece(buffer, shape)
    return torch.mm(low_vectors_eH[each.edges], context_Hn, out=memory)


def _gates(each: EdgeBlock, gates_Kn: Tensor, buffer: Tensor) -> Tensor:
    """(e, n) the gate of the sememe of each edge, in ``buffer``."""
    shape = (each.num_edges, gates_Kn.shape[1])
    return torch.index_select(gates_Kn, 0, each.sememe_of_edge, out=piece(buffer, shape))
