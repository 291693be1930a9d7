"""Numbers that describe a model: sums of nats, perplexity, rank and divergence of its predictions."""

from sememekit.measure.perplexity import PROTOCOL_VERSION, Perplexity, Tally, perplexity_of, unigram_tally
from sememekit.measure.rank import PairwiseDivergence

__all__ = ["PROTOCOL_VERSION", "PairwiseDivergence", "Perplexity", "Tally", "perplexity_of", "unigram_tally"]
