"""One of two processes that train every module of ``sememekit.nn`` together: ``python -m tests.nn.ddp_worker FILE RANK``."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from sememekit.nn import SelfOrganizedSoftmax
from tests.nn.cases import ALL, COUNTS, WIDTH, Case, contexts, targets

WORLD = 2


def step(case: Case, rank: int) -> None:
    """Gradients are means over both processes, each of which has a half of the batch, on one axis or the other."""
    module = case.build(seed=3 + rank).eval()  # other weights on each: the first process sends its own
    if not list(module.parameters()):
        return
    parallel = DistributedDataParallel(module)
    arguments = case.call()
    mine = tuple(part[:, rank : rank + 1].contiguous() for part in arguments)
    case.value(parallel(*mine)).backward()
    alone = case.build(seed=3).eval()
    values = [case.value(alone(*(part[:, each : each + 1] for part in arguments))) for each in range(WORLD)]
    (sum(values) / WORLD).backward()  # type: ignore[union-attr]
    for (name, parameter), expected in zip(module.named_parameters(), alone.parameters(), strict=True):
        if expected.grad is not None:
            torch.testing.assert_close(parameter.grad, expected.grad, msg=f"{case} {name}", rtol=1e-4, atol=1e-6)


def clusters(rank: int, broadcast: bool) -> None:
    """Both processes see other words and have the same clusters; where buffers are sent, whatever they began with."""
    torch.manual_seed(rank)
    first = [0, 1, 1, 2, 0, 2, rank] if broadcast else None
    layer = SelfOrganizedSoftmax(WIDTH, COUNTS, clusters=first, update_every=2, gamma=3.0, frequency_budget=0.5)
    assert same(layer.clusters) != broadcast
    parallel = DistributedDataParallel(layer, broadcast_buffers=broadcast)
    optimizer = torch.optim.SGD(layer.parameters(), lr=5.0)
    layer.follow(optimizer)
    for number in range(4):
        optimizer.zero_grad()
        parallel(contexts(9) * (1 + number + rank), (targets(9) * (1 + rank)) % 7).loss.backward()
        optimizer.step()
        assert same(layer.clusters)
    if not broadcast:
        assert same(layer.layer.scores)
    assert same(layer.eval().nll(contexts(6), targets(6)))


def same(tensor: Tensor) -> bool:
    """Return whether both processes have the same numbers."""
    parts = [torch.empty_like(tensor) for _ in range(WORLD)]
    distributed.all_gather(parts, tensor.contiguous())
    return torch.equal(parts[0], parts[1])


def main() -> None:
    rank = int(sys.argv[2])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=Path(sys.argv[1]).as_uri(), rank=rank, world_size=WORLD)
    for case in ALL:
        step(case, rank)
    for broadcast in (True, False):
        clusters(rank, broadcast)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
