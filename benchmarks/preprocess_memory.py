"""Peak memory and speed of ``preprocess plain`` on a generated text, default: two gigabytes.

    python benchmarks/preprocess_memory.py [--megabytes 2000] [--workers 1] [--one-line] [--folder DIR]

Words are drawn from 200,000 made-up ones by a Zipf law. The text is written to a temporary folder, prepared in a process of its
own, and removed with what was made of it. Prints one JSON object. ``peak_rss_megabytes`` is the peak of the largest process and
includes pages of files that are mapped into memory; ``baseline_rss_megabytes`` is the same on a text of one megabyte.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CHILD = """
import json, resource, sys
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
if __name__ == "__main__":
    report = preprocess("plain", sys.argv[1], sys.argv[2], PreprocessSettings(min_count=5, workers=int(sys.argv[3])))
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    tokens = sum(split.tokens for split in report.signature.splits.values())
    faults = report.signature.faults.model_dump()
    size = report.signature.vocabulary_size
    print(json.dumps({"peak_kib": max(peaks), "tokens": tokens, "vocabulary": size, "faults": faults}))
"""


def generate(path: Path, megabytes: int, line_end: str) -> int:
    """Write the text and return its size in bytes."""
    generator = np.random.default_rng(1)
    words = np.array([np.base_repr(number * 2_654_435_761 % 2**32, 36).lower() for number in range(200_000)], dtype=object)
    size = 0
    with path.open("wb") as file:
        while size < megabytes * 1_000_000:
            drawn = words[(generator.zipf(1.15, 1_000_000) - 1) % len(words)].reshape(-1, 20)
            block = (line_end.join(" ".join(line) for line in drawn) + line_end).encode()
            file.write(block)
            size += len(block)
    return size


def measure(folder: Path, megabytes: int, workers: int, line_end: str) -> dict[str, Any]:
    text, script = folder / "text.txt", folder / "child.py"
    script.write_text(CHILD)
    size = generate(text, megabytes, line_end)
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, str(script), str(text), str(folder / "out"), str(workers)], check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    text.unlink()
    shutil.rmtree(folder / "out")
    child = json.loads(run.stdout)
    return {
        "bytes": size,
        "seconds": round(seconds, 1),
        "megabytes_per_second": round(size / seconds / 1e6, 2),
        "peak_rss_megabytes": round(child.pop("peak_kib") * 1024 / 1e6, 1),
        **child,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--one-line", action="store_true", help="no line ends at all, as in text8")
    parser.add_argument("--folder", type=Path, help="where the temporary folder goes; needs 4 bytes for each of the text")
    arguments = parser.parse_args()
    line_end = " " if arguments.one_line else "\n"
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < 4_000_000 * arguments.megabytes:
            raise SystemExit(f"{folder}: less than {4 * arguments.megabytes} MB free; give another --folder")
        baseline = measure(folder, 1, 1, "\n")
        result = measure(folder, arguments.megabytes, arguments.workers, line_end)
    report = {
        "benchmark": "preprocess_memory",
        "workers": arguments.workers,
        "one_line": arguments.one_line,
        "baseline_rss_megabytes": baseline["peak_rss_megabytes"],
        **result,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
