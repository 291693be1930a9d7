"""Speed of ``preprocess plain --segmenter fmm`` on generated Chinese in many files, with one worker and with more.

    python benchmarks/preprocess_speed.py [--megabytes 200] [--files 20] [--workers 1 2] [--engine local] [--folder DIR]

Words of the open lexicon are drawn by a Zipf law, twenty to a line, without blanks. Each number of workers prepares the same
files in a process of its own. Prints one JSON object: seconds on the clock, CPU seconds of all processes and of the command
alone (with more than one worker: what they cannot share), megabytes a CPU
second of the whole command and of its stage ``shards`` (reading, forward maximum matching, counting) where there is one worker,
the peak memory of the command, and whether all gave the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from sememekit.sememes import words_of_lexicons

CHILD = """
import json, resource, sys, time
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
times = {}
def told(stage, done, total):
    times.setdefault(stage, [time.process_time(), 0.0])[1] = time.process_time()
if __name__ == "__main__":
    settings = PreprocessSettings(segmenter="fmm", lexicon="open", min_count=5, workers=int(sys.argv[3]), engine=sys.argv[4])
    begun = time.perf_counter()
    preprocess("plain", sys.argv[1], sys.argv[2], settings, progress=told)
    seconds = time.perf_counter() - begun
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    with open("/proc/self/status") as status:  # ru_maxrss begins with that of the process this one was forked from
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(json.dumps({
        "seconds": seconds,
        "cpu_seconds": sum(one.ru_utime + one.ru_stime for one in used),
        "cpu_seconds_of_command": used[0].ru_utime + used[0].ru_stime,
        "shard_seconds": times["shards"][1] - times["shards"][0],
        "peak_rss_megabytes": round(peak * 1024 / 1e6, 1),
    }))
"""


def generate(folder: Path, megabytes: int, files: int) -> int:
    """Write the files and return their size in bytes."""
    generator = np.random.default_rng(1)
    words = np.array(sorted(word for word in words_of_lexicons("open") if not any(map(str.isspace, word))), dtype=object)
    generator.shuffle(words)
    size = 0
    for number in range(files):
        with (folder / f"part-{number:05d}.txt").open("wb") as file:
            while size < (number + 1) * megabytes * 1_000_000 / files:
                drawn = words[(generator.zipf(1.3, 200_000) - 1) % len(words)].reshape(-1, 20)
                block = ("。\n".join(map("".join, drawn)) + "。\n").encode()
                file.write(block)
                size += len(block)
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--engine", default="local")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes; needs 5 bytes for each of the text")
    arguments = parser.parse_args()
    sides: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        (folder / "parts").mkdir()
        size = generate(folder / "parts", arguments.megabytes, arguments.files)
        (folder / "child.py").write_text(CHILD)
        for workers in arguments.workers:
            out = folder / f"out-{workers}"
            command = [sys.executable, folder / "child.py", folder / "parts", out, str(workers), arguments.engine]
            run = subprocess.run(command, check=True, capture_output=True, text=True)
            side = json.loads(run.stdout)
            shard_seconds = side.pop("shard_seconds")
            side["megabytes_per_cpu_second"] = round(size / side["cpu_seconds"] / 1e6, 2)
            if workers == 1:
                side["megabytes_per_cpu_second_of_shards"] = round(size / shard_seconds / 1e6, 2)
            side["sha256"] = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(out.iterdir()))).hexdigest()[:16]
            sides[str(workers)] = side
    first, last = (sides[str(workers)] for workers in (arguments.workers[0], arguments.workers[-1]))
    for side in sides.values():
        side.update({name: round(value, 2) for name, value in side.items() if isinstance(value, float)})
    report = {
        "benchmark": "preprocess_speed",
        "date": time.strftime("%Y-%m-%d"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "bytes": size,
        "workers": sides,
        "times_faster": round(first["seconds"] / last["seconds"], 2),
        "same_bytes": len({side["sha256"] for side in sides.values()}) == 1,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
