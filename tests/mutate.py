"""``python -m tests.mutate``: changes the code in small ways, one at a time, and says which changes no test of the room sees.

No file is changed: a child process runs tests with the mutant (``tests/mutants.py``) until one fails. The tests of a room run
once under a tracer first; a mutant is given to the tests that run its lines, and to no others (``tests/mutate_room.py``). Which
mutants are tried is a sample that depends on ``--seed`` and on the code alone.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys

from tests.mutants import ROOT, of_room
from tests.mutate_room import DEFAULTS, BrokenTestsError, survivors

ELSEWHERE = {
    "analysis": ["tests/analysis", "tests/commands"],
    "commands": [
        "tests/commands",
        "tests/analysis/test_predict.py",
        "tests/claims/test_ledger_page.py",
        "tests/runs/test_extend.py",
        "tests/serve/test_command.py",
    ],
    "jobs": ["tests/commands", "tests/claims"],
    "files": ["tests/test_files.py", "tests/test_typed.py", "tests/commands/test_folders.py"],
    "layers": ["tests/layers", "tests/encoders", "tests/decoders"],
    "protocols": ["tests/protocols", "tests/analysis/test_adaptation.py"],
    "reports": [
        "tests/reports/test_charts.py",
        "tests/reports/test_figures.py",
        "tests/reports/test_pages.py",
        "tests/reports/test_terminal.py",
        "tests/claims/test_ledger_page.py",
        "tests/commands/test_report.py",
        "tests/commands/test_sharing.py",
    ],
    "runs": [
        "tests/runs",
        "tests/analysis/test_lattices.py",
        "tests/analysis/test_overlay.py",
        "tests/analysis/test_published.py",
        "tests/analysis/test_score.py",
        "tests/commands/test_attack_chinese_runs.py",
        "tests/commands/test_attack_runs.py",
        "tests/commands/test_augment_share.py",
        "tests/commands/test_cluster_update.py",
        "tests/commands/test_on_engines.py",
        "tests/commands/test_settings.py",
        "tests/commands/test_sharing.py",
        "tests/commands/test_writing.py",
        "tests/training/test_checkpoint.py",
        "tests/training/test_run_integrity.py",
        "tests/training/test_start_from.py",
    ],
    "text": ["tests/text", "tests/runs/test_adapters.py"],
}
"""Rooms whose tests are not, or not only, in a folder of that name."""


def tests_of_rooms() -> dict[str, list[str]]:
    """Room -> the tests that must see a change of it, for every room that is a folder: ``tests/ROOM``, or the tests of
    ``ELSEWHERE``, and the frozen defaults where the room has settings.
    """
    rooms = sorted(path.parent.name for path in (ROOT / "sememekit").glob("*/__init__.py"))
    frozen = (ROOT / "tests/config/defaults.txt").read_text(encoding="utf-8")
    with_settings = {line.partition(".")[0] for line in frozen.splitlines()}
    return {room: ELSEWHERE.get(room, [f"tests/{room}"]) + [f"{DEFAULTS}[{room}]"] * (room in with_settings) for room in rooms}


TESTS = tests_of_rooms()
WANTED = 0.85


def interval(caught: int, tried: int) -> tuple[float, float]:
    """The interval of Wilson (1927) for a share, at 95 %."""
    if not tried:
        return 0.0, 1.0
    z = 1.959964
    share, weight = caught / tried, 1 + z * z / tried
    middle = (share + z * z / (2 * tried)) / weight
    half = z / weight * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    return middle - half, middle + half


def main() -> int:
    """Try a sample of each room, and print a table with the survivors below it."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(TESTS)}; all unless given")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room at most (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", nargs="+", metavar="TEXT", help="only mutants whose line of the report holds such a text")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="these tests instead of all: what they catch, all catch")
    parser.add_argument("--part", nargs="+", metavar="TEXT", help="of the sample, only mutants whose line holds such a text")
    parser.add_argument("--untraced", action="store_true", help="give every mutant to all the tests, without a tracer before")
    given = parser.parse_args()
    unknown = set(given.rooms) - set(TESTS)
    if unknown:
        parser.error(f"no tests are known for {', '.join(sorted(unknown))}; allowed: {', '.join(TESTS)}")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CI"] = "1"  # hypothesis then tries the same examples every time
    assert not any(name.split(".")[0] == "sememekit" for name in sys.modules), "a child must compile the package itself"
    print("| room | mutants | tried | caught | share | 95 % interval |\n|---|---|---|---|---|---|", flush=True)
    left, good, stderr = [], True, os.dup(2)  # tests capture the standard streams
    for name in given.rooms or TESTS:
        every = [mutant for mutant in of_room(name) if any(text in str(mutant) for text in given.within or [""])]
        drawn = random.Random(given.seed).sample(every, min(given.sample, len(every)))
        sample = [mutant for mutant in drawn if any(text in str(mutant) for text in given.part or [""])]
        tests = given.tests or TESTS[name]
        try:
            alive = survivors(sample, tests, lambda text: os.write(stderr, f"{text}\n".encode()), not given.untraced)
        except BrokenTestsError as error:
            print(f"| {name} | {len(every):,} | tests fail without any mutant: {error} | | | |", flush=True)
            good = False
            continue
        tried, caught = len(sample), len(sample) - len(alive)
        low, high = interval(caught, tried)
        print(
            f"| {name} | {len(every):,} | {tried} | {caught} | {100 * caught / max(1, tried):.0f} % "
            f"| {100 * low:.0f} to {100 * high:.0f} % |",
            flush=True,
        )
        good = good and caught >= WANTED * tried
        left += alive
    print("\nNo test of the room sees:\n", *(f"- {mutant}" for mutant in left), sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
