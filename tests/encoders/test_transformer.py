"""The transformer against its definition, its window and its state. The promises of every encoder are in test_contract.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.encoders.base import EncoderResources, State
from sememekit.encoders.transformer import Transformer, TransformerBlock, rotate, rotation
from sememekit.errors import ConfigError
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.language_model import LanguageModel
from tests.small import small_vocabulary
from tests.small_run import in_chunks

TIME, BATCH, INPUT = 7, 3, 5


def make(**settings: Any) -> Transformer:
    torch.manual_seed(5)
    chosen = Transformer.Settings(**{"hidden_size": 8, "num_layers": 2, "num_heads": 2, "context": 3, **settings})
    encoder = Transformer(chosen, EncoderResources(INPUT, small_vocabulary())).double()
    for name, parameter in encoder.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 1.0, 0.3)
    return encoder.eval()


def inputs(time: int = TIME, batch: int = BATCH) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(time, batch, INPUT, dtype=torch.float64, generator=generator)
    return x, torch.zeros(time, batch, dtype=torch.int64)


def normed(norm: torch.nn.Module, x: Tensor) -> Tensor:
    centred = x - x.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt() * norm.weight + norm.bias


def turned(x: Tensor, position: int) -> Tensor:
    """Pairs of numbers as complex ones, times e^(i angle)."""
    half = len(x) // 2
    angles = torch.tensor([position * 10_000.0 ** (-2 * number / len(x)) for number in range(half)], dtype=x.dtype)
    product = torch.complex(x[:half], x[half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([product.real, product.imag])


def attended(block: TransformerBlock, past: list[tuple[Tensor, Tensor, Tensor]], query: Tensor) -> Tensor:
    """Each head alone over (weight, key, value) of the positions up to the query's."""
    size = len(query) // block.num_heads
    found = []
    for head in range(block.num_heads):
        own = slice(head * size, (head + 1) * size)
        weights = []
        for position, (presence, key, _) in enumerate(past):
            score = turned(query[own], len(past) - 1) @ turned(key[own], position) / math.sqrt(size)
            weights.append(presence * score.exp())
        values = [weight * value[own] for weight, (_, _, value) in zip(weights, past, strict=True)]
        found.append(torch.stack(values).sum(0) / torch.stack(weights).sum())
    return torch.cat(found)


def twin(encoder: Transformer, x: Tensor, state: State, row: int) -> Tensor:
    """(T, H) contexts of one row, a position, a head and a pair of words at a time."""
    rows = [normed(encoder.input_norm, encoder.input(word)) for word in x[:, row]]
    window = encoder.context
    for number, block in enumerate(encoder.blocks):
        keys, values = (part[row].view(window, -1) for part in state[2 * number + 1 : 2 * number + 3])
        past = list(zip(state[0][row].clamp(min=0.0), keys, values, strict=True))
        outputs = []
        for word in rows:
            query, key, value = (block.attention_in.weight @ normed(block.attention_norm, word)).chunk(3)
            past = [*past[-window:], (torch.ones((), dtype=x.dtype), key, value)]
            word = word + block.attention_out(attended(block, past, query))
            inner = block.feedforward_in(normed(block.feedforward_norm, word))
            outputs.append(word + block.feedforward_out(inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))))
        rows = outputs
    return torch.stack([normed(encoder.output_norm, word) for word in rows])


@pytest.mark.parametrize(
    "settings", [{}, {"num_heads": 1, "context": 10, "feedforward_size": 3}, {"num_heads": 4, "context": 1}], ids=str
)
def test_it_is_what_the_equations_say(settings: dict[str, Any]) -> None:
    """The states are the start of a text, and one in which positions are there by halves and not at all."""
    encoder, (x, tokens) = make(**settings), inputs()
    fresh = encoder.start(BATCH)
    generator = torch.Generator().manual_seed(7)
    odd = tuple(torch.randn(part.shape, generator=generator, dtype=part.dtype) for part in fresh)
    needed = list(encoder.parameters())
    for state in (fresh, odd):
        ours = encoder(x, tokens, state).hidden
        expected = torch.stack([twin(encoder, x, state, row) for row in range(BATCH)], dim=1)
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-11)
        gradients = (torch.autograd.grad(each.sin().sum(), needed, retain_graph=True) for each in (ours, expected))
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_scores_depend_on_the_distance_alone() -> None:
    cosines, sines = rotation(40, 6, torch.zeros((), dtype=torch.float64))
    query, key = torch.randn(2, 6, dtype=torch.float64)
    turned_query, turned_key = (rotate(each.expand(40, 6), cosines, sines) for each in (query, key))
    scores = turned_query @ turned_key.t()
    for offset in (0, 3, 11):
        along = scores.diagonal(-offset)
        torch.testing.assert_close(along, along[:1].expand_as(along), rtol=0, atol=1e-12)
    assert (scores[0] - scores[0, 0])[1:].abs().min() > 1e-6


def test_layers_reach_their_number_of_windows_back_and_no_further() -> None:
    encoder, (x, tokens) = make(context=2, num_layers=2), inputs(8)
    before = encoder(x, tokens, encoder.start(BATCH)).hidden
    x[2] += 1.0
    changed = (encoder(x, tokens, encoder.start(BATCH)).hidden != before).any(dim=-1)
    assert not changed[:2].any()
    assert changed[2:7].all(), "two layers of two positions back: words 2 to 6 see word 2"
    assert not changed[7].any()


def test_at_the_start_there_is_nothing_to_attend_to() -> None:
    """The first word of a text attends to no zeros either: its value does not depend on the window."""
    x, tokens = inputs(1)
    found = []
    for context in (1, 50):
        encoder = make(context=context)
        found.append(encoder(x, tokens, encoder.start(BATCH)).hidden)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-12)


def test_a_text_much_longer_than_the_window_is_finite_and_may_be_cut_anywhere() -> None:
    """The kernel goes over keys in blocks, whole ones of which are out of reach here."""
    encoder, (x, tokens) = make(context=4).float(), inputs(1200, 1)
    x = x.float().requires_grad_(True)
    whole = encoder(x, tokens, encoder.start(1))
    assert torch.isfinite(whole.hidden).all()
    (gradient,) = torch.autograd.grad(whole.hidden.sin().sum(), x)
    assert torch.isfinite(gradient).all()
    state, parts = encoder.start(1), []
    for begin in range(0, 1200, 90):
        encoded = encoder(x[begin : begin + 90], tokens[begin : begin + 90], state)
        parts.append(encoded.hidden)
        state = encoded.state
    torch.testing.assert_close(torch.cat(parts), whole.hidden, rtol=0, atol=2e-5)


def test_the_scale_of_word_vectors_does_not_matter() -> None:
    """The encoder normalises them at the entrance, up to the small number in the norm."""
    encoder, (x, tokens) = make(), inputs()
    torch.nn.init.zeros_(encoder.input.bias)
    one, other = (encoder(scale * x, tokens, encoder.start(BATCH)).hidden for scale in (10.0, 1000.0))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_vectors_as_wide_as_the_layers_are_not_mapped() -> None:
    encoder = Transformer(Transformer.Settings(hidden_size=8, num_heads=2), EncoderResources(8, small_vocabulary()))
    assert not list(encoder.input.parameters())
    assert encoder.output_size == 8


@pytest.mark.parametrize(("size", "heads", "fitting"), [(6, 4, 8), (10, 4, 8), (2, 3, 6)])
def test_heads_of_odd_size_are_refused(size: int, heads: int, fitting: int) -> None:
    with pytest.raises(ConfigError, match=rf"hidden_size \({size}\).*num_heads \({heads}\).*hidden_size={fitting} "):
        make(hidden_size=size, num_heads=heads)
    make(hidden_size=fitting, num_heads=heads)


def test_one_graph_without_breaks() -> None:
    encoder, (x, tokens) = make(), inputs()
    torch.compiler.reset()
    compiled = torch.compile(encoder, backend="eager", fullgraph=True)
    ours = compiled(x, tokens, encoder.start(BATCH)).hidden
    torch.testing.assert_close(ours, encoder(x, tokens, encoder.start(BATCH)).hidden, rtol=0, atol=1e-12)


def test_a_language_model_scores_a_text_alike_however_it_is_cut() -> None:
    table = {
        "task": {"embedding_size": 8},
        "encoder": {"name": "transformer", "hidden_size": 8, "num_heads": 2, "context": 5, "num_layers": 2},
    }
    torch.manual_seed(3)
    words = small_vocabulary()
    task = build_task(read_plan(table, "case"), words, None).double()
    assert isinstance(task, LanguageModel)
    text = np.random.default_rng(2).integers(0, len(words), 80)
    sums = [sum(part.nats.sum().item() for part in in_chunks(task, cut).score(text, batch_size=1)) for cut in (1, 7, 200)]
    assert sums[1:] == pytest.approx(sums[:1] * 2, abs=1e-9)
