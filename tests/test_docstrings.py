"""The uses in the docstrings of public classes run as they stand."""

from __future__ import annotations

import doctest
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

from sememekit.decoders.base import Resources
from sememekit.decoders.softmax import Softmax
from sememekit.encoders.base import EncoderResources
from sememekit.encoders.lstm import LSTM
from sememekit.measure.perplexity import tallies
from sememekit.sememes import build_graph, open_lexicon
from sememekit.text.vocabulary import Vocabulary

MODULES = (
    "decoders.base",
    "decoders.sdlm",
    "encoders.awd_lstm",
    "encoders.base",
    "encoders.bidirectional",
    "encoders.gru",
    "encoders.lattice_lstm",
    "encoders.lstm",
    "layers.attentional_rnn",
    "layers.grouped_cross_entropy",
    "layers.incidence",
    "measure.perplexity",
    "sememes.graph",
    "tasks.language_model",
    "text.chunks",
    "text.english",
    "text.maximum_matching",
    "text.segmenters",
    "text.vocabulary",
    "training.optimizers",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_uses_in_docstrings(name: str) -> None:
    words = Vocabulary.from_counts({"今天": 4, "工人": 2, "<unk>": 1})
    embedding = nn.Embedding(len(words), 8)
    given = {
        "words": words,
        "graph": build_graph(words, [open_lexicon("open")]),
        "hidden_TBH": torch.zeros(5, 2, 16),
        "vectors_TBE": torch.zeros(5, 2, 8),
        "target_TB": torch.zeros(5, 2, dtype=torch.int64),
        "ids_N": np.zeros(9, dtype=np.int64),
        "embedding": embedding,
        "encoder": LSTM(LSTM.Settings(hidden_size=16), EncoderResources(8, words)),
        "decoder": Softmax(Softmax.Settings(tied=False), Resources(16, words)),
        "module": nn.Linear(2, 3),
        "np": np,
        "torch": torch,
        "tallies": tallies,
        "build_graph": build_graph,
        "open_lexicon": open_lexicon,
        "EncoderResources": EncoderResources,
    }
    found = doctest.testmod(import_module(f"sememekit.{name}"), extraglobs={**given, "Softmax": Softmax, "LSTM": LSTM})
    assert found.attempted > 0
    assert found.failed == 0
