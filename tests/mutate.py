"""``python -m tests.mutate``: changes the code in small ways, one at a time, and says which changes no test sees.

No file is changed: a child process runs tests with the mutant (``tests/mutants.py``) until one fails. The fast tests run once
under a tracer first; a mutant is given to the tests that run its lines, and to no others (``tests/mutate_room.py``). Which
mutants are tried is a sample that depends on ``--seed`` and on the code alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from pathlib import Path

from tests.mutants import ROOT, of_room
from tests.mutate_room import BrokenTestsError, survivors

ROOMS = sorted(path.parent.name for path in (ROOT / "sememekit").glob("*/__init__.py"))
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
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"{', '.join(ROOMS)}; all unless given")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room at most (default: 60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", nargs="+", metavar="TEXT", help="only mutants whose line of the report holds such a text")
    parser.add_argument("--tests", nargs="+", metavar="FILE", default=["tests"], help="these tests instead of all")
    parser.add_argument("--seconds", type=float, default=120.0, help="of the tests that a mutant is given to (default: 120)")
    parser.add_argument("--part", nargs="+", metavar="TEXT", help="of the sample, only mutants whose line holds such a text")
    parser.add_argument("--record", type=Path, metavar="FILE", help="add a JSON object for each room to this file, a line each")
    given = parser.parse_args()
    unknown = set(given.rooms) - set(ROOMS)
    if unknown:
        parser.error(f"no room of the package: {', '.join(sorted(unknown))}; allowed: {', '.join(ROOMS)}")
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["CI"] = "1"  # hypothesis then tries the same examples every time
    assert not any(name.split(".")[0] == "sememekit" for name in sys.modules), "a child must compile the package itself"
    print("| room | mutants | tried | caught | share | 95 % interval |\n|---|---|---|---|---|---|", flush=True)
    left, good, stderr = [], True, os.dup(2)  # tests capture the standard streams

    def tell(text: str) -> None:
        os.write(stderr, f"{text}\n".encode())

    for name in given.rooms or ROOMS:
        every = [mutant for mutant in of_room(name) if any(text in str(mutant) for text in given.within or [""])]
        drawn = random.Random(given.seed).sample(every, min(given.sample, len(every)))
        sample = [mutant for mutant in drawn if any(text in str(mutant) for text in given.part or [""])]
        try:
            alive = survivors(sample, given.tests, tell, given.seconds)
        except BrokenTestsError as error:
            print(f"| {name} | {len(every):,} | no mutant was tried: {error} | | | |", flush=True)
            good = False
            continue
        tried, caught = len(sample), len(sample) - len(alive)
        low, high = interval(caught, tried)
        print(
            f"| {name} | {len(every):,} | {tried} | {caught} | {100 * caught / max(1, tried):.0f} % "
            f"| {100 * low:.0f} to {100 * high:.0f} % |",
            flush=True,
        )
        if given.record:
            found = {"room": name, "seed": given.seed, "mutants": len(every), "tried": tried, "caught": caught}
            with given.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**found, "survivors": list(map(str, alive))}, ensure_ascii=False) + "\n")
        good = good and caught >= WANTED * tried
        left += alive
    print("\nNo test sees:\n", *(f"- {mutant}" for mutant in left), sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
