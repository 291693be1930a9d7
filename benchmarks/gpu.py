"""All that is to be measured on a GPU, in the quarter of an hour for which one can be borrowed.

    python benchmarks/gpu.py [--minutes 12] [--out FOLDER] [--words 44000] [--data FOLDER] [--graph FILE] [--resume FOLDER]
        [--steps NAME ...]
    python benchmarks/gpu.py --rehearse

The steps, in order of worth; each is a process with a time limit, and without a device nothing follows the first:

- ``machine``: versions, missing packages, bytes a second of a copy, FLOP/s of a matrix product in each precision;
- ``tests``: the tests that are marked ``gpu``;
- ``steps``: time, peak memory and kernels of a training step, two models by five output layers, beside their floors;
- ``compiled``: an output layer under ``torch.compile`` against eager;
- ``training``: the recipe sdlm/tied-medium-sdlm for the time that is left, in runs/gpu/training. It stops with a checkpoint;
  the next call continues there, or in the folder that ``--resume`` names.

Each measurement is appended to FOLDER/gpu.jsonl at once, one JSON object a line, and printed after its step. A part that fails
or exceeds its limit becomes a line with ``error``, and the parts after it run in a new process. The output of a step is in
FOLDER/STEP.log. FOLDER is ``$OUT`` by default, or else runs/gpu. ``--rehearse`` runs everything on the CPU at small sizes, by
default in runs/gpu-rehearsal; its figures mean nothing.

Floor of a step: its arithmetic at the FLOP/s of a matrix product, or its bytes at the bytes a second of a copy, whichever
takes longer. A multiply-add is 2 FLOPs, and a step has three times the FLOPs of its forward pass. A parameter takes 28 bytes:
its weight is read twice, its gradient is written and read for the norm, and the update reads both and writes the weight.
Scores, (N, V) and more, are not counted, since a layer need not keep them."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gpu_steps import LAYERS, MODELS, ROOT, lines_of, record, recorded

PROGRAM = ROOT / "benchmarks" / "gpu_steps.py"
GRACE = 40.0
"""Seconds that a stopped training has for its checkpoint."""


class Step(NamedTuple):
    """A process: its parts, each of which writes a line, and its limits in seconds, in all and for a part."""

    name: str
    parts: tuple[str, ...]
    limit: float
    part_limit: float


STEPS = (
    Step("machine", ("machine",), 60, 60),
    Step("tests", ("tests",), 150, 150),
    Step("steps", tuple(f"{model} {layer}" for model in MODELS for layer in LAYERS), 220, 60),
    Step("compiled", ("softmax", "sdlm", "mos", "sdlm-sampled"), 120, 75),
)


def end_of(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ask a process to end, which a finished one ignores, and end all that it started."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Watch:
    """A process with a time limit for each new line of gpu.jsonl."""

    def __init__(self, options: argparse.Namespace, step: str, parts: list[str], part_limit: float) -> None:
        self.lines, self.log = options.out / "gpu.jsonl", options.out / f"{step}.log"
        self.part_limit = part_limit
        own = ["--step", step, "--parts", "|".join(parts), "--part-limit", str(part_limit)]
        given = ["--out", options.out, "--device", options.device, "--words", options.words, "--training", options.training]
        given += [word for name in ("data", "graph") if (value := getattr(options, name)) for word in (f"--{name}", value)]
        given += ["--rehearse"] if options.rehearse else []
        command = [sys.executable, "-u", PROGRAM, *own, *map(str, given)]
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with self.log.open("ab") as stream:
            self.process = subprocess.Popen(
                command, stdout=stream, stderr=stream, start_new_session=True, env={**os.environ, "PYTHONPATH": paths}
            )

    def wait(self, end: float, enough: Callable[[], bool] = lambda: False) -> str:
        """Wait for the process, until it writes no line for the limit of a part, until ``end``, or until it did ``enough``;
        return what became of it."""
        size, since = self._size(), time.monotonic()
        try:
            while self.process.poll() is None:
                time.sleep(0.1)
                now = time.monotonic()
                if self._size() != size:
                    size, since = self._size(), now
                if now > min(end, since + self.part_limit) or enough():
                    return f"stopped after {now - since:.0f} seconds"
        finally:
            end_of(self.process, GRACE)  # also where this program is interrupted
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"exit code {self.process.returncode}: {lines[-1][:500] if lines else 'no output'}"

    def _size(self) -> int:
        return self.lines.stat().st_size if self.lines.is_file() else 0


def show(lines: list[dict[str, Any]]) -> None:
    """Print lines without their kernels, which would fill the screen."""
    for line in lines:
        print(json.dumps({name: value for name, value in line.items() if name != "profile"}), flush=True)


def run_step(options: argparse.Namespace, step: Step, end: float) -> None:
    """Run the parts of a step; after one that fails, those behind it in a new process."""
    left, end = list(step.parts), min(end, time.monotonic() + step.limit)
    while left:
        if time.monotonic() > end:
            for part in left:
                record(options, step.name, part, {"error": "no time left for this part"})
            show(recorded(options)[-len(left) :])
            return
        before = len(recorded(options))
        became = Watch(options, step.name, left, step.part_limit).wait(end)
        done = {line["part"] for line in recorded(options)[before:]}
        left = [part for part in left if part not in done]
        if left:
            record(options, step.name, left.pop(0), {"error": became})
        show(recorded(options)[before:])


def train_until(options: argparse.Namespace, end: float) -> None:
    """Train until ``end``, in a rehearsal for an epoch, and write down how far it came."""
    metrics = options.training / "run" / "metrics.jsonl"

    def reports() -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines_of(metrics)]

    before = len(reports())
    began = time.monotonic()
    watch = Watch(options, "training", ["training"], end - began)
    became = watch.wait(end, lambda: options.rehearse and any("valid" in report for report in reports()[before:]))
    new = reports()[before:]
    epochs, speeds = [report for report in new if "valid" in report], [r["tokens_per_second"] for r in new if "nats" in r]
    values = {
        "text": str(options.data) if options.data else "made up: half of the words follow from the word before",
        "graph": str(options.graph) if options.graph else "random",
        "folder": str(options.training),
        "resumed": before > 0,
        "seconds": time.monotonic() - began,
        "steps_in_all": new[-1]["step"] if new else None,
        "epochs": [{"epoch": report["epoch"], **report["valid"], "seconds": report["seconds"]} for report in epochs],
        "tokens_per_second": statistics.median(speeds) if speeds else None,
        "exit_code": watch.process.returncode,  # 75: stopped with a checkpoint
    }
    record(options, "training", "training", values if watch.process.returncode in (0, 75) else {**values, "error": became})
    show(recorded(options)[-1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder of the results, default: $OUT or runs/gpu")
    parser.add_argument("--minutes", type=float, default=12.0, help="all steps together")
    parser.add_argument("--words", type=int, default=44_000, help="vocabulary of the steps that are timed")
    parser.add_argument("--data", type=Path, help="prepared data to train on; default: a text that is made up")
    parser.add_argument("--graph", type=Path, help="sememe graph to train with; default: one drawn at random")
    parser.add_argument("--resume", type=Path, help="the folder 'training' of an earlier call, to train on")
    names = [*(step.name for step in STEPS), "training"]
    parser.add_argument("--steps", nargs="+", choices=names, default=names, help="these after 'machine', default: all")
    parser.add_argument("--rehearse", action="store_true", help="all steps at small sizes on the CPU")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no process stays behind
    folder = options.out or Path("runs/gpu-rehearsal" if options.rehearse else "runs/gpu")
    options.training = options.resume or folder / "training"  # not in $OUT, whose files may be few and small
    options.out = options.out or Path(os.environ.get("OUT", folder))
    options.out.mkdir(parents=True, exist_ok=True)
    options.device = "cpu" if options.rehearse else "cuda"
    options.words = 300 if options.rehearse else options.words
    if options.resume and not options.resume.is_dir():
        parser.error(f"--resume {options.resume}: no such folder; it is the folder 'training' of an earlier call")
    for step in STEPS:
        if step.name in ("machine", *options.steps):
            run_step(options, step, end - GRACE)
        if step.name == "machine" and "error" in (line := recorded(options)[-1]):
            sys.exit(f"nothing was measured: {line['error']}")
    if "training" in options.steps:
        train_until(options, end - GRACE)


if __name__ == "__main__":
    main()
