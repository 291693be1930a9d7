"""Search for probable texts under a model that predicts one word after the other."""

from sememekit.search.beam import SEARCH, BeamSettings, Hypothesis, beam_search

__all__ = ["SEARCH", "BeamSettings", "Hypothesis", "beam_search"]
