"""The sememe layers of Qin et al. 2020 written as the equations stand: a step, a row, a gate at a time.

Nothing of the encoders' way of computing is used, only their parameters.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sememekit.encoders.gru import GRU
from sememekit.encoders.lstm import LSTM
from sememekit.sememes import SememeGraph


def part(layer: nn.Linear, number: int, size: int, value: Tensor) -> Tensor:
    """The ``number``-th block of ``size`` outputs of a joint map."""
    rows = slice(number * size, (number + 1) * size)
    return layer.weight[rows] @ value + layer.bias[rows]


def pi_of(vectors: Tensor, graph: SememeGraph, word: int) -> Tensor:
    """The sum of the vectors of the distinct sememes of all senses; zero where no lexicon knows the word."""
    entry = graph.entry(word)
    total = torch.zeros(vectors.shape[1], dtype=vectors.dtype)
    if not entry.is_from_lexicon:
        return total
    for name in {name for sense in entry.senses for name in sense.sememes}:
        total = total + vectors[graph.sememes.index(name)]
    return total


def lstm_step(m: dict[str, nn.Linear], size: int, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. (1), with the parameters of torch's module: order i, f, u, o."""
    i, f, u, o = (part(m["x"], n, size, x) + part(m["h"], n, size, h) for n in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(u)
    return torch.sigmoid(o) * torch.tanh(c), c


def lstm_gate_step(layer: nn.Module, x: Tensor, pi: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. (5)."""
    size = layer.size
    u = torch.tanh(part(layer.input, 0, size, x) + part(layer.recurrent, 0, size, h))
    f, i, o, o_s = (
        torch.sigmoid(
            part(layer.input, n + 1, size, x) + part(layer.recurrent, n + 1, size, h) + part(layer.sememes, n, size, pi)
        )
        for n in range(4)
    )
    c = f * c + i * u
    return o * torch.tanh(c) + o_s * torch.tanh(part(layer.output, 0, size, pi)), c


def lstm_cell_step(layer: nn.Module, x: Tensor, pi: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. (7)."""
    size = layer.size
    u_s = torch.tanh(part(layer.sememe_cell, 0, size, pi))
    i_s, o_s = (torch.sigmoid(part(layer.sememe_cell, n, size, pi)) for n in (1, 2))
    c_s = i_s * u_s
    h_s = o_s * torch.tanh(c_s)
    f = torch.sigmoid(part(layer.input, 1, size, x) + part(layer.recurrent, 1, size, h))
    f_s = torch.sigmoid(part(layer.input, 4, size, x) + part(layer.sememes, 2, size, h_s))
    i = torch.sigmoid(part(layer.input, 2, size, x) + part(layer.recurrent, 2, size, h) + part(layer.sememes, 0, size, h_s))
    o = torch.sigmoid(part(layer.input, 3, size, x) + part(layer.recurrent, 3, size, h) + part(layer.sememes, 1, size, h_s))
    u = torch.tanh(part(layer.input, 0, size, x) + part(layer.recurrent, 0, size, h) + part(layer.sememes, 3, size, h_s))
    c = f * c + f_s * c_s + i * u
    return o * torch.tanh(c), c


def gru_before_step(layer: nn.Module, x: Tensor, h: Tensor) -> Tensor:
    """Eq. (2)."""
    size = layer.size
    z = torch.sigmoid(part(layer.input, 1, size, x) + part(layer.recurrent, 0, size, h))
    r = torch.sigmoid(part(layer.input, 2, size, x) + part(layer.recurrent, 1, size, h))
    n = torch.tanh(part(layer.input, 0, size, x) + part(layer.candidate, 0, size, r * h))
    return (1 - z) * h + z * n


def gru_gate_step(layer: nn.Module, x: Tensor, pi: Tensor, h: Tensor) -> Tensor:
    """Eq. (6); the map under the last tanh is the identity where the text is followed."""
    size = layer.size
    z, r, o_s = (
        torch.sigmoid(part(layer.input, n + 1, size, x) + part(layer.recurrent, n, size, h) + part(layer.sememes, n, size, pi))
        for n in range(3)
    )
    n = torch.tanh(part(layer.input, 0, size, x) + part(layer.candidate, 0, size, r * h))
    direct = pi if layer.output is None else part(layer.output, 0, size, pi)
    return (1 - z) * h + z * n + o_s * torch.tanh(direct)


def gru_cell_step(layer: nn.Module, x: Tensor, pi: Tensor, h: Tensor) -> Tensor:
    """Eq. (8), or its candidate as in the released language-model code."""
    size = layer.size
    h_s = torch.sigmoid(part(layer.sememe_cell, 0, size, pi)) * torch.tanh(part(layer.sememe_cell, 1, size, pi))
    z, r = (
        torch.sigmoid(part(layer.input, n + 1, size, x) + part(layer.recurrent, n, size, h) + part(layer.sememes, n, size, h_s))
        for n in range(2)
    )
    if layer.sememe_candidate is None:
        memory = part(layer.candidate, 0, size, r * (h + h_s))
    else:
        memory = part(layer.candidate, 0, size, r * h) + part(layer.sememe_candidate, 0, size, r * h_s)
    return (1 - z) * h + z * torch.tanh(part(layer.input, 0, size, x) + memory)


def torch_lstm(layer: nn.LSTM) -> dict[str, nn.Linear]:
    """Return the two maps of the layer as ``part`` reads them."""
    maps = {}
    for name, weight, bias in (("x", layer.weight_ih_l0, layer.bias_ih_l0), ("h", layer.weight_hh_l0, layer.bias_hh_l0)):
        maps[name] = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
        maps[name].weight, maps[name].bias = weight, bias
    return maps


def torch_gru_step(layer: nn.GRU, x: Tensor, h: Tensor) -> Tensor:
    """Torch's form: order r, z, n, z the share of the old."""
    size = layer.hidden_size
    from_x = layer.weight_ih_l0 @ x + layer.bias_ih_l0
    from_h = layer.weight_hh_l0 @ h + layer.bias_hh_l0
    r, z = (torch.sigmoid(from_x[n * size : (n + 1) * size] + from_h[n * size : (n + 1) * size]) for n in range(2))
    n = torch.tanh(from_x[2 * size :] + r * from_h[2 * size :])
    return (1 - z) * n + z * h


def one_step(encoder: LSTM | GRU, number: int, x: Tensor, pi: Tensor | None, own: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """One step of layer ``number``: its new state, the output first."""
    layer = encoder.stack[number]
    if number == 0 and encoder.injection == "concat":
        x = torch.cat([x, pi])
    if number == 0 and encoder.injection in ("gate", "cell"):
        steps = {("LSTM", "gate"): lstm_gate_step, ("LSTM", "cell"): lstm_cell_step}
        steps |= {("GRU", "gate"): gru_gate_step, ("GRU", "cell"): gru_cell_step}
        new = steps[type(encoder).__name__, encoder.injection](layer, x, pi, *own)
    elif isinstance(layer, nn.LSTM):
        new = lstm_step(torch_lstm(layer), layer.hidden_size, x, *own)
    elif isinstance(layer, nn.GRU):
        new = torch_gru_step(layer, x, *own)
    else:
        new = gru_before_step(layer, x, *own)
    return new if isinstance(new, tuple) else (new,)


def read_slowly(
    encoder: LSTM | GRU, graph: SememeGraph, x: Tensor, tokens: Tensor, state: tuple[Tensor, ...]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the expected ``encoder(x, tokens, state)``: outputs (T, B, H) and the state after the last step."""
    parts = encoder.states_per_layer
    hidden, states = [], []
    for row in range(x.shape[1]):
        own = [tuple(one[row] for one in state[n : n + parts]) for n in range(0, len(state), parts)]
        outputs = []
        for t in range(len(x)):
            value = x[t, row]
            pi = None if encoder.sememes is None else pi_of(encoder.sememes.vectors, graph, int(tokens[t, row]))
            for number in range(len(encoder.stack)):
                own[number] = one_step(encoder, number, value, pi, own[number])
                value = own[number][0]
            outputs.append(value)
        hidden.append(torch.stack(outputs))
        states.append([one for layer in own for one in layer])
    return torch.stack(hidden, dim=1), tuple(torch.stack(list(parts)) for parts in zip(*states, strict=True))
