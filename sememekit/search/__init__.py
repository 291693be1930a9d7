"""Finding likely texts under a model that predicts one word after the other; knows no model."""

from sememekit.search.beam import BeamSettings, Hypothesis, beam_search

__all__ = ["BeamSettings", "Hypothesis", "beam_search"]
