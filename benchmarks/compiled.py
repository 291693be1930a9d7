"""CPU time of SDLM under torch.compile with inductor over eager, forward and backward, exact and with sampled words.

python benchmarks/compiled.py --out compiled.json
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measuring import times

from sememekit import nn


def main() -> None:
    """Measure, and write the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("compiled.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    draw = torch.Generator().manual_seed(1)
    senses = [
        [torch.randint(500, (3,), generator=draw).unique().tolist() for _ in range(1 + word % 2)]
        for word in range(arguments.words)
    ]
    hidden = torch.randn(700, arguments.width, requires_grad=True)
    target = torch.randint(arguments.words, (700,))
    found: dict[str, Any] = {"words": arguments.words, "width": arguments.width, "tokens": 700}
    for name, more in (("exact", {}), ("1,000 sampled words", {"samples": 1000})):
        layer = nn.SememeSoftmax(arguments.width, senses, num_bases=5, **more).train()

        def step(call: Callable[..., Any], layer: nn.SememeSoftmax = layer) -> Callable[[], None]:
            def run() -> None:
                layer.zero_grad(set_to_none=True)
                call(hidden, target).loss.backward()

            return run

        begin = time.process_time()
        compiled = torch.compile(layer)
        step(compiled)()
        seconds = time.process_time() - begin
        taken = times({"eager": step(layer), "inductor": step(compiled)}, arguments.repeats)
        found[name] = {side: {"best": min(all_), "mean": sum(all_) / len(all_)} for side, all_ in taken.items()}
        found[name]["compilation"] = seconds
        print(json.dumps({name: found[name]}), flush=True)
    found |= {"load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d"), "torch": torch.__version__}
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
