"""Compute the likelihood of target words from the logits of all senses, for a block of tokens."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from sememekit.decoders.sense_structure import SenseStructure


class Asked(NamedTuple):
    """Arguments of a likelihood without gradients, for N tokens.

    Attributes:
        structure: the graph.
        target_N: words.
        block: tokens computed at once.
        lowered: dtype of matrix products; sums keep the dtype of the words.
        learns: whether gradients are recorded, which torch does not tell inside ``forward`` of a Function.
        correction_V: term of each word in the normaliser (``sampling.estimated_nll``), or None.
    """

    structure: SenseStructure
    target_N: Tensor
    block: int
    lowered: torch.dtype
    learns: bool
    correction_V: Tensor | None = None


class Likelihood(NamedTuple):
    """The likelihood of the n tokens of a block; M is the largest number of senses of a word.

    Attributes:
        normaliser_n: log-sum-exp over all senses.
        score_n: log-sum-exp over the senses of the target.
        total_n: sum of ``raised_Sn``, at least in single precision: half precision overflows with 65,504 senses.
        raised_Sn: exp(logit - maximum of the token), in the memory of the logits.
        place_Mn: places of the senses of the target.
        share_Mn: their shares of the target's probability, padded with 0.
    """

    normaliser_n: Tensor
    score_n: Tensor
    total_n: Tensor
    raised_Sn: Tensor
    place_Mn: Tensor
    share_Mn: Tensor


def likelihood(
    logits_Sn: Tensor, structure: SenseStructure, place_of: Tensor, target_n: Tensor, offset_S: Tensor | None = None
) -> Likelihood:
    """Compute the likelihood of target words from the logits of all senses; sense s is at ``place_of[s]``.

    ``logits_Sn`` is overwritten. ``offset_S`` is added to the logits in the normaliser, except for the target.
    """
    sense_Mn, real_Mn = structure.senses_of(target_n)
    place_Mn = place_of[sense_Mn]
    own_Mn = logits_Sn.gather(0, place_Mn)
    if offset_S is not None:
        logits_Sn.add_(offset_S[:, None])
        logits_Sn.scatter_(0, place_Mn, own_Mn)
    own_Mn = own_Mn.masked_fill(~real_Mn, -torch.inf)
    top_n = logits_Sn.amax(dim=0)
    total_n = logits_Sn.sub_(top_n).exp_().sum(dim=0, dtype=sum_dtype(logits_Sn))
    return Likelihood(total_n.log() + top_n, own_Mn.logsumexp(dim=0), total_n, logits_Sn, place_Mn, own_Mn.softmax(dim=0))


def grad_of_logits(kept: Sequence[Tensor], by_normaliser_n: Tensor, by_score_n: Tensor, memory: Tensor) -> Tensor:
    """Return the gradient of the logits (S, n) in ``memory``, from ``raised_Sn``, ``place_Mn`` and ``share_Mn`` of a
    ``Likelihood``.

    ``by_normaliser_n`` is the gradient of the normaliser divided by ``total_n``, which takes n divisions instead of S n.
    """
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
    """The beginning of a flat tensor, in a shape."""
    return memory[: prod(shape)].view(shape)
