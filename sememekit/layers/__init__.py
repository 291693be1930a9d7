"""Building blocks that know nothing of words: dropout with shared masks, incidence sums, log-space reductions."""

from sememekit.layers.dropout import shared_dropout
from sememekit.layers.incidence import Incidence
from sememekit.layers.linear_cross_entropy import linear_cross_entropy
from sememekit.layers.product import product
from sememekit.layers.segments import segment_logsumexp

__all__ = ["Incidence", "linear_cross_entropy", "product", "segment_logsumexp", "shared_dropout"]
