"""``python -m tests.faults``: all faults, or every n-th; a table on stdout; exit code 1 where something is that must not be."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.faults.table import NOT_RUN, Part, Row, all_parts, markdown, work


def main() -> int:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="pieces at a time")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th trial alone")
    parser.add_argument("--only", nargs="*", default=[], metavar="PART", help="kill, corrupt, hostile, fuzz or a piece of them")
    parser.add_argument("--details", type=Path, help="a file for one line on each trial that must not be")
    given = parser.parse_args()
    parts = [part for part in all_parts() if not given.only or set(part) & set(given.only)]
    if not parts:
        parser.error(
            f"--only {' '.join(given.only)}: no such part; there are {', '.join(':'.join(part) for part in all_parts())}"
        )
    os.environ["OMP_NUM_THREADS"] = "1"
    found: dict[Part, list[Row]] = {}
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(given.jobs, spawn) as pool:
        waiting = {pool.submit(work, part, Path(folder), given.every): part for part in parts}
        for done in as_completed(waiting):
            try:
                found[waiting[done]] = done.result()
            except Exception as error:  # what one piece comes to must not lose what the others found
                lost = Row(f"{': '.join(waiting[done])}: {error}"[:200].replace("\n", " "), bad=(NOT_RUN,))
                lost.add(NOT_RUN, error)
                found[waiting[done]] = [lost]
            for row in found[waiting[done]]:
                print(f"{row.what}: {row.counts.total():,} trials, {row.faults} that must not be", file=sys.stderr, flush=True)
    rows = [row for part in sorted(found) for row in found[part]]
    print(markdown(rows))
    if given.details is not None:
        lines = [f"{row.what}\t{detail}\n" for row in rows for detail in row.details]
        given.details.write_text("".join(lines).replace("\x1b", "?"), encoding="utf-8")
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    sys.exit(main())
