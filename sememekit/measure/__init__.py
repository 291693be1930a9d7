"""Numbers that describe a model: sums of nats, perplexity, rank and divergence of its predictions."""

from sememekit.measure.divergence import PairwiseDivergence
from sememekit.measure.perplexity import PROTOCOL_VERSION, Perplexity, perplexity_of, unigram_tally
from sememekit.measure.rank import Spectrum, TriangularFactor, bytes_by_blocks, rows_that_fit, spectrum_of
from sememekit.measure.tally import Tally

__all__ = [
    "PROTOCOL_VERSION",
    "PairwiseDivergence",
    "Perplexity",
    "Spectrum",
    "Tally",
    "TriangularFactor",
    "bytes_by_blocks",
    "perplexity_of",
    "rows_that_fit",
    "spectrum_of",
    "unigram_tally",
]
