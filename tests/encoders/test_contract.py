"""The contract of encoders, tested on each. A new encoder adds its cases here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sememekit.config import load_variant, read_settings
from sememekit.encoders import ENCODERS
from sememekit.encoders.base import ChildSum, Encoder, EncoderResources, State
from sememekit.encoders.lstm import LSTM
from sememekit.errors import ConfigError
from tests.small import small_graph, small_vocabulary

INPUT, TIME, BATCH = 5, 7, 4


@dataclass(frozen=True)
class Case:
    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.settings.items())])

    def make(self) -> Encoder:
        torch.manual_seed(5)
        kind = load_variant("encoder", self.name, ENCODERS)
        settings = read_settings(kind.Settings, {"hidden_size": 6, **self.settings}, "case")
        encoder: Encoder = kind(settings, EncoderResources(INPUT, small_vocabulary(), small_graph())).double()
        return encoder.eval()


CASES = [
    Case("lstm"),
    Case("lstm", {"num_layers": 1}),
    Case("lstm", {"num_layers": 3, "output_size": 4, "dropout": 0.5}),
    Case("gru"),
    Case("gru", {"num_layers": 1, "output_size": 4}),
    Case("gru", {"num_layers": 3, "dropout": 0.5}),
    Case("gru", {"reset": "before"}),
    *[Case(name, {"injection": injection}) for name in ("lstm", "gru") for injection in ("concat", "gate", "cell")],
    Case("lstm", {"injection": "cell", "num_layers": 3, "output_size": 4, "dropout": 0.5, "sememe_size": 3}),
    Case("lstm", {"injection": "gate", "num_layers": 1, "sememe_size": 3, "sememe_dropout": 0.5}),
    Case("gru", {"injection": "gate", "gate_output": "plain", "sememe_size": 6, "sememe_dropout": 0.5}),
    Case("gru", {"injection": "cell", "candidate": "release", "initialisation": "kaiming", "output_size": 4}),
    Case("bilstm"),
    Case("bilstm", {"injection": "cell", "num_layers": 1}),
    Case("bilstm", {"injection": "concat", "output_size": 4, "dropout": 0.5}),
    Case("bigru", {"injection": "cell"}),
    Case("bigru", {"injection": "gate", "num_layers": 1, "sememe_size": 3}),
    Case("awd_lstm", {"dropout": 0.0, "weight_drop": 0.0}),
    Case("awd_lstm", {"num_layers": 1, "output_size": 4, "weight_drop": 0.5}),
    Case("awd_lstm", {"dropout": 0.5, "weight_drop": 0.0}),
    Case("awd_lstm", {"dropout": 0.4, "weight_drop": 0.4}),
    Case("lattice_lstm"),
    Case("mogrifier"),
    Case("mogrifier", {"rounds": 0, "num_layers": 1, "weight_drop": 0.5}),
    Case("mogrifier", {"rounds": 1, "rank": 2, "num_layers": 1, "output_size": 4}),
    Case("mogrifier", {"rounds": 2, "output_size": 4, "recurrent_dropout": 0.5}),
    Case("mogrifier", {"rounds": 4, "rank": 2, "num_layers": 3, "dropout": 0.5, "initialisation": "kaiming"}),
    Case("mogrifier", {"injection": "concat", "sememe_size": 3, "rank": 3}),
    Case("transformer", {"num_heads": 3, "context": 3, "num_layers": 1}),
    Case("transformer", {"hidden_size": 8, "num_heads": 2, "context": 20, "num_layers": 2, "feedforward_size": 5}),
    Case("transformer", {"num_heads": 1, "context": 1, "num_layers": 3, "dropout": 0.5}),
    Case("lattice_lstm", {"coupled": True, "num_layers": 3, "dropout": 0.5, "recurrent_dropout": 0.5}),
]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


def reads_ahead(case: Case) -> bool:
    return load_variant("encoder", case.name, ENCODERS).reads_ahead


from_left_to_right = pytest.mark.parametrize("case", [case for case in CASES if not reads_ahead(case)], ids=str)
both_ways = pytest.mark.parametrize("case", [case for case in CASES if reads_ahead(case)], ids=str)


def inputs(time: int = TIME, batch: int = BATCH) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(9)
    tokens = torch.randint(len(small_vocabulary()), (time, batch), generator=generator)
    return torch.randn(time, batch, INPUT, generator=generator, dtype=torch.float64), tokens


def warm_state(encoder: Encoder, batch: int = BATCH) -> State:
    """A state that is not zero."""
    generator = torch.Generator().manual_seed(13)
    return tuple(torch.randn(part.shape, generator=generator, dtype=part.dtype) * 0.5 for part in encoder.start(batch))


def assert_states_close(one: State, other: State) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-12)


def test_every_encoder_has_a_case() -> None:
    """A pretrained model reads no vectors and keeps numbers of pieces: its promises are tried in test_pretrained.py."""
    assert {case.name for case in CASES} == set(ENCODERS) - {"hf"}


@each_case
def test_shapes_are_as_declared(case: Case) -> None:
    encoder = case.make()
    state = encoder.start(BATCH)
    assert isinstance(state, tuple)
    assert all(part.shape[0] == BATCH for part in state)
    assert all(not part.any() for part in state)
    encoded = encoder(*inputs(), state)
    assert encoded.hidden.shape == (TIME, BATCH, encoder.output_size)
    assert [part.shape for part in encoded.state] == [part.shape for part in state]
    assert [part.dtype for part in encoded.state] == [part.dtype for part in state]
    assert torch.equal(encoded.layers[-1], encoded.hidden)
    assert all(layer.shape[:2] == (TIME, BATCH) for layer in encoded.layers)


@from_left_to_right
def test_forward_equals_scanning_step(case: Case) -> None:
    encoder = case.make()
    x, tokens = inputs()
    state = warm_state(encoder)
    encoded = encoder(x, tokens, state)
    for time in range(TIME):
        hidden, state = encoder.step(x[time], tokens[time], state)
        torch.testing.assert_close(hidden, encoded.hidden[time], rtol=0, atol=1e-12)
    assert_states_close(state, encoded.state)


@from_left_to_right
@pytest.mark.parametrize("cut", [1, 3, TIME - 1])
def test_two_halves_equal_the_whole(case: Case, cut: int) -> None:
    encoder = case.make()
    x, tokens = inputs()
    whole = encoder(x, tokens, warm_state(encoder))
    first = encoder(x[:cut], tokens[:cut], warm_state(encoder))
    second = encoder(x[cut:], tokens[cut:], first.state)
    torch.testing.assert_close(torch.cat([first.hidden, second.hidden]), whole.hidden, rtol=0, atol=1e-12)
    assert_states_close(second.state, whole.state)


@from_left_to_right
def test_selecting_states_commutes_with_stepping(case: Case) -> None:
    """A beam search drops, repeats and moves rows."""
    encoder = case.make()
    x, tokens = inputs(1)
    state, chosen = warm_state(encoder), torch.tensor([2, 0, 0, 3, 2])
    hidden, after = encoder.step(x[0], tokens[0], state)
    picked, picked_after = encoder.step(x[0][chosen], tokens[0][chosen], tuple(part[chosen] for part in state))
    torch.testing.assert_close(picked, hidden[chosen], rtol=0, atol=1e-12)
    assert_states_close(picked_after, tuple(part[chosen] for part in after))


@from_left_to_right
def test_the_two_parts_of_a_step_make_the_step(case: Case) -> None:
    """A lattice has several edges that leave one state."""
    encoder = case.make()
    x, tokens = inputs(3)
    state = warm_state(encoder)
    parts = tuple(part.unsqueeze(0) for part in encoder.state_part(state))
    hidden, after = encoder.combine(encoder.input_part(x), tokens, parts)
    for edge in range(3):
        alone, alone_after = encoder.step(x[edge], tokens[edge], state)
        torch.testing.assert_close(hidden[edge], alone, rtol=0, atol=1e-12)
        assert_states_close(tuple(part[edge] for part in after), alone_after)


@each_case
def test_a_batch_equals_its_rows(case: Case) -> None:
    encoder = case.make()
    x, tokens = inputs()
    state = warm_state(encoder)
    together = encoder(x, tokens, state)
    for row in range(BATCH):
        one = slice(row, row + 1)
        alone = encoder(x[:, one], tokens[:, one], tuple(part[one] for part in state))
        torch.testing.assert_close(alone.hidden, together.hidden[:, one], rtol=0, atol=1e-12)
        assert_states_close(alone.state, tuple(part[one] for part in together.state))


@each_case
def test_rows_of_different_lengths_equal_the_rows_alone(case: Case) -> None:
    """Padding holds other words and wild vectors, and nothing of it is felt: outputs, states, the end, gradients."""
    encoder = case.make()
    lengths = torch.tensor([3, TIME, 1, 5])
    assert len(lengths) == BATCH
    x, tokens = inputs()
    padding = torch.arange(TIME)[:, None] >= lengths
    x = x.masked_fill(padding[:, :, None], 1e6).requires_grad_(True)
    state = tuple(part.requires_grad_(True) for part in warm_state(encoder))
    together = encoder(x, tokens, state, lengths)
    assert not together.hidden[padding].any()
    assert all(not layer[padding].any() for layer in together.layers)
    ends = encoder.last(together, lengths)
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        alone = encoder(x[:length, one], tokens[:length, one], tuple(part[one] for part in state))
        torch.testing.assert_close(together.hidden[:length, one], alone.hidden, rtol=0, atol=1e-12)
        assert_states_close(tuple(part[one] for part in together.state), alone.state)
        torch.testing.assert_close(ends[one], encoder.last(alone), rtol=0, atol=1e-12)
    (together.hidden.square().sum() + ends.sum() + sum(part.sin().sum() for part in together.state)).backward()
    assert x.grad is not None
    assert not x.grad[padding].any()
    assert x.grad[~padding].any(dim=-1).all()


@each_case
def test_no_dropout_in_evaluation_and_again_in_training(case: Case) -> None:
    encoder = case.make()
    x, tokens = inputs()
    before = encoder(x, tokens, encoder.start(BATCH)).hidden
    assert torch.equal(before, encoder(x, tokens, encoder.start(BATCH)).hidden)
    torch.manual_seed(1)
    encoder.train()
    one, two = (encoder(x, tokens, encoder.start(BATCH)).hidden for _ in range(2))
    assert torch.equal(one, two) == (not any(rate for key, rate in case.settings.items() if "drop" in key))
    assert torch.equal(before, encoder.eval()(x, tokens, encoder.start(BATCH)).hidden)


@each_case
def test_gradients_reach_every_parameter_the_input_and_the_state(case: Case) -> None:
    encoder = case.make().train()
    x, tokens = inputs()
    x.requires_grad_(True)
    state = tuple(part.requires_grad_(True) for part in warm_state(encoder))
    encoder(x, tokens, state).hidden.square().sum().backward()
    for parameter in [x, *state, *encoder.parameters()]:
        assert parameter.grad is not None
        assert (parameter.grad != 0).any()


@from_left_to_right
def test_what_comes_later_changes_nothing_before(case: Case) -> None:
    encoder = case.make()
    x, tokens = inputs()
    before = encoder(x, tokens, encoder.start(BATCH)).hidden
    x[4:] += 1.0
    tokens[4:] = 0
    after = encoder(x, tokens, encoder.start(BATCH)).hidden
    assert torch.equal(after[:4], before[:4])
    assert not torch.equal(after[4:], before[4:])


@each_case
def test_bfloat16_inputs_are_read_in_full_precision(case: Case) -> None:
    """The layers of torch's LSTM multiply in bfloat16 then (``stack.py``), no other layer does."""
    encoder = case.make().float()
    x, tokens = inputs()
    x = x.bfloat16()
    expected = encoder(x.float(), tokens, encoder.start(BATCH)).hidden
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = encoder(x, tokens, encoder.start(BATCH)).hidden
    if any(isinstance(layer, nn.LSTM) for layer in encoder.modules()):
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.005)
    else:
        assert torch.equal(found, expected)


@both_ways
def test_reading_both_ways_is_for_whole_sentences(case: Case) -> None:
    """Later words change the outputs before them; the backward reading ends at the first word; there is no step."""
    encoder = case.make()
    x, tokens = inputs()
    encoded = encoder(x, tokens, encoder.start(BATCH))
    half = encoder.output_size // 2
    assert torch.equal(encoder.last(encoded), torch.cat([encoded.hidden[-1, :, :half], encoded.hidden[0, :, half:]], dim=-1))
    x[4:] += 1.0
    after = encoder(x, tokens, encoder.start(BATCH)).hidden
    assert torch.equal(after[:4, :, :half], encoded.hidden[:4, :, :half])
    assert (after[:4, :, half:] != encoded.hidden[:4, :, half:]).any()
    with pytest.raises(ConfigError, match="whole sentences"):
        encoder.step(x[0], tokens[0], encoder.start(BATCH))


def test_an_encoder_that_does_not_write_the_step_out_of_several_states_is_not_built() -> None:
    class Promises(ChildSum, LSTM):  # type: ignore[misc]
        pass

    with pytest.raises(TypeError, match=r"Promises.*child_sum_combine.*child_sum_part"):
        Promises(LSTM.Settings(hidden_size=4), EncoderResources(3, small_vocabulary()))  # type: ignore[abstract]
