"""The endpoint under load: latency of one client and of fifty, slow clients beside them, memory, and what batches would give.

    python benchmarks/serve_load.py [RUN] [--clients 50] [--requests 1000] [--flat 10000]

RUN is a language model (default: quickstart/sdlm). A server is started on a free port of this machine with one thread.
``keystroke`` is one client that types a context: the answer has ten words, their senses and twelve sememes. ``clients`` ask at
once, each the next request when its answer is there. ``slow`` repeats that while twenty clients send a request a byte a second
and leave others half read. ``flat`` is the memory of the server before and after many requests. ``batch`` compares eight texts
scored together with eight alone: seconds a text, and how far the nats move. Milliseconds are on the clock of the client;
``computed`` is what the server spent. Prints one JSON object a line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

QUESTIONS = {
    "next-words": {"context": "去年 美国 贸易 逆差", "top": 10},
    "score": {"text": "去年 美国 贸易 逆差 增长 。"},
}


@contextmanager
def server(run: Path) -> Iterator[tuple[str, int]]:
    """Start the command on a run; its address and process id."""
    command = [sys.executable, "-m", "sememekit", "serve", str(run), "--port", "0", "--no-browser", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def resident(pid: int) -> float:
    """Megabytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def summary(milliseconds: list[float]) -> dict[str, float]:
    """The median and the 95th percentile."""
    return {f"p{share}": round(float(np.percentile(milliseconds, share)), 1) for share in (50, 95)}


def processor_seconds(pid: int) -> float:
    """Seconds that a process has computed, which other work on the machine moves least."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def keystrokes(address: str, run: str, pid: int) -> dict[str, float]:
    """One client asks what the page asks while a context is typed."""
    words = ["去年", "美国", "贸易", "逆差", "继续", "增长", "，", "中国", "政府", "认为"]
    with httpx2.Client(base_url=address) as client:

        def ask(number: int) -> float:
            begin = time.perf_counter()
            client.post("/v1/explain", json={"run": run, "text": " ".join(words[:number])}).raise_for_status()
            return 1000 * (time.perf_counter() - begin)

        numbers = range(1, len(words) + 1)
        for number in numbers:  # the first requests open the segmenter
            ask(number)
        before = processor_seconds(pid)
        taken = [ask(number) for _ in range(20) for number in numbers]
        computed = 1000 * (processor_seconds(pid) - before) / len(taken)
    return {**summary(taken), "computed": round(computed, 1)}


async def load(address: str, path: str, question: dict[str, Any], clients: int, requests: int, slow: int = 0) -> dict[str, Any]:
    """So many clients at once, each asking again when it is answered."""
    taken: list[float] = []
    refused, left = 0, requests

    async def ask(client: httpx2.AsyncClient) -> None:
        nonlocal left, refused
        while left > 0:
            left -= 1
            begin = time.perf_counter()
            answer = await client.post(f"/v1/{path}", json=question)
            taken.append(1000 * (time.perf_counter() - begin))
            refused += answer.status_code != 200

    trickling = [asyncio.create_task(trickle(address, path)) for _ in range(slow)]
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        begin = time.perf_counter()
        await asyncio.gather(*(ask(client) for _ in range(clients)))
        seconds = time.perf_counter() - begin
    for task in trickling:
        task.cancel()
    await asyncio.gather(*trickling, return_exceptions=True)
    return {**summary(taken), "a second": round(requests / seconds, 1), "refused": refused}


async def trickle(address: str, path: str) -> None:
    """Send a request a byte a second."""
    host, port = address.strip("/").removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    lines = (
        f"POST /v1/{path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Content-Type: application/json",
        "Content-Length: 500",
        "",
        "",
    )
    writer.write("\r\n".join(lines).encode())
    try:
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(1)
    finally:
        writer.close()


def batches(run: Path) -> dict[str, float]:
    """Eight texts together and alone: milliseconds a text, and the largest difference of their nats."""
    import torch

    from sememekit import load_run
    from sememekit.analysis.score import score

    torch.set_num_threads(1)
    loaded, text = load_run(run, device="cpu"), QUESTIONS["score"]["text"]
    texts = [" ".join(str(text).split()[: 2 + number % 5]) for number in range(8)]
    best = {"alone": float("inf"), "together": float("inf")}
    for _ in range(20):
        begin = time.perf_counter()
        alone = [row.nats for one in texts for row in score(loaded, [one])]
        middle = time.perf_counter()
        together = [row.nats for row in score(loaded, texts)]
        end = time.perf_counter()
        best = {"alone": min(best["alone"], middle - begin), "together": min(best["together"], end - middle)}
    gap = max(abs(one - other) for one, other in zip(alone, together, strict=True) if one is not None and other is not None)
    return {**{name: round(1000 * seconds / len(texts), 2) for name, seconds in best.items()}, "nats differ by": gap}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=Path("quickstart/sdlm"))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--flat", type=int, default=10_000)
    given = parser.parse_args()
    if not (given.run / "plan.json").is_file():
        print(json.dumps({"skipped": f"no run in {given.run}; make one with: sememekit quickstart"}))
        return
    with server(given.run) as (address, pid):
        name = given.run.resolve().name
        print(json.dumps({"keystroke, ms": keystrokes(address, name, pid)}), flush=True)
        for path, question in QUESTIONS.items():
            asked = {"run": name, **question}
            for slow in (0, 20):
                found = asyncio.run(load(address, path, asked, given.clients, given.requests, slow))
                print(json.dumps({"path": path, "clients": given.clients, "slow clients": slow, "ms": found}), flush=True)
        before = resident(pid)
        asyncio.run(load(address, "next-words", {"run": name, **QUESTIONS["next-words"]}, 8, given.flat))
        print(
            json.dumps({"requests": given.flat, "MB before": round(before, 1), "MB after": round(resident(pid), 1)}), flush=True
        )
    print(json.dumps({"batch, ms a text": batches(given.run)}))


if __name__ == "__main__":
    main()
