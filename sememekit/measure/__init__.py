"""Numbers that describe a model: sums of nats, perplexity."""

from sememekit.measure.perplexity import PROTOCOL_VERSION, Perplexity, perplexity_of, unigram_tally
from sememekit.measure.tally import Tally

__all__ = ["PROTOCOL_VERSION", "Perplexity", "Tally", "perplexity_of", "unigram_tally"]
