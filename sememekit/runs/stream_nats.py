"""The loss (nats) of each word of a stream."""

import torch

from sememekit.encoders.base import State
from sememekit.tasks.base import WordPredictor

_ROWS_AT_ONCE = 256


def with_context(ids: list[int], end: int | None) -> list[int]:
    """The ids of a line; if sentences end with ``<eos>``, an ``<eos>`` before them as the first context."""
    return [end, *ids] if end is not None else ids


@torch.no_grad()
def stream_nats(task: WordPredictor, streams: list[list[int]], state: State | None = None) -> tuple[list[list[float]], State]:
    """Nats of all ids but the first of each stream, longest stream first, and its state before the last id."""
    lengths = [len(stream) - 1 for stream in streams]
    nats: list[list[float]] = [[] for _ in streams]
    state = task.encoder.start(len(streams)) if state is None else state
    for begin in range(0, max(lengths), _ROWS_AT_ONCE):
        alive = sum(length > begin for length in lengths)
        state = tuple(part[:alive] for part in state)
        rows = min(lengths[0] - begin, _ROWS_AT_ONCE)
        ids = torch.zeros(rows + 1, alive, dtype=torch.long)
        mask = torch.zeros(rows, alive, dtype=torch.bool)
        for column, stream in enumerate(streams[:alive]):
            piece = stream[begin : begin + rows + 1]
            ids[: len(piece), column] = torch.tensor(piece)
            mask[: len(piece) - 1, column] = True
        ids, mask = ids.to(task.device), mask.to(task.device)
        hidden, state = task.contexts(ids[:-1], state)
        found = torch.zeros(rows, alive, dtype=torch.float64)
        found[mask.cpu()] = task.decoder.nll(hidden[mask], ids[1:][mask]).double().cpu()
        for column, length in enumerate(lengths[:alive]):
            nats[column] += found[: min(length - begin, rows), column].tolist()
    return nats, state
