"""``torch.compile(decoder.nll, fullgraph=True)`` of every output layer, and how often that compiles for three lengths.

``tests/nn/test_compilers.py`` has the modules of ``sememekit.nn``, which take other ways where a compiler reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._dynamo.exc import UserError
from torch._dynamo.testing import CompileCounter
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from sememekit.decoders.base import Decoder
from tests.decoders.test_contract import CASES, Case, contexts, targets

LENGTHS = (5, 6, 9)
NOT_AT_ALL = {
    "adaptive": "torch's own layer looks for the targets of each cluster",
    "class_hsm": "on the CPU the rows of each class are counted; sememekit.nn.ClassSoftmax compiles",
    "self_organized": "on the CPU the rows of each cluster are counted; sememekit.nn.SelfOrganizedSoftmax compiles",
}
"""Output layers that no compiler takes as one graph, and why."""
DRAWING = {
    "sdlm": "how many sampled words are distinct decides how they are divided into blocks",
    "mos_sdlm": "as sdlm",
    "samples_until": "whether words are drawn still is a number of the checkpoint",
}
"""Layers that no compiler takes in training while words are drawn. The others are compiled for one length and refuse a second
one: the number of distinct words is a size that is not known beforehand."""
EACH_LENGTH = ("mos",)
"""Compiled for each length. The second length makes the length a variable for all others, and the third finds that graph."""

pytestmark = pytest.mark.filterwarnings("ignore")
"""Compilers of torch warn of their own affairs."""


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def lengths_until_it_fails(decoder: Decoder) -> tuple[int, int]:
    """Return the number of lengths with equal compiled and eager losses, and the number of compilations."""
    counter = CompileCounter()
    compiled = torch.compile(decoder.nll, backend=counter, fullgraph=True)
    for done, length in enumerate(LENGTHS):
        found: list[tuple[Tensor, Tensor]] = []
        try:
            for nll in (compiled, decoder.nll):
                torch.manual_seed(3)  # dropout and sampled words
                hidden = contexts(length, 3).float().requires_grad_(True)
                nats = nll(hidden, targets(length, 3))
                found.append((nats, torch.autograd.grad(nats.sum(), hidden)[0]))
        except (UserError, GuardOnDataDependentSymNode) as error:
            if "data-dependent" not in str(error):
                raise
            return done, counter.frame_count
        torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)
    return len(LENGTHS), counter.frame_count


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.slow] * (number > 0)) for number, case in enumerate(CASES)]
)
def test_one_graph_for_segments_of_three_lengths(case: Case, training: bool) -> None:
    decoder = case.make().float().train(training)
    torch.manual_seed(3)
    decoder.nll(contexts(2, 3).float(), targets(2, 3))  # tables that are made once for a device
    lengths, compiled = lengths_until_it_fails(decoder)
    if case.name in NOT_AT_ALL:
        assert lengths == 0, f"{case} compiles now; take it out of NOT_AT_ALL"
    elif training and decoder.estimates_in_training:
        listed = case.name in DRAWING or not DRAWING.keys().isdisjoint(case.settings)
        assert lengths == (0 if listed else 1), f"{case} compiles for {lengths} lengths"
    else:
        assert lengths == len(LENGTHS)
        assert compiled == (len(LENGTHS) if case.name in EACH_LENGTH else 2)
