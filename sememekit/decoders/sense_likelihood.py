"""From the logits of all senses to the likelihood of target words, for a block of tokens."""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from sememekit.decoders.sense_structure import SenseStructure


class Likelihood(NamedTuple):
    """What is found for the n tokens of a block; M is the most senses of a word.

    Attributes:
        normaliser_n: log-sum-exp over all senses.
        score_n: log-sum-exp over the senses of the target.
        total_n: sum of ``raised_Sn``, in single precision at least: in half precision that of 65,504 senses would be infinite.
        raised_Sn: exp(logit - the greatest of the token), in the memory of the logits.
        place_Mn: places of the senses of the target.
        share_Mn: their shares of the target's probability, 0 behind the last.
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
    """Logits of all senses, in an order in which sense s has place ``place_of[s]``, to the likelihood of target words.

    ``logits_Sn`` is written over. ``offset_S`` is added to the logits of all senses in the normaliser, those of the target
    excepted. A target at -1 is none of the words: its score is finite and means nothing.
    """
    sense_Mn, real_Mn = structure.senses_of(target_n.clamp(min=0))
    place_Mn = place_of[sense_Mn]
    own_Mn = logits_Sn.gather(0, place_Mn)
    if offset_S is not None:
        logits_Sn.add_(offset_S[:, None])
        logits_Sn.scatter_(0, place_Mn, torch.where(target_n >= 0, own_Mn, logits_Sn.gather(0, place_Mn)))
    own_Mn = own_Mn.masked_fill(~real_Mn, -torch.inf)
    top_n = logits_Sn.amax(dim=0)
    total_n = logits_Sn.sub_(top_n).exp_().sum(dim=0, dtype=sum_dtype(logits_Sn))
    return Likelihood(total_n.log() + top_n, own_Mn.logsumexp(dim=0), total_n, logits_Sn, place_Mn, own_Mn.softmax(dim=0))


def sum_dtype(values: Tensor) -> torch.dtype:
    """The dtype of ``total_n``."""
    return torch.promote_types(values.dtype, torch.float32)


def parts_of(num_tokens: int, block: int) -> list[slice]:
    """The blocks of tokens."""
    return [slice(begin, min(begin + block, num_tokens)) for begin in range(0, num_tokens, block)]


def piece(memory: Tensor, shape: Sequence[int]) -> Tensor:
    """The beginning of a flat tensor, in a shape."""
    return memory[: prod(shape)].view(shape)
