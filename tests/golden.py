"""``python -m tests.golden``: writes ``golden.json``, the losses of the first ten steps of every task with every output layer.

Run it where a change of the mathematics, of a start or of the order of the data is meant, and say so in the commit's message.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from sememekit.decoders import DECODERS
from sememekit.encoders import ENCODERS
from sememekit.jobs.train import train
from sememekit.training import Report, StepReport
from tests.small_examples import ExamplePlace
from tests.small_pairs import PairPlace
from tests.small_run import SMALL_DECODERS, Place

FILE = Path(__file__).parent / "golden.json"
STEPS = 10
SMALL_ENCODERS: dict[str, dict[str, Any]] = {
    "mogrifier": {"hidden_size": 6, "num_layers": 2, "rank": 2},
    "transformer": {"hidden_size": 6, "num_layers": 2, "num_heads": 3, "context": 4},
}
"""Encoders that no other case has, with the softmax."""
LATTICE = ("adaptive", "mos", "softmax")
"""Output layers that a lattice is tried with: one of each kind that it takes."""


class EnoughError(Exception):
    """The end of the steps that are compared."""


class Places:
    """Prepared data of each kind, made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def words(self) -> Place:
        """A stream of words."""
        return Place(self.folder / "words")

    @cached_property
    def sentences(self) -> Place:
        """Sentences with chunks."""
        return Place(self.folder / "sentences", end_of_sentence=True, chunks=8, chunk_length=3)

    @cached_property
    def pairs(self) -> PairPlace:
        """Texts and headlines."""
        return PairPlace(self.folder / "pairs")

    @cached_property
    def examples(self) -> ExamplePlace:
        """Texts with labels."""
        return ExamplePlace(self.folder / "examples")

    def table(self, case: str) -> dict[str, Any]:
        """The plan of a case, "task decoder" or "task encoder"."""
        task, part = case.split()
        if task == "language_model" and part in ENCODERS:
            own = {"encoder": {"name": part, **SMALL_ENCODERS[part]}, "optimizer": {"name": "adam", "learning_rate": 0.02}}
            return {**self.words.table(), **own}
        if task == "language_model":
            return self.words.table(part)
        if task == "headline":
            return self.pairs.table(part)
        if task == "lattice":
            return {
                "data": {"path": str(self.sentences.data.folder)},
                "task": {"name": "lattice", "embedding_size": 6, "sub_size": 5, "longest_chunk": 3, "batch_size": 8},
                "encoder": {"name": "lattice_lstm", "hidden_size": 6},
                "decoder": {"name": part, **SMALL_DECODERS.get(part, {})},
                "optimizer": {"name": "adam", "learning_rate": 0.02, "clip": 1.0},
                "schedule": {"epochs": 2},
                "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
            }
        return self.examples.table(task, part)

    def losses(self, case: str) -> list[float]:
        """Losses of the first ten steps; the run goes no further."""
        table, found = self.table(case), list[float]()
        table["run"] = {**table["run"], "report_every": 1}

        def note(report: Report) -> None:
            found.extend([round(report.nats, 5)] if isinstance(report, StepReport) else [])
            if len(found) == STEPS:
                raise EnoughError

        with tempfile.TemporaryDirectory(dir=self.folder) as out, suppress(EnoughError):
            report = train(table, Path(out) / "run", on_report=note)
            raise AssertionError(f"{case}: {len(found)} steps; stopped by a signal: {report.stopped}; {report.finished}")
        return found


def cases() -> Iterator[str]:
    """Yield the name of every case."""
    for decoder in sorted(DECODERS):
        yield f"language_model {decoder}"
        yield f"headline {decoder}"
    yield from (f"language_model {encoder}" for encoder in SMALL_ENCODERS)
    yield from (f"lattice {decoder}" for decoder in LATTICE)
    yield from ("nli bilstm", "nli bigru", "classification lstm", "classification bilstm")


def main() -> None:
    """Write the file anew."""
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder))
        lines = [f"  {json.dumps(case)}: {json.dumps(places.losses(case))}" for case in cases()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
