"""Training in several processes: sums of gradients, random generators, and a check that their weights are the same.

The loss of a step is the mean over the predictions of the whole batch. A rank takes the mean over its part, so its gradient is
weighted by its divisor d: g = sum over ranks r of (d_r / sum of all d) g_r.

The sum follows the backward pass and replaces ``DistributedDataParallel``: ranks agree, without a search through the graph,
which parameters have a gradient; a rank may have no example, and a batch may have several parts. Overlap with the backward pass
would gain little, since the largest gradient, of the word vectors, is complete only at its end."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from sememekit.decoders.base import Scheduled
from sememekit.errors import TrainingError
from sememekit.ranks import Ranks
from sememekit.tasks.base import Task, take_part

_INTEGERS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def reduce_gradients(parameters: Sequence[nn.Parameter], ranks: Ranks, weight: int, count: int) -> int:
    """Replace the gradients of this rank by the gradients of the whole batch; return the ``count`` of predictions over all
    ranks. ``parameters`` are in the same order on every rank; a gradient on any rank exists on all afterwards. ``weight`` is
    the divisor of this rank's loss; 0 without an example."""
    if ranks.size == 1:
        return count
    total, counted, *used = ranks.sum([weight, count, *(parameter.grad is not None for parameter in parameters)])
    gradients = []
    for parameter, anywhere in zip(parameters, used, strict=True):
        if not anywhere:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        elif parameter.grad.is_sparse:
            parameter.grad = parameter.grad.to_dense()
        gradients.append(parameter.grad)
    torch._foreach_mul_(gradients, weight / total)
    ranks.add_up_(gradients)
    return counted


def begin_together(task: Task, ranks: Ranks, seed: int, device: torch.device) -> torch.Generator | None:
    """Give each rank its part of the batches and its random numbers; return the generator that all ranks share.

    The shared generator continues torch's generator, as in one process; each rank also has a separate generator (``reseed``).
    For one process nothing changes, and the result is None."""
    take_part(task, ranks)
    if ranks.size == 1:
        return None
    draws = torch.Generator(device)
    draws.set_state(random_state(device)[device.type])
    for part in task.modules():
        if isinstance(part, Scheduled):
            part.train_together(ranks, draws)
    reseed(ranks, seed, 0)
    return draws


def go_on_together(ranks: Ranks, draws: torch.Generator, num_parts: int) -> None:
    """Advance the shared generator after a step to its position on the rank with most parts of the batch.

    Each part of the batch draws words, so the generator of a rank with fewer parts would otherwise stay behind."""
    total, squares = ranks.sum([num_parts, num_parts**2])
    if ranks.size * squares == total**2:  # as many on each rank
        return
    numbers = ranks.all(num_parts)
    draws.set_state(ranks.all(draws.get_state())[numbers.index(max(numbers))])


def reseed(ranks: Ranks, seed: int, step: int) -> None:
    """Seed torch by the run's seed, a step and the rank, so that ranks have different dropout masks."""
    torch.manual_seed(int(np.random.SeedSequence([seed, step, ranks.rank]).generate_state(1, np.uint64)[0] >> np.uint64(1)))


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the states of torch's generators for steps on ``device``, by type of device."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_state(states: dict[str, Tensor], device: torch.device) -> None:
    """Restore the result of ``random_state``; states of other types of device are skipped."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


def state_of_ranks(ranks: Ranks, draws: torch.Generator | None, device: torch.device) -> dict[str, Any]:
    """Collect the random states for a checkpoint: the shared one, and each rank's."""
    if draws is None:
        return random_state(device)
    shared = {**random_state(device), device.type: draws.get_state()}
    return {**shared, "ranks": ranks.all(random_state(device))}


def restore_ranks(
    stored: dict[str, Any], ranks: Ranks, draws: torch.Generator | None, device: torch.device, seed: int, step: int
) -> None:
    """Restore the random numbers of a checkpoint.

    With the same number of ranks, each rank gets its state again. With another number the shared generator continues (torch's
    generator for one process), and ranks are seeded by the step."""
    states = {name: state for name, state in stored.items() if name != "ranks"}
    if draws is None:
        set_random_state(states, device)
        return
    if device.type in states:
        draws.set_state(states[device.type])
    if len(stored.get("ranks", ())) == ranks.size:
        set_random_state(stored["ranks"][ranks.rank], device)
    else:
        reseed(ranks, seed, step)


def check_same_weights(task: Task, ranks: Ranks, when: str) -> None:
    """Raise TrainingError if a parameter or a stored buffer differs between ranks."""
    if ranks.size == 1:
        return
    named = task.state_dict()
    flats = [tensor.detach().contiguous().reshape(-1) for tensor in named.values()]
    mine = [int(flat.view(_INTEGERS[flat.element_size()]).sum(dtype=torch.int64)) for flat in flats]  # the sums of their bits
    leading = ranks.leaders(mine)
    different = ranks.all([name for name, one, other in zip(named, mine, leading, strict=True) if one != other])
    for rank, names in enumerate(different):
        if names:
            raise TrainingError(
                f"{names[0]} is not the same on rank {rank} as on rank 0 {when}; the ranks need the same code, versions and "
                "kind of processor: compare 'sememekit doctor' on each machine, and go on with --resume"
            )
