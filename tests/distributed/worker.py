"""One of several processes that train together, started with what torchrun puts into the environment.

``python -m tests.distributed.worker FOLDER`` trains the cases that are named there; ``... worker FOLDER SNAPSHOT`` only goes on
from a snapshot.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from sememekit.ranks import Ranks, joined
from sememekit.training import Trainer
from sememekit.training.snapshots import read_snapshot, write_snapshot
from tests.distributed.cases import STEPS, go_on, outcome, trainer_of

DROPOUT = {"input_dropout": 0.3, "output_dropout": 0.3}


def resumed(table: dict[str, Any], ranks: Ranks, snapshot: Path, until: int) -> dict[str, Any]:
    """Go on from a snapshot."""
    trainer = trainer_of(table, ranks)
    trainer.restore(read_snapshot(snapshot, with_trainer=True))
    return outcome(trainer, go_on(trainer, until))


def keep(trainer: Trainer, snapshot: Path) -> None:
    """Write a snapshot, as ``RunFolder.save`` does."""
    with trainer.average.averaged_weights():
        state = trainer.state()
        if trainer.ranks.leads:
            write_snapshot(snapshot, trainer.task, state)
    trainer.ranks.wait()


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    given = json.loads((folder / "tables.json").read_text(encoding="utf-8"))
    tables = given["tables"]
    with joined() as ranks:
        if len(sys.argv) == 2:
            found = everything(tables, given["cases"], ranks, folder)
        else:
            found = {"resumed": resumed(tables["sampled"], ranks, Path(sys.argv[2]), 12)}
    if ranks.leads:
        torch.save(found, folder / f"found-{ranks.size}.pt")


def everything(tables: dict[str, Any], cases: list[str], ranks: Ranks, folder: Path) -> dict[str, Any]:
    """Return the outcomes of some cases, of resumed trainings, and of exchanges between ranks."""
    found: dict[str, Any] = {}
    for name in cases:
        trainer = trainer_of(tables[name], ranks)
        found[name] = outcome(trainer, go_on(trainer, STEPS))
    single = trainer_of(tables["sampled"], ranks, torch.float32)
    found["float32"] = outcome(single, go_on(single, STEPS))

    plain = tables["sampled"]
    found["resumed from one"] = resumed(plain, ranks, folder / "of-one", 12)
    half = trainer_of(plain, ranks)
    go_on(half, 5)
    state = half.state()
    if ranks.leads:
        write_snapshot(folder / "of-several", half.task, state)

    dropping = {**plain, "task": {**plain["task"], **DROPOUT}}
    straight = trainer_of(dropping, ranks)
    losses = go_on(straight, 5)
    state = straight.state()
    if ranks.leads:
        write_snapshot(folder / "dropping", straight.task, state)
    ranks.wait()
    losses = go_on(straight, 12)
    found["straight"] = outcome(straight, losses)
    found["resumed"] = resumed(dropping, ranks, folder / "dropping", 12)
    in_parts = {**plain, "task": {**plain["task"], "batch_size": 5, "small_batch_size": 1}}
    straight = trainer_of(in_parts, ranks)
    go_on(straight, 5)
    keep(straight, folder / "in-parts")
    losses = go_on(straight, 12)
    found["straight in parts"] = outcome(straight, losses)
    found["resumed in parts"] = resumed(in_parts, ranks, folder / "in-parts", 12)
    found["masks"] = ranks.all(torch.rand(3).tolist())
    found["gathered"] = _gathered(ranks)
    return found


def _gathered(ranks: Ranks) -> dict[str, Any]:
    """Exchange values of different sizes between the ranks, and return the results."""
    mine = torch.full((2, ranks.rank), float(ranks.rank))
    some = torch.ones(2, 3) * ranks.rank if ranks.rank == 1 else None
    large = torch.ones(1 << 20) * (ranks.rank + 1)
    ranks.add_up_([large, small := torch.tensor([ranks.rank, 1.0]), flipped := torch.ones(2, 3).T])
    return {
        "columns": ranks.joined_along(mine, 1),
        "one alone": ranks.joined_along(some, 0),
        "nobody": ranks.joined_along(None, 0),
        "sums": (large[:2], small, flipped),
        "leader": ranks.leaders(f"rank {ranks.rank}"),
        "numbers": ranks.sum([1, ranks.rank]),
        "any": [ranks.any(False), ranks.any(ranks.rank == 1)],
    }


if __name__ == "__main__":
    main()
