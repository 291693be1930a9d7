"""The sememe layers against their plain twin, what pi is, and what goes wrong when it is asked for badly."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sememekit.config import load_variant, read_settings
from sememekit.encoders import ENCODERS
from sememekit.encoders.base import Encoder, EncoderResources
from sememekit.encoders.gru import gru_scan
from sememekit.encoders.sememe_sum import Pi, SememeSum
from sememekit.errors import ConfigError
from sememekit.layers import lstm_scan
from tests.encoders.sememe_twin import pi_of, read_slowly
from tests.small import small_graph, small_vocabulary

INPUT, TIME, BATCH = 5, 6, 3


def make(name: str, graph: bool = True, **settings: Any) -> Encoder:
    torch.manual_seed(7)
    kind = load_variant("encoder", name, ENCODERS)
    resources = EncoderResources(INPUT, small_vocabulary(), small_graph() if graph else None)
    encoder: Encoder = kind(read_settings(kind.Settings, {"hidden_size": 4, **settings}, "case"), resources)
    return encoder.double()


CASES = [
    *[(name, {"injection": how}) for name in ("lstm", "gru") for how in ("none", "concat", "gate", "cell")],
    ("lstm", {"injection": "gate", "sememe_size": 3, "output_size": 6, "initialisation": "kaiming"}),
    ("lstm", {"injection": "cell", "sememe_size": 3, "num_layers": 1}),
    ("gru", {"reset": "before", "num_layers": 3}),
    ("gru", {"injection": "concat", "reset": "before"}),
    ("gru", {"injection": "gate", "gate_output": "plain", "sememe_size": 4}),
    ("gru", {"injection": "cell", "candidate": "release", "sememe_size": 3}),
]


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_values_and_gradients_are_those_of_the_equations(name: str, settings: dict[str, Any]) -> None:
    encoder = make(name, **settings)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.6)  # biases too, and far enough from zero that no gate is near one half
    tokens = torch.randint(len(small_vocabulary()), (TIME, BATCH))
    x = torch.randn(TIME, BATCH, INPUT, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn_like(part, requires_grad=True) for part in encoder.start(BATCH))
    wanted = [x, *state, *encoder.parameters()]
    weight = torch.randn(TIME, BATCH, encoder.output_size, dtype=torch.float64)

    def gradients(hidden: torch.Tensor, after: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((hidden * weight).sum() + sum(part.sin().sum() for part in after), wanted)

    encoded = encoder(x, tokens, state)
    hidden, after = read_slowly(encoder, small_graph(), x, tokens, state)
    torch.testing.assert_close(encoded.hidden, hidden, rtol=0, atol=1e-10)
    for one, other in zip(encoded.state, after, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    for one, other in zip(gradients(encoded.hidden, encoded.state), gradients(hidden, after), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_reading_backward_gives_every_sentence_its_own_sememes() -> None:
    """The released BiGRU cell sorts a batch by length without its sememes; here vectors and words go together."""
    encoder = make("bigru", injection="cell", num_layers=1)
    lengths = torch.tensor([4, TIME, 2])
    tokens = torch.randint(len(small_vocabulary()), (TIME, BATCH))
    x = torch.randn(TIME, BATCH, INPUT, dtype=torch.float64)
    encoded = encoder(x, tokens, encoder.start(BATCH), lengths)
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        backward = slice(0, length)
        hidden, _ = read_slowly(
            encoder.back, small_graph(), x[backward, one].flip(0), tokens[backward, one].flip(0), encoder.back.start(1)
        )
        torch.testing.assert_close(encoded.hidden[:length, row, 4:], hidden.flip(0)[:, 0], rtol=0, atol=1e-10)
        torch.testing.assert_close(encoder.last(encoded, lengths)[row, 4:], hidden[-1, 0], rtol=0, atol=1e-10)


def everywhere(pi: Pi) -> torch.Tensor:
    return pi.to_positions(pi.rows)


def test_pi_is_a_sum_over_all_senses_and_exactly_zero_without_entry() -> None:
    torch.manual_seed(2)
    sums = SememeSum(small_graph(), 3, 0.05, 0.0).double()
    words = torch.arange(len(small_vocabulary())).view(2, 5)
    pi = everywhere(sums(words))
    for word, value in zip(words.flatten().tolist(), pi.view(-1, 3), strict=True):
        torch.testing.assert_close(value, pi_of(sums.vectors, small_graph(), word), rtol=0, atol=1e-15)
    tokens = small_vocabulary().tokens
    known = [bool(value.any()) for value in pi.view(-1, 3)]
    assert {word for word, has in zip(tokens, known, strict=True) if not has} == {"无名", "。", "<unk>"}
    apple = small_graph().entry(tokens.index("苹果"))
    assert len(apple.senses) == 3
    assert len(apple.sememes()) == 5


def test_dropout_of_the_sememe_matrix_is_the_same_for_every_position() -> None:
    torch.manual_seed(2)
    sums = SememeSum(small_graph(), 8, 0.05, 0.5).double().train()
    pear = small_vocabulary().tokens.index("梨")
    pi = everywhere(sums(torch.full((4, 3), pear)))
    assert torch.equal(pi, pi[0, 0].expand_as(pi))
    assert not torch.equal(pi, everywhere(sums(torch.full((4, 3), pear))))


def test_vectors_start_as_the_text_and_cells_as_the_release_has_them() -> None:
    torch.manual_seed(1)
    encoder = make("lstm", injection="cell", sememe_size=4000, initialisation="kaiming", hidden_size=40)
    assert encoder.sememes.vectors.detach().var() == pytest.approx(0.05, rel=0.02), "the text has a variance"
    release = make("lstm", injection="cell", sememe_size=4000, sememe_deviation=0.05)
    assert release.sememes.vectors.detach().std() == pytest.approx(0.05, rel=0.02)
    cell = encoder.stack[0]
    assert cell.sememe_cell.weight.detach().std() == pytest.approx((2 / 4000) ** 0.5, rel=0.05)
    assert encoder.stack[1].weight_hh_l0.detach().std() == pytest.approx((2 / 40) ** 0.5, rel=0.05)
    biases = [value for name, value in encoder.named_parameters() if "bias" in name]
    assert biases
    assert not any(value.any() for value in biases)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("output", [False, True])
def test_the_scans_pass_finite_differences(second: bool, output: bool) -> None:
    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    torch.manual_seed(3)
    t, b, h, extra = 3, 2, 2, int(output)
    more = (draw(t, b, h) if second else None, draw(t, b, h) if output else None)
    assert torch.autograd.gradcheck(
        lstm_scan, (draw(t, b, (4 + extra) * h), draw((4 + extra) * h, h), draw(b, h), draw(b, h), *more)
    )
    for width in {h, 2 * h if second else h}:
        ready = (draw(t, b, (2 + extra) * h), draw(t, b, h), draw((2 + extra) * h, h), draw(h, width), draw(b, h))
        assert torch.autograd.gradcheck(gru_scan, (*ready, *more))


def test_injection_without_a_graph_is_refused() -> None:
    with pytest.raises(ConfigError, match="--graph FILE"):
        make("gru", graph=False, injection="gate")
    with pytest.raises(ConfigError, match="--graph FILE"):
        make("bilstm", graph=False, injection="cell")
    make("gru", graph=False)


def test_the_plain_output_of_the_gate_wants_equal_sizes() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.sememe_size=4"):
        make("gru", injection="gate", gate_output="plain", sememe_size=3)


def test_both_directions_read_one_table_and_one_second_cell() -> None:
    """One vector a sememe and one second cell, as in the text: BiGRU + cell has K P + 2 H (P + 1) numbers less than two."""
    for name, gates in (("bilstm", 3), ("bigru", 2)):
        shared = make(name, injection="cell", num_layers=1)
        apart = make(name, injection="cell", num_layers=1, shared_sememes=False)
        own = small_graph().num_sememes * INPUT + gates * 4 * (INPUT + 1)
        assert numbers(apart) - numbers(shared) == own
        assert shared.back.sememes is shared.forth.sememes
        concat, two = make(name, injection="concat"), make(name, injection="concat", shared_sememes=False)
        assert numbers(two) - numbers(concat) == small_graph().num_sememes * INPUT


def numbers(encoder: Encoder) -> int:
    return sum(parameter.numel() for parameter in encoder.parameters())


@pytest.mark.parametrize("injection", ["concat", "gate", "cell"])
@pytest.mark.parametrize("name", ["bilstm", "bigru"])
def test_sharing_changes_no_equation(name: str, injection: str) -> None:
    """With equal weights in both tables, shared and apart give the same contexts; gradients of the shared table are the sum."""
    shared = make(name, injection=injection, num_layers=1)
    apart = make(name, injection=injection, num_layers=1, shared_sememes=False)
    apart.load_state_dict(shared.state_dict())
    lengths, tokens = torch.tensor([4, TIME, 2]), torch.randint(len(small_vocabulary()), (TIME, BATCH))
    x = torch.randn(TIME, BATCH, INPUT, dtype=torch.float64)
    one, other = (encoder(x, tokens, encoder.start(BATCH), lengths).hidden for encoder in (shared, apart))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    for hidden in (one, other):
        hidden.sin().sum().backward()
    both = apart.forth.sememes.vectors.grad + apart.back.sememes.vectors.grad
    torch.testing.assert_close(shared.forth.sememes.vectors.grad, both, rtol=0, atol=1e-12)


def test_both_directions_drop_the_same_elements_of_a_shared_table() -> None:
    encoder = make("bigru", injection="gate", num_layers=1, sememe_dropout=0.5).train()
    seen = []
    for stack in (encoder.forth, encoder.back):
        stack.stack[0].register_forward_pre_hook(lambda module, given: seen.append(given[1].rows.detach().clone()))
    tokens = torch.randint(len(small_vocabulary()), (TIME, BATCH))
    encoder(torch.randn(TIME, BATCH, INPUT, dtype=torch.float64), tokens, encoder.start(BATCH))
    assert torch.equal(*seen)
