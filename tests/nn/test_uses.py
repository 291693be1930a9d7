"""The uses in the docstrings of ``sememekit.nn`` run as they stand."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest
import torch

import sememekit.nn
from tests.nn.cases import contexts

WORDS = 4


@pytest.mark.parametrize("name", ["encoders", "lattice_loss", "self_organized", "senses", "softmaxes"])
def test_the_uses_in_docstrings(name: str) -> None:
    given = {
        "embedding": torch.nn.Embedding(WORDS, 16),
        "counts": [1, 5, 2, 3],
        "num_words": WORDS,
        "senses": [[[0, 1], [2]], [[1]], [], [[3]]],
        "hidden_TBH": torch.zeros(5, 2, 16),
        "vectors_TBE": torch.zeros(5, 2, 8),
        "target_TB": torch.zeros(5, 2, dtype=torch.int64),
        "scores_BTLE": contexts(2, 5, 3, width=1),
        "torch": torch,
        **{public: getattr(sememekit.nn, public) for public in sememekit.nn.__all__},
    }
    found = doctest.testmod(import_module(f"sememekit.nn.{name}"), extraglobs=given)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_public_class_has_three_lines_of_use_and_names_its_source() -> None:
    for public in set(sememekit.nn.__all__) - {"Output", "OutputLayer"}:
        told = getattr(sememekit.nn, public).__doc__
        assert told.count(">>>") >= 2, public
        assert public == "Senses" or any(year in told for year in ("20", "baseline")), public
