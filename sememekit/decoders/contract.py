"""Checks of an output layer's promises on a few contexts, for classes from outside sememekit."""

from typing import Any, Final

import torch
from torch import Tensor, nn

from sememekit.decoders.base import Clustered, Decoder, Scheduled, Sensed
from sememekit.decoders.sampling import NormalisedScores, estimated_nll
from sememekit.errors import ConfigError, SememekitError
from sememekit.layers import evaluating

TOLERANCE: Final = 1e-3  # tolerance in nats for rows that sum to one, and for losses against log-probabilities


def check_own_decoders(model: nn.Module) -> None:
    """Run ``check_contract`` on every output layer of a model that is not from sememekit."""
    for part in model.modules():
        if isinstance(part, Decoder) and type(part).__module__.partition(".")[0] != "sememekit":
            check_contract(part)


def check_contract(decoder: Decoder) -> None:
    """Refuse an output layer whose losses or probabilities are inconsistent, since its figures would mean nothing.

    In evaluation, on 2 x 3 random contexts: ``nll`` gives a number for each target, each row of ``log_probs`` sums to one,
    and ``nll`` agrees with ``log_probs`` of the target, all to ``TOLERANCE``. For a ``NormalisedScores`` with sampled words,
    ``scores`` of some words agree with ``scores`` of all words, and ``sampled_nll`` is the estimate from these scores.
    Generators are not changed. A method of ``Scheduled``, ``Sensed`` or ``Clustered`` on a layer that does not derive from the
    class would never be called. Raises ConfigError: naming the class, the method and its result."""
    name = f"{type(decoder).__module__}:{type(decoder).__qualname__}"
    for kind in (Scheduled, Sensed, Clustered):
        unheard = [each for each in vars(kind) if each[0] != "_" and not hasattr(Decoder, each) and hasattr(decoder, each)]
        if unheard and not isinstance(decoder, kind):
            raise ConfigError(f"{name}.{unheard[0]} is never called; derive the class from decoders.base.{kind.__name__}, too")
    weight = next((parameter for parameter in decoder.parameters() if parameter.is_floating_point()), torch.zeros(()))
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(2, 3, decoder._width, generator=generator).to(weight)
    target = (torch.arange(6).reshape(2, 3) % decoder._num_words).to(weight.device)
    devices = [weight.device] if weight.is_cuda else []
    with torch.random.fork_rng(devices), torch.no_grad(), evaluating(decoder):
        nats = _called(decoder, "nll", name, hidden, target)
        log_probs = _called(decoder, "log_probs", name, hidden).double()
    _check_shape(nats, target.shape, f"{name}.nll must give the nats of each target, unreduced")
    shape = (*target.shape, decoder._num_words)
    _check_shape(log_probs, shape, f"{name}.log_probs must give the logarithms of the probabilities of all words")
    missed = log_probs.logsumexp(dim=-1).abs().max()
    if not missed <= TOLERANCE:
        raise ConfigError(
            f"{name}.log_probs: the probabilities of a context sum to {float(log_probs.exp().sum(-1).flatten()[0]):.4g} and "
            "not to one; end with log_softmax, or subtract logsumexp"
        )
    own = -log_probs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    place = _apart(nats.double(), own)
    if place is not None:
        raise ConfigError(
            f"{name}.nll gives {float(nats[place]):.4g} nats for a word whose log-probability is {-float(own[place]):.4g} by "
            "log_probs; in evaluation both must agree"
        )
    if isinstance(decoder, NormalisedScores) and decoder.sampler.samples > 0:
        _check_scores(decoder, name, hidden, target)


@torch.no_grad()
def _check_scores(decoder: NormalisedScores, name: str, hidden: Tensor, target: Tensor) -> None:
    """Check ``scores`` and ``sampled_nll``, which evaluation never calls."""
    last = decoder._num_words - 1
    draw = decoder.sampler.arrange(target.flatten(), target.new_tensor([last, 0, last]))  # a repeat, and a hit of a target
    with evaluating(decoder):
        whole = _called(decoder, "scores", name, hidden).double()
        some = _called(decoder, "scores", name, hidden, draw.words).double()
    _check_shape(whole, (*target.shape, decoder._num_words), f"{name}.scores must give the scores of all words")
    shape = (*target.shape, len(draw.words))
    _check_shape(some, shape, f"{name}.scores must give the scores of the words that it is given, and of no other")
    expected = whole[..., draw.words]
    place = _apart(some, expected)
    if place is not None:
        raise ConfigError(
            f"{name}.scores gives a word the score {float(some[place]):.4g} where some words are asked for, and "
            f"{float(expected[place]):.4g} where all are; training with sampled words would learn another model"
        )
    with evaluating(decoder):
        estimate = _called(decoder, "sampled_nll", name, hidden, draw).double()
    _check_shape(estimate, (target.numel(),), f"{name}.sampled_nll must give the estimated nats of each target, unreduced")
    wanted = estimated_nll(some.flatten(0, -2), draw)
    place = _apart(estimate, wanted)
    if place is not None:
        raise ConfigError(
            f"{name}.sampled_nll gives {float(estimate[place]):.4g} nats where the scores of the drawn words make "
            f"{float(wanted[place]):.4g}; see sememekit.decoders.sampling.estimated_nll"
        )


def _apart(found: Tensor, wanted: Tensor) -> tuple[int, ...] | None:
    """Return a position where two tables differ by more than ``TOLERANCE``, or None."""
    apart = ~((found - wanted).abs() <= TOLERANCE * (1 + wanted.abs()))
    return tuple(apart.nonzero()[0].tolist()) if apart.any() else None


def _called(decoder: Decoder, method: str, name: str, *given: Any) -> Tensor:
    try:
        answer = getattr(decoder, method)(*given)
    except SememekitError:
        raise
    except Exception as error:
        raise ConfigError(f"{name}.{method} raised {type(error).__name__}: {error}") from error
    if not isinstance(answer, Tensor):
        raise ConfigError(f"{name}.{method} must give a tensor, given {type(answer).__name__}")
    return answer


def _check_shape(answer: Tensor, shape: tuple[int, ...], promise: str) -> None:
    if answer.shape != shape:
        raise ConfigError(f"{promise}: {tuple(shape)} for contexts of 2 x 3, given {tuple(answer.shape)}")
