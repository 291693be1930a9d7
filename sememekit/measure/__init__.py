"""Numbers that describe a model: sums of nats, perplexity, rank and divergence of its predictions."""

from sememekit.measure.divergence import mean_pairwise_divergence
from sememekit.measure.perplexity import PROTOCOL_VERSION, Perplexity, perplexity_of, unigram_tally
from sememekit.measure.rank import Spectrum, rows_that_fit, spectrum_of
from sememekit.measure.tally import Tally

__all__ = [
    "PROTOCOL_VERSION",
    "Perplexity",
    "Spectrum",
    "Tally",
    "mean_pairwise_divergence",
    "perplexity_of",
    "rows_that_fit",
    "spectrum_of",
    "unigram_tally",
]
