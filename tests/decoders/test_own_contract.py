"""Output layers of other people that break their promise are refused before a figure of theirs is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sememekit.config import trusting_code
from sememekit.decoders.base import Resources
from sememekit.decoders.contract import check_contract
from sememekit.decoders.sampling import Draw
from sememekit.decoders.softmax import Softmax
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from tests.small import small_vocabulary
from tests.small_run import Place


class Kept(Softmax):
    """An output layer that keeps its promise."""


class Unnormalised(Softmax):
    def log_probs(self, hidden: Tensor) -> Tensor:
        return super().log_probs(hidden) + 2.0


class Mean(Softmax):
    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return super().nll(hidden, target).mean()


class Base2(Softmax):
    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return super().nll(hidden, target) / 0.6931


class Broken(Softmax):
    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        raise KeyError("words")


class Tuple(Softmax):
    def log_probs(self, hidden: Tensor) -> Any:
        return (super().log_probs(hidden),)


class Shifted(Softmax):
    """A softmax that scores chosen words differently."""

    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        return super().scores(hidden, words) + (0.0 if words is None else words.float())


class Deaf(Softmax):
    def scores(self, hidden: Tensor, words: Tensor | None = None) -> Tensor:
        return super().scores(hidden)


class Undrawn(Softmax):
    def sampled_nll(self, hidden: Tensor, draw: Draw) -> Tensor:
        return super().sampled_nll(hidden, draw) + draw.correction.clamp(min=0.0).sum() + 1.0


class Drawless(Softmax):
    def sampled_nll(self, hidden: Tensor, draw: Draw) -> Tensor:
        return super().sampled_nll(hidden, draw).sum()


class Unheard(Softmax):
    def sense_attribution(self, hidden: Tensor, words: Tensor) -> None:
        return None


SAMPLED_WRONG = [
    (Shifted, r"Shifted\.scores gives a word the score \S+ where some words are asked for, and \S+ where all are"),
    (Deaf, r"Deaf\.scores must give the scores of the words that it is given, and of no other: \(2, 3, 7\).*\(2, 3, 10\)"),
    (Undrawn, r"Undrawn\.sampled_nll gives \S+ nats where the scores of the drawn words make \S+; see"),
    (Drawless, r"Drawless\.sampled_nll must give the estimated nats of each target, unreduced: \(6,\).*given \(\)"),
]
WRONG = [
    (Unnormalised, r"test_own_contract:Unnormalised\.log_probs: the probabilities of a context sum to 7\.389 and not to one"),
    (Mean, r"Mean\.nll must give the nats of each target, unreduced: \(2, 3\) for contexts of 2 x 3, given \(\)"),
    (Base2, r"Base2\.nll gives \S+ nats for a word whose log-probability is -\S+ by log_probs; in evaluation both must agree"),
    (Broken, r"Broken\.nll raised KeyError: 'words'"),
    (Unheard, r"Unheard\.sense_attribution is never called; derive the class from decoders\.base\.Sensed, too"),
    (Tuple, r"Tuple\.log_probs must give a tensor, given tuple"),
]


def built(kind: Any, samples: int = 0) -> Softmax:
    layer: Softmax = kind(Softmax.Settings(tied=False, samples=samples), Resources(width=4, vocabulary=small_vocabulary()))
    return layer


@pytest.mark.parametrize(("kind", "told"), WRONG)
def test_a_layer_that_breaks_its_promise_is_told_how(kind: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        check_contract(built(kind))


@pytest.mark.parametrize(("kind", "told"), SAMPLED_WRONG)
def test_one_whose_sampled_training_would_learn_another_model_is_told_how(kind: Any, told: str) -> None:
    check_contract(built(kind))  # nothing of it is asked for
    with pytest.raises(ConfigError, match=told):
        check_contract(built(kind, samples=5))


@pytest.mark.parametrize("samples", [0, 5])
def test_one_that_keeps_it_and_the_generators_are_left_alone(samples: int) -> None:
    layer = built(Kept, samples).train()
    state = torch.random.get_rng_state()
    check_contract(layer)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert layer.training


def test_nothing_is_trained_or_measured_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path / "place")
    with pytest.raises(ConfigError, match=r"Mean\.nll must give the nats"):
        train(place.table("tests.decoders.test_own_contract:Mean"), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    train(place.table("tests.decoders.test_own_contract:Kept"), tmp_path / "run")
    monkeypatch.setattr(Kept, "log_probs", lambda layer, hidden: Softmax.log_probs(layer, hidden) + 2.0)
    with trusting_code(), pytest.raises(ConfigError, match=r"Kept\.log_probs: the probabilities of a context sum to"):
        Run.open(tmp_path / "run", device="cpu").load()
