"""A sememe-driven layer in double precision over the graph of ``tests/small.py``, with parameters away from their start."""

from __future__ import annotations

import torch

from sememekit.decoders.base import Resources
from sememekit.decoders.sdlm import SDLM
from tests.small import small_graph, small_vocabulary

WIDTH = 6


def make(**settings: object) -> SDLM:
    torch.manual_seed(3)
    vocabulary = small_vocabulary()
    embedding = torch.nn.Embedding(len(vocabulary), WIDTH)
    decoder = SDLM(SDLM.Settings(**settings), Resources(WIDTH, vocabulary, small_graph(), embedding)).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return decoder
