"""Attention, and a recurrent network that attends to a source while it writes a target."""

from typing import Literal, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional

Score = Literal["general", "additive"]


class Memory(NamedTuple):
    """The attended source, computed once for all steps, batch first, so that rows can be selected."""

    keys_BSA: Tensor  # projected once; A is H for the score "general"
    values_BSM: Tensor
    padding_BS: Tensor  # 0 where a position is real and minus infinity where it is padding


@final
class Attention(nn.Module):
    """Weights a_i = softmax over i of score(q, h_i), context c = sum_i a_i h_i, for a query q and outputs h_1 .. h_S.

    >>> attention = Attention(query_size=16, memory_size=16, score="additive")
    >>> memory = attention.prepare(hidden_TBH, lengths_B=torch.tensor([5, 3]))
    >>> contexts_BTM, weights_BTS = attention(hidden_TBH.transpose(0, 1), memory)

    - ``general``: score = q . (W h_i), Eq. (8) of Luong et al. 2015, "general";
    - ``additive``: score = v . tanh(W_q q + W h_i + b), Sec. 3.1 and Appendix A of Bahdanau et al. 2015.

    W h_i does not depend on the query and is computed once for a text (``prepare``). ``size`` is the size of the hidden layer
    of ``additive`` (default: H)."""

    def __init__(self, query_size: int, memory_size: int, score: Score, size: int | None = None) -> None:
        super().__init__()
        additive = score == "additive"
        inner = (size or query_size) if additive else query_size
        self.key = nn.Linear(memory_size, inner, bias=additive)
        self.query = nn.Linear(query_size, inner, bias=False) if additive else None
        self.score = nn.Parameter(torch.empty(inner)) if additive else None
        if self.score is not None:
            nn.init.uniform_(self.score, -(inner**-0.5), inner**-0.5)

    def prepare(self, hidden_SBM: Tensor, lengths_B: Tensor | None) -> Memory:
        """Return the memory of an encoder's outputs, with ``lengths_B`` real steps in each row."""
        values_BSM = hidden_SBM.transpose(0, 1)
        padding_BS = values_BSM.new_zeros(values_BSM.shape[:2])
        if lengths_B is not None:
            steps_S = torch.arange(values_BSM.shape[1], device=values_BSM.device)
            padding_BS = padding_BS.masked_fill(steps_S >= lengths_B.to(values_BSM.device)[:, None], -torch.inf)
        return Memory(self.key(values_BSM), values_BSM, padding_BS)

    def forward(self, query_BTH: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Contexts (B, T, M) and weights (B, T, S)."""
        if self.query is None or self.score is None:
            scores_BTS = torch.bmm(query_BTH, memory.keys_BSA.transpose(1, 2))
        else:
            summed_BTSA = self.query(query_BTH).unsqueeze(2) + memory.keys_BSA.unsqueeze(1)
            scores_BTS = torch.tanh(summed_BTSA) @ self.score
        weights_BTS = functional.softmax(scores_BTS + memory.padding_BS.unsqueeze(1), dim=-1)
        return torch.bmm(weights_BTS, memory.values_BSM), weights_BTS


Cell = Literal["lstm", "gru"]
Feeding = Literal["none", "context", "output"]
State = tuple[Tensor, ...]


class Written(NamedTuple):
    """Outputs of the network at each step."""

    outputs: Tensor  # (T, B, G) the contexts g for predicting words, or (N, G) for N requested positions
    weights: Tensor  # (T, B, S) of the attention at every step


@final
class AttentionalRNN(nn.Module):
    """Layers of LSTM or GRU cells with attention over the outputs h_1 .. h_S of an encoder.

    With y_t the vector of the previous word, s_t the state of the last layer and c_t the attention context:

    - ``none``: s_t = cell(s_{t-1}, y_t), c_t = attend(s_t). The recurrence does not depend on the attention, so in training it
      runs over the whole text at once (Luong et al. 2015 without input feeding);
    - ``context``: c_t = attend(s_{t-1}), s_t = cell(s_{t-1}, [y_t; c_t]): the context vector is concatenated with the word
      vector (Bahdanau et al. 2015; "RNN-context" of Hu et al. 2015 and Gu et al. 2018);
    - ``output``: s_t = cell(s_{t-1}, [y_t; g_{t-1}]), c_t = attend(s_t): input feeding (Sec. 3.3, Luong et al. 2015);

    and always g_t = tanh(W [s_t; c_t]) (Eq. 5, Luong et al. 2015), from which the output layer predicts. The states start at
    tanh(W_0 e), where e is the final encoder state; memory cells of an LSTM at W_0 e without tanh.

    Everything independent of the previous step is computed for all steps at once: attention keys and the word part of the
    input; with ``none``, everything. The layers run in the dtype of their parameters, also under autocast.

    State: (s_1, m_1, s_2, m_2, ...) or (s_1, s_2, ...), and g_{t-1} with ``output``; each (B, size), batch first. The rate
    ``output_dropout`` is on g, also when fed back."""

    def __init__(
        self,
        input_size: int,
        memory_size: int,
        hidden_size: int,
        output_size: int,
        *,
        num_layers: int = 1,
        cell: Cell = "lstm",
        feeding: Feeding = "none",
        score: Score = "general",
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.input_size, self.feeding, self.dropout, self.output_dropout = input_size, feeding, dropout, output_dropout
        self.states_per_layer = 2 if cell == "lstm" else 1
        fed = {"none": 0, "context": memory_size, "output": output_size}[feeding]
        kind = nn.LSTM if cell == "lstm" else nn.GRU
        sizes = [input_size + fed, *[hidden_size] * (num_layers - 1)]
        self.stack = nn.ModuleList(kind(size, hidden_size) for size in sizes)
        self.bridge = nn.Linear(memory_size, num_layers * self.states_per_layer * hidden_size)
        self.attention = Attention(hidden_size, memory_size, score)
        self.readout = nn.Linear(hidden_size + memory_size, output_size)

    def start(self, ended_BM: Tensor) -> State:
        """Return the state before the first word from the final encoder state."""
        parts: tuple[Tensor, ...] = self.bridge(ended_BM).chunk(len(self.stack) * self.states_per_layer, dim=-1)
        state = tuple(part if index % self.states_per_layer else part.tanh() for index, part in enumerate(parts))
        return (*state, ended_BM.new_zeros(len(ended_BM), self.readout.out_features)) if self.feeding == "output" else state

    def forward(self, x_TBE: Tensor, state: State, memory: Memory, real: Tensor | None = None) -> Written:
        """Compute the contexts of a known target (teacher forcing) from vectors of the previous words; ``real`` (N,) are the
        requested positions t B + b, to save computation; None for all."""
        with torch.autocast(x_TBE.device.type, enabled=False):
            write = self._together if self.feeding == "none" else self._by_step
            return write(x_TBE, state, memory, real)

    def step(self, x_NE: Tensor, state: State, memory: Memory) -> tuple[Tensor, State, Tensor]:
        """Write one word. The state has N rows; the memory has B rows, each for N / B consecutive rows of the state. Returns
        (N, G) contexts, the new state, and the weights (N, S) of the attention."""
        with torch.autocast(x_NE.device.type, enabled=False):
            return self._advance(self._of_words(x_NE), state, memory)

    def _of_words(self, x: Tensor) -> Tensor:
        """Project word vectors (..., E) by the first layer, without fed input: (..., gates x H)."""
        matrix, _, bias, _ = self.stack[0].parameters()
        return functional.linear(x, matrix[:, : self.input_size], bias)

    def _together(self, x_TBE: Tensor, state: State, memory: Memory, real: Tensor | None) -> Written:
        s_TBH = x_TBE
        for number, layer in enumerate(self.stack):
            own = tuple(part.unsqueeze(0) for part in self._own(state, number))
            s_TBH = functional.dropout(s_TBH, self.dropout, self.training) if number else s_TBH
            s_TBH, _ = layer(s_TBH, own if len(own) > 1 else own[0])
        contexts_BTM, weights_BTS = self.attention(s_TBH.transpose(0, 1), memory)
        both = torch.cat([s_TBH, contexts_BTM.transpose(0, 1)], dim=-1)  # (T, B, H + M)
        if real is not None:
            both = both.flatten(0, 1).index_select(0, real)  # (N, H + M)
        return Written(self._read_out(both), weights_BTS.transpose(0, 1))

    def _by_step(self, x_TBE: Tensor, state: State, memory: Memory, real: Tensor | None) -> Written:
        outputs, weights = [], []
        for projected in self._of_words(x_TBE):
            output, state, attended = self._advance(projected, state, memory)
            outputs.append(output)
            weights.append(attended)
        output_TBG = torch.stack(outputs)
        asked = output_TBG if real is None else output_TBG.flatten(0, 1).index_select(0, real)
        return Written(asked, torch.stack(weights))

    def _advance(self, projected: Tensor, state: State, memory: Memory) -> tuple[Tensor, State, Tensor]:
        """Take one step from the projected words (N, gates x H)."""
        first, *_ = self.stack[0].parameters()
        attended = None
        if self.feeding == "context":
            attended = self._attend(self._own(state, len(self.stack) - 1)[0], memory)
            projected = projected + functional.linear(attended[0], first[:, self.input_size :])
        elif self.feeding == "output":
            projected = projected + functional.linear(state[-1], first[:, self.input_size :])
        new: list[Tensor] = []
        top_NH = projected
        for number, layer in enumerate(self.stack):
            if number:
                matrix, _, bias, _ = layer.parameters()
                projected = functional.linear(functional.dropout(top_NH, self.dropout, self.training), matrix, bias)
            after = self._cell(layer, projected, self._own(state, number))
            top_NH = after[0]
            new += after
        context_NM, weights_NS = attended or self._attend(top_NH, memory)
        output_NG = self._read_out(torch.cat([top_NH, context_NM], dim=-1))
        return output_NG, (*new, output_NG) if self.feeding == "output" else tuple(new), weights_NS

    def _own(self, state: State, number: int) -> State:
        return state[number * self.states_per_layer : (number + 1) * self.states_per_layer]

    def _attend(self, query_NH: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Context (N, M) and weights (N, S); each row of the memory serves N / B rows."""
        context, weights = self.attention(query_NH.unflatten(0, (len(memory.keys_BSA), -1)), memory)  # (B, N / B, ...)
        return context.flatten(0, 1), weights.flatten(0, 1)

    def _read_out(self, both: Tensor) -> Tensor:
        return functional.dropout(self.readout(both).tanh(), self.output_dropout, self.training)

    def _cell(self, layer: nn.Module, projected: Tensor, own: State) -> State:
        """Run torch's cell on the projected input (N, gates x H) and the state of the layer, (N, H) each."""
        _, matrix, _, bias = layer.parameters()
        recurrent = functional.linear(own[0], matrix, bias)
        if self.states_per_layer == 2:
            i, f, u, o = (projected + recurrent).chunk(4, dim=-1)
            cell_NH = f.sigmoid() * own[1] + i.sigmoid() * u.tanh()
            return o.sigmoid() * cell_NH.tanh(), cell_NH
        r, z, n = projected.chunk(3, dim=-1)
        r_h, z_h, n_h = recurrent.chunk(3, dim=-1)
        keep_NH = (z + z_h).sigmoid()
        new_NH = (n + (r + r_h).sigmoid() * n_h).tanh()
        return (new_NH + keep_NH * (own[0] - new_NH),)
