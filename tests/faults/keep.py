"""``python -m tests.faults.keep [MUTANTS]``: one mutant for each reader and place that raises goes into ``cases.json``."""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.faults import parsers
from tests.faults.table import crash

CASES = Path(__file__).parent / "cases.json"


def main(mutants: int) -> int:
    """Try, keep, and say how many are new."""
    cases: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))
    known = {(case["parser"], case["was"]) for case in cases}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        parsers.KEPT[:] = [parsers.Kept(folder / "kept")]
        for parser in parsers.parsers():
            place, source = folder / "mutant", random.Random(f"keep {parser.name}")
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            parser.make(place)
            whole = (place / parser.file).read_bytes()
            for _ in range(mutants // 10 if parser.slow else mutants):
                changes = parsers.random_edits(source)
                (place / parser.file).write_bytes(parsers.mutate(whole, changes))
                was = crash(lambda parser=parser, place=place: parser.read(place)).split(":")[0]  # type: ignore[misc]
                if was and (parser.name, was) not in known:
                    known.add((parser.name, was))
                    cases.append({"parser": parser.name, "was": was, "edits": changes})
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    CASES.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return len(cases)


if __name__ == "__main__":
    print(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500), "cases")
