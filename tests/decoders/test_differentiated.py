"""Differentiated softmax against its equation, written out with whole vectors full of zeros."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sememekit.decoders.base import Resources
from sememekit.decoders.differentiated import Differentiated
from sememekit.errors import ConfigError
from tests.small import small_vocabulary

WIDTH, WORDS = 7, 10


def make(**settings: object) -> Differentiated:
    torch.manual_seed(2)
    resources = Resources(WIDTH, small_vocabulary(), None, torch.nn.Embedding(WORDS, WIDTH))
    decoder = Differentiated(Differentiated.Settings(**settings), resources).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return decoder


def twin(decoder: Differentiated, hidden: Tensor) -> Tensor:
    """Probabilities (N, V): vectors of full width, zero outside the part of the band (1, 2 and 7 words; widths 4, 2 and 1)."""
    rows = []
    for word in range(WORDS):
        band = 0 if word < 1 else 1 if word < 3 else 2
        part = slice(*((0, 4), (4, 6), (6, 7))[band])
        own = decoder.words.weight[word, part] if decoder.words is not None else decoder.bands[band][word - (0, 1, 3)[band]]
        rows.append(torch.cat([hidden.new_zeros(part.start), own, hidden.new_zeros(WIDTH - part.stop)]))
    return torch.softmax(hidden @ torch.stack(rows).T + decoder.bias, dim=1)


@pytest.mark.parametrize("tied", [False, True])
def test_values_and_gradients_equal_the_dense_twin(tied: bool) -> None:
    decoder = make(cutoffs=(1, 3), tied=tied)
    hidden = torch.randn(11, WIDTH, dtype=torch.float64, requires_grad=True)
    target = torch.arange(11) % WORDS
    upstream = torch.rand(11, dtype=torch.float64)
    dense = -twin(decoder, hidden).log().gather(1, target[:, None])[:, 0]
    ours = decoder.nll(hidden, target)
    torch.testing.assert_close(ours, dense, rtol=0, atol=1e-10)
    torch.testing.assert_close(decoder.log_probs(hidden), twin(decoder, hidden).log(), rtol=0, atol=1e-10)
    inputs = [hidden, *decoder.parameters()]
    one, other = (torch.autograd.grad((nats * upstream).sum(), inputs) for nats in (ours, dense))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-10)


def test_rare_words_have_short_vectors() -> None:
    shapes = [tuple(band.shape) for band in make(cutoffs=(1, 3)).bands]
    assert shapes == [(1, 4), (2, 2), (7, 1)]
    assert [tuple(band.shape) for band in make(cutoffs=(5,), widths=(6, 1)).bands] == [(5, 6), (5, 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cutoffs": (3, 3)}, r"cutoffs \[3, 3\] must rise strictly and lie between 1 and 9"),
        ({"cutoffs": (0,)}, r"must rise"),
        ({"cutoffs": (10,)}, r"must rise"),
        ({"widths": (4, 3)}, r"3 bands of words need 3 widths .* add up to the context's 7, given \[4, 3\]"),
        ({"widths": (4, 2, 2)}, r"add up to the context's 7"),
        ({"widths": (4, 3, 0)}, r"of 1 or more"),
        (
            {"cutoffs": (1, 2, 3, 4, 5, 6, 7)},
            r"8 bands of words need 8 widths of 1 or more .*set decoder\.widths or decoder\.cutoffs",
        ),
    ],
)
def test_bands_and_parts_that_do_not_fit_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**settings)
