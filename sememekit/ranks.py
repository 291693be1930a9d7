"""Several processes that train one model: their ranks, their parts of a batch, and their communication.

``torchrun --nproc_per_node=N -m sememekit train ...`` starts N processes, the numbered *ranks*. Every rank has the whole model
and a part of each batch; gradients are summed, so that every rank takes the same step. Decisions are exchanged on the CPU by
gloo, without waiting for a device; tensors on GPUs by NCCL.

    with joined() as ranks:
        mine = tokens_TB[:, ranks.columns(tokens_TB.shape[1])]
        total, = ranks.sum([mine.numel()])"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from sememekit.errors import ConfigError, RankError

MEETING: Final = timedelta(minutes=5)
"""Timeout of processes at the start."""
WAITING: Final = timedelta(hours=24)
"""Timeout after the start, long since another process may validate or write a checkpoint."""
_LARGE: Final = 1 << 20  # size from which a tensor is sent alone; smaller ones are joined
_WANTED: Final = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_START: Final = "torchrun --nproc_per_node=N -m sememekit train ..."

T = TypeVar("T")


@final
class Ranks:
    """The processes that train one model, seen from one of these processes; ``ALONE`` for a single process.

    Every rank makes the same calls in the same order. A call to a rank whose process ended raises RankError.

    ``rank`` is the number of this process, 0 to ``size`` - 1; ``local`` is its number on its machine, also of its GPU;
    ``restarts`` counts restarts by torchrun."""

    def __init__(self, rank: int = 0, size: int = 1, local: int = 0, restarts: int = 0, store: Store | None = None) -> None:
        self.rank, self.size, self.local, self.restarts, self._store = rank, size, local, restarts, store

    @property
    def leads(self) -> bool:
        """True if this rank writes and prints."""
        return self.rank == 0

    def columns(self, count: int) -> slice:
        """Return this rank's slice of ``count`` adjacent columns; sizes differ by at most one."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def of(self, examples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return this rank's part of a batch's examples (n,): every ``size``-th, to spread long ones; maybe empty."""
        return examples if self.size == 1 else examples[self.rank :: self.size]

    def sum(self, numbers: Sequence[int]) -> list[int]:
        """Return sums of integers over the ranks."""
        if self.size == 1:
            return list(numbers)
        totals = torch.tensor(numbers, dtype=torch.int64)
        with _others_answer():
            distributed.all_reduce(totals)
        return totals.tolist()

    def any(self, asked: bool) -> bool:
        """Return whether ``asked`` is true on any rank."""
        return self.sum([int(asked)])[0] > 0

    def add_up_(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over the ranks, bit for bit the same on all of them."""
        if self.size == 1 or not tensors:
            return
        together: dict[torch.dtype, list[Tensor]] = {}
        with _others_answer():
            works = []
            for tensor in tensors:
                if tensor.numel() >= _LARGE and tensor.is_contiguous():
                    works.append(distributed.all_reduce(tensor, async_op=True))
                else:
                    together.setdefault(tensor.dtype, []).append(tensor)
            for group in together.values():
                flat = torch.cat([tensor.reshape(-1) for tensor in group])
                distributed.all_reduce(flat)
                for tensor, part in zip(group, flat.split([tensor.numel() for tensor in group]), strict=True):
                    tensor.copy_(part.view_as(tensor))
            for work in works:
                work.wait()

    def wait(self) -> None:
        """Wait until every rank is here."""
        self.sum([0])

    def leaders(self, value: T) -> T:
        """Broadcast the value of the first rank."""
        if self.size == 1:
            return value
        box = [value]
        with _others_answer():
            distributed.broadcast_object_list(box, src=0)
        return box[0]

    def all(self, value: T) -> list[T]:
        """Gather the values of all ranks, in order."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        with _others_answer():
            distributed.all_gather_object(found, value)
        return found

    def joined_along(self, tensor: Tensor | None, dim: int) -> Tensor | None:
        """Concatenate the tensors of all ranks along an axis, with the same result on every rank.

        A rank may pass None; the result is None if all ranks do. Other axes and dtypes agree."""
        if self.size == 1:
            return tensor
        own = None if tensor is None else (tuple(tensor.shape), tensor.dtype, str(tensor.device.type))
        shapes = self.all(own)
        own = own or next((shape for shape in shapes if shape is not None), None)
        if own is None:
            return None
        sizes = [shape[0][dim] if shape is not None else 0 for shape in shapes]
        first, dtype, device = own
        place = tensor.device if tensor is not None else torch.device(device)
        padded = torch.zeros((max(sizes), *first[:dim], *first[dim + 1 :]), dtype=dtype, device=place)
        if tensor is not None:
            padded[: tensor.shape[dim]] = tensor.movedim(dim, 0)
        parts = [torch.empty_like(padded) for _ in sizes]
        with _others_answer():
            distributed.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)]).movedim(0, dim)

    def speaks_of_failure(self) -> bool:
        """Return whether this process is the first to fail, so that only this process prints the failure."""
        if self._store is None:
            return True
        try:
            return self._store.compare_set(f"sememekit/failed-{self.restarts}", "", str(self.rank)) == str(self.rank).encode()
        except RuntimeError:  # the process that kept the store has ended
            return True

    def note(self, name: str) -> None:
        """Remember ``name`` for as long as torchrun lives, over its restarts."""
        if self._store is not None:
            _lasting(self._store).set(f"sememekit/{name}", "1")

    def noted(self, name: str) -> bool:
        """Return whether ``name`` was noted, now or before a restart."""
        return self._store is not None and bool(_lasting(self._store).check([f"sememekit/{name}"]))


ALONE: Final = Ranks()
"""A single process, with the whole batch."""


@contextmanager
def joined(environment: Mapping[str, str] = os.environ) -> Iterator[Ranks]:
    """Return the ranks of torchrun, including this process; ``ALONE`` without torchrun.

    Raises ConfigError: incomplete environment variables of torchrun, or unreachable processes."""
    size = _number(environment, "WORLD_SIZE", 1)
    missing = [name for name in _WANTED if name not in environment]
    if missing and size == 1:
        yield ALONE
        return
    if missing:
        raise ConfigError(
            f"WORLD_SIZE={size} is set and {', '.join(missing)} not; start several processes with {_START}, or take "
            "WORLD_SIZE out of the environment (unset WORLD_SIZE)"
        )
    rank = _number(environment, "RANK", 0)
    if not 0 <= rank < size:
        raise ConfigError(f"RANK={rank} and WORLD_SIZE={size}: a rank is 0 to {size - 1}; start the processes with {_START}")
    if not distributed.is_available():
        raise ConfigError("this torch was built without torch.distributed; install another one, or train in one process")
    local, restarts = _number(environment, "LOCAL_RANK", rank), _number(environment, "TORCHELASTIC_RESTART_COUNT", 0)
    try:
        store, _, _ = next(rendezvous("env://", rank, size, timeout=MEETING))
        store.set_timeout(MEETING)
        if size > 1:
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            meeting = PrefixStore(f"sememekit/group-{restarts}", store)  # addresses of processes that ended are still there
            distributed.init_process_group(backend, store=meeting, rank=rank, world_size=size, timeout=WAITING)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"rank {rank} cannot meet the other {size - 1} processes at {environment['MASTER_ADDR']}:"
            f"{environment['MASTER_PORT']} ({reason:.200}); start all of them with {_START}"
        ) from None
    try:
        yield Ranks(rank, size, local, restarts, store)
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _number(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    given = environment.get(name, str(otherwise))
    try:
        return int(given)
    except ValueError:
        raise ConfigError(f"{name}={given!r} in the environment is no whole number; start with {_START}") from None


def _lasting(store: Store) -> Store:
    """Return the store of torchrun without the prefix of the present attempt; its content survives restarts."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return store


@contextmanager
def _others_answer() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankError("another process of this training ended, or does not answer") from error
