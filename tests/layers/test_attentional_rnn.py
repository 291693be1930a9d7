"""The attentional network against torch's own cells a step at a time, and its fast ways against its slow one."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from sememekit.layers.attentional_rnn import AttentionalRNN

FORMS = list(itertools.product(("lstm", "gru"), ("none", "context", "output"), ("general", "additive"), (1, 2)))
LENGTHS = torch.tensor([5, 2, 3])


def make(cell: str, feeding: str, score: str, layers: int) -> AttentionalRNN:
    torch.manual_seed(4)
    network = AttentionalRNN(3, 4, 5, 6, num_layers=layers, cell=cell, feeding=feeding, score=score)  # type: ignore[arg-type]
    return network.double()


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Word vectors (T, B, E), outputs of an encoder (S, B, M), and where its reading ended (B, M)."""
    generator = torch.Generator().manual_seed(8)
    return tuple(torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((4, 3, 3), (5, 3, 4), (3, 4)))  # type: ignore[return-value]


def twin(network: AttentionalRNN, x: Tensor, source: Tensor, ended: Tensor) -> Tensor:
    """One row, one step, one position of the source at a time, with torch's cells. (T, B, G)."""
    cells: list[nn.Module] = []
    for layer in network.stack:
        kind = nn.LSTMCell if isinstance(layer, nn.LSTM) else nn.GRUCell
        cell = kind(layer.input_size, layer.hidden_size).double()
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
        cells.append(cell)
    attention, rows = network.attention, []
    for row in range(x.shape[1]):
        values = source[: LENGTHS[row], row]

        def attend(query: Tensor, values: Tensor = values) -> Tensor:
            if attention.query is None:
                scores = [query @ (attention.key.weight @ value) for value in values]
            else:
                scores = [attention.score @ torch.tanh(attention.query(query) + attention.key(value)) for value in values]
            return (torch.stack(scores).softmax(0)[:, None] * values).sum(0)

        parts = list(network.bridge(ended[row : row + 1]).split(5, dim=-1))
        states: list[list[Tensor]] = []
        for cell in cells:
            states.append([parts.pop(0).tanh(), *([parts.pop(0)] if isinstance(cell, nn.LSTMCell) else [])])
        output, outputs = torch.zeros(6, dtype=torch.float64), []
        for step in range(len(x)):
            vector, context = x[step, row], None
            if network.feeding == "context":
                context = attend(states[-1][0][0])
                vector = torch.cat([vector, context])
            elif network.feeding == "output":
                vector = torch.cat([vector, output])
            vector = vector[None]
            for number, cell in enumerate(cells):
                after = cell(vector, tuple(states[number])) if len(states[number]) > 1 else (cell(vector, states[number][0]),)
                states[number] = list(after)
                vector = after[0]
            context = attend(vector[0]) if context is None else context
            output = torch.tanh(network.readout(torch.cat([vector[0], context])))
            outputs.append(output)
        rows.append(torch.stack(outputs))
    return torch.stack(rows, dim=1)


@pytest.mark.parametrize(("cell", "feeding", "score", "layers"), FORMS)
def test_values_and_gradients_are_those_of_the_plain_form(cell: str, feeding: str, score: str, layers: int) -> None:
    network, (x, source, ended) = make(cell, feeding, score, layers), inputs()
    found = []
    for form in ("fast", "plain"):
        leaves = [part.clone().requires_grad_() for part in (x, source, ended)]
        network.zero_grad()
        if form == "fast":
            memory = network.attention.prepare(leaves[1], LENGTHS)
            outputs = network(leaves[0], network.start(leaves[2]), memory).outputs
        else:
            outputs = twin(network, *leaves)
        outputs.square().sum().backward()
        gradients = [leaf.grad for leaf in leaves]
        if form == "fast":  # the plain form has copies of the cells
            gradients.append(network.readout.weight.grad.clone())
        else:
            gradients.append(network.readout.weight.grad)
        found.append([outputs.detach(), *gradients])
    for fast, plain in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("cell", "feeding", "score", "layers"), FORMS)
def test_steps_of_several_hypotheses_equal_the_whole(cell: str, feeding: str, score: str, layers: int) -> None:
    network, (x, source, ended) = make(cell, feeding, score, layers), inputs()
    memory = network.attention.prepare(source, LENGTHS)
    whole = network(x, network.start(ended), memory)
    state = tuple(part.repeat_interleave(2, dim=0) for part in network.start(ended))
    for step in range(len(x)):
        output, state, weights = network.step(x[step].repeat_interleave(2, dim=0), state, memory)
        for copy in (0, 1):
            torch.testing.assert_close(output[copy::2], whole.outputs[step], rtol=0, atol=1e-12)
            torch.testing.assert_close(weights[copy::2], whole.weights[step], rtol=0, atol=1e-12)


@pytest.mark.parametrize("feeding", ["none", "context", "output"])
def test_only_the_positions_asked_for(feeding: str) -> None:
    network, (x, source, ended) = make("lstm", feeding, "general", 1), inputs()
    memory = network.attention.prepare(source, LENGTHS)
    whole = network(x, network.start(ended), memory).outputs
    real = torch.tensor([0, 4, 11])
    part = network(x, network.start(ended), memory, real).outputs
    torch.testing.assert_close(part, whole.flatten(0, 1)[real], rtol=0, atol=1e-12)


def test_padding_of_the_source_gets_no_weight() -> None:
    network, (x, source, ended) = make("lstm", "none", "general", 1), inputs()
    weights = network(x, network.start(ended), network.attention.prepare(source, LENGTHS)).weights
    for row, length in enumerate(LENGTHS.tolist()):
        assert (weights[:, row, length:] == 0).all()
        torch.testing.assert_close(weights[:, row].sum(-1), torch.ones(4, dtype=torch.float64))
