"""CPU seconds of commands from the shell and of questions to an open run, beside the import of torch alone.

    sememekit quickstart --out quickstart
    python benchmarks/latency.py --runs quickstart --before OLD --out latency.json
    python benchmarks/latency.py --generate RUN... --out generation.json

``OLD`` is a folder with another version of the package; its commands run interleaved with the present ones. ``--generate``
measures the words a second that ``generate`` writes with each run: greedily, sampled and by a beam of five hypotheses. Texts of
two lengths show whether the model reads its text anew for each word: then the longer text would be slower for each word.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sememekit.files import replace_file, to_json

TEXT = "去年 美国 贸易 逆差 初步 估计 为"
COMMANDS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "doctor": ["doctor"],
    "lookup": ["lookup", "打"],
    "explain, SDLM": ["explain", "sdlm", TEXT],
    "explain, softmax": ["explain", "softmax", TEXT],
    "tag": ["tag", "sdlm"],
    "score": ["score", "sdlm"],
    "generate": ["generate", "sdlm", "去年 美国", "--num-tokens", "10"],
    "segment, lattice model": ["segment", "--model", "lattice"],
}
LENGTHS = (20, 100)
QUESTIONS = ("explain", "next_words")
ASK = """
import json, sys, time
from sememekit import load_run
run, text = load_run(sys.argv[1]), sys.argv[2]
taken = {}
for name in sys.argv[3:]:
    ask = getattr(run, name)
    ask(text)
    for _ in range(20):
        begin = time.process_time()
        ask(text)
        taken.setdefault(name, []).append(time.process_time() - begin)
print(json.dumps(taken))
"""


def generation(runs: list[Path], repeats: int) -> dict[str, Any]:
    """Return words a CPU second of each run, for each way and length."""
    from sememekit.runs.generation import generate
    from sememekit.runs.run import Run

    found: dict[str, Any] = {}
    for folder in runs:
        run = Run.open(folder)
        prompt = " ".join(run.vocabulary.decode(range(20, 24)))
        ways: dict[str, dict[str, Any]] = {"greedy": {"temperature": 0.0}, "sampled": {}, "beam of 5": {"beam": 5}}
        taken: dict[str, list[float]] = {}
        for again in range(repeats + 1):
            for way, options in ways.items():
                for length in LENGTHS if again else LENGTHS[:1]:
                    begin = time.process_time()
                    written = len(generate(run, prompt, num_tokens=length, **options).tokens)
                    if again:
                        taken.setdefault(f"{way}, {length}", []).append(written / (time.process_time() - begin))
        sizes = {"words": len(run.vocabulary), "encoder": run.task.encoder.output_size}
        found[folder.name] = {**sizes, "words_per_second": {name: round(max(rates), 1) for name, rates in taken.items()}}
    return found


def main() -> None:
    """Measure, and write the medians as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=Path("quickstart"))
    parser.add_argument("--before", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("latency.json"))
    parser.add_argument("--generate", type=Path, nargs="+", metavar="RUN", help="measure only how fast these runs write")
    arguments = parser.parse_args()
    if arguments.generate:
        written: dict[str, Any] = generation(arguments.generate, arguments.repeats)
        written |= {"load": os.getloadavg()[1], "date": time.strftime("%Y-%m-%d"), "machine": _machine()}
        replace_file(arguments.out, to_json(written))
        print(json.dumps(written, ensure_ascii=False))
        return
    sides = {"now": Path(__file__).resolve().parents[1], **({"before": arguments.before.resolve()} if arguments.before else {})}
    lines = {name: ["-m", "sememekit", *words] for name, words in COMMANDS.items()} | {"import torch": ["-c", "import torch"]}
    taken: dict[str, dict[str, list[float]]] = {name: {side: [] for side in sides} for name in lines}
    for again in range(arguments.repeats + 1):
        for name, words in lines.items():
            for side, package in sides.items():
                seconds = _run(words, package, arguments.runs)[0]
                if again:  # the first time compiles the modules
                    taken[name][side].append(seconds)
    found: dict[str, Any] = {
        "commands": {name: {side: _of(all_) for side, all_ in each.items()} for name, each in taken.items()}
    }
    found["questions"] = {}
    for kind in ("sdlm", "softmax"):
        for side, package in sides.items():
            asked = json.loads(_run(["-c", ASK, kind, TEXT, *QUESTIONS], package, arguments.runs)[1])
            for name, seconds in asked.items():
                found["questions"].setdefault(f"{name}, {kind}", {})[side] = _of(seconds)
    found |= {"load": os.getloadavg()[1], "date": time.strftime("%Y-%m-%d"), "machine": _machine()}
    replace_file(arguments.out, to_json(found))
    print(json.dumps(found, ensure_ascii=False))


def _run(words: list[str], package: Path, folder: Path) -> tuple[float, str]:
    """Return the CPU seconds of a process of Python, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, input=f"{TEXT}\n", capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])} ended with {done.returncode}: {done.stderr[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def _of(seconds: list[float]) -> dict[str, float]:
    return {"best": round(min(seconds), 4), "mean": round(sum(seconds) / len(seconds), 4)}


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))


if __name__ == "__main__":
    main()
