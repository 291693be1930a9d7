"""The endpoint under load: latency of one client and of fifty, slow clients beside them, memory, and what batches would give.

    python benchmarks/serve_load.py [RUN] [--clients 50] [--requests 1000] [--flat 10000] [--against CHECKOUT]

RUN is a language model (default: quickstart/sdlm). A server is started on a free port of this machine with one thread.
``keystroke`` is one client that types a context: the answer has ten words, their senses and twelve sememes. With ``--against``
the server of another checkout is asked in between. ``page`` is the same in Chromium, until the answer is drawn. ``load`` is of
clients that ask at once, each the next request when its answer is there: each another text, or all the same one; also while
twenty clients send a request a byte a second. ``memory`` is the server's memory before and after many requests. ``batch``
compares eight texts scored together with eight alone: seconds a text, and how far the nats move. Milliseconds are on the clock
of the client; ``computed`` is what the server spent. Prints one JSON object a line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
WORDS = ["去年", "美国", "贸易", "逆差", "继续", "增长", "，", "中国", "政府", "认为"]
FIELDS = {"next-words": "context", "score": "text"}
ROUNDS = 3


@contextmanager
def server(run: Path, checkout: Path = ROOT) -> Iterator[tuple[str, int]]:
    """Start the command of a checkout on a run; its address and process id."""
    command = [sys.executable, "-m", "sememekit", "serve", str(run.resolve()), "--port", "0", "--no-browser", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=checkout) as process:
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


def say(measure: str, **values: Any) -> None:
    print(json.dumps({"measure": measure, **values}, ensure_ascii=False), flush=True)


def processor_seconds(pid: int) -> float:
    """Seconds that a process has computed, which other work on the machine moves least."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def typed(address: str, run: str, pid: int, times: int) -> tuple[list[float], float]:
    """One client types a context, as the page asks: milliseconds of each answer, and what the server computed."""
    with httpx2.Client(base_url=address) as client:

        def ask(number: int) -> float:
            begin = time.perf_counter()
            client.post("/v1/explain", json={"run": run, "text": " ".join(WORDS[:number])}).raise_for_status()
            return 1000 * (time.perf_counter() - begin)

        numbers = range(1, len(WORDS) + 1)
        for number in numbers:  # the first requests open the segmenter
            ask(number)
        before = processor_seconds(pid)
        taken = [ask(number) for _ in range(times) for number in numbers]
        return taken, 1000 * (processor_seconds(pid) - before)


def keystrokes(run: Path, against: Path | None) -> None:
    """Time answers of this checkout and of another one, interleaved."""
    trees = {"now": ROOT} if against is None else {"before": against.resolve(), "now": ROOT}
    taken: dict[str, list[float]] = {name: [] for name in trees}
    computed = dict.fromkeys(trees, 0.0)
    for _ in range(ROUNDS):
        for name, tree in trees.items():
            with server(run, tree) as (address, pid):
                found, spent = typed(address, run.resolve().name, pid, 20)
            taken[name] += found
            computed[name] += spent
    for name, found in taken.items():
        say("keystroke", checkout=name, ms=summary(found), computed=round(computed[name] / len(found), 1), answers=len(found))


TYPING = """
async (contexts) => {
  const area = document.getElementById("context"), taken = [];
  for (const context of contexts) {
    const drawn = new Promise((done) => new MutationObserver((_, watch) => {
      watch.disconnect();
      requestAnimationFrame(() => setTimeout(done));
    }).observe(document.querySelector(".columns"), { childList: true, subtree: true }));
    const begin = performance.now();
    area.value = context;
    area.dispatchEvent(new Event("input"));
    await drawn;
    taken.push(performance.now() - begin);
  }
  return taken;
}
"""


def page(address: str, run: str) -> None:
    """Milliseconds in Chromium from a keystroke until its answer is drawn."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser = None
    if browser is None:
        say("page", skipped="no Chromium, or no playwright")
        return
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        window = chromium.new_page()
        window.goto(f"{address}#view=context&run={run}")
        window.locator("tbody tr").first.wait_for(timeout=60_000)
        contexts = [" ".join(WORDS[:number]) for number in range(1, len(WORDS) + 1)]
        window.evaluate(TYPING, contexts)
        taken = [one for _ in range(10) for one in window.evaluate(TYPING, contexts)]
        chromium.close()
    say("page", ms=summary(taken), answers=len(taken))


async def load(
    address: str, path: str, run: str, clients: int, requests: int, slow: int = 0, same: bool = False
) -> dict[str, Any]:
    """Ask with ``clients`` at once, each again after its answer; each asks another text, or all ask the same one."""
    source = random.Random(1)
    taken: list[float] = []
    refused, left = 0, requests

    async def ask(client: httpx2.AsyncClient) -> None:
        nonlocal left, refused
        while left > 0:
            left -= 1
            words = WORDS[:6] if same else source.choices(WORDS, k=6)
            question = {"run": run, FIELDS[path]: " ".join(words)}
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
    return {"ms": summary(taken), "a second": round(requests / seconds, 1), "refused": refused}


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
    loaded = load_run(run, device="cpu")
    texts = [" ".join(WORDS[: 2 + number % 5]) for number in range(8)]
    best = {"alone": float("inf"), "together": float("inf")}
    for _ in range(20):
        begin = time.perf_counter()
        alone = [row.nats for one in texts for row in score(loaded, [one])]
        middle = time.perf_counter()
        together = [row.nats for row in score(loaded, texts)]
        end = time.perf_counter()
        best = {"alone": min(best["alone"], middle - begin), "together": min(best["together"], end - middle)}
    gap = max(abs(one - other) for one, other in zip(alone, together, strict=True) if one is not None and other is not None)
    return {
        **{name: round(1000 * seconds / len(texts), 2) for name, seconds in best.items()},
        "nats differ by": float(f"{gap:.2g}"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", default=Path("quickstart/sdlm"))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--flat", type=int, default=10_000)
    parser.add_argument("--against", type=Path, help="checkout whose server is asked in between")
    given = parser.parse_args()
    if not (given.run / "plan.json").is_file():
        print(json.dumps({"skipped": f"no run in {given.run}; make one with: sememekit quickstart"}))
        return
    load_average = [round(one, 1) for one in os.getloadavg()]
    say("machine", cores=os.cpu_count(), processor=processor(), python=platform.python_version(), load_average=load_average)
    keystrokes(given.run, given.against)
    with server(given.run) as (address, pid):
        name = given.run.resolve().name
        page(address, name)
        for path in FIELDS:
            for slow, same in ((0, False), (20, False), (0, True)):
                found = asyncio.run(load(address, path, name, given.clients, given.requests, slow, same))
                say("load", path=path, clients=given.clients, slow=slow, texts="one" if same else "different", **found)
        before = resident(pid)
        asyncio.run(load(address, "next-words", name, 8, given.flat))
        say("memory", requests=given.flat, before=round(before, 1), after=round(resident(pid), 1))
    say("batch", ms=batches(given.run))
    say("load average at the end", load_average=[round(one, 1) for one in os.getloadavg()])


def processor() -> str:
    """The name of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
