"""The measurements of ``gpu.py``: it runs each step in a process of its own, so that it imports no torch itself."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DTYPES = ("float32", "tf32", "bfloat16")
MODELS = {"medium": "tied-medium", "awd": "awd"}
"""A model -> how the names of its recipes begin."""
LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("softmax", {}),
    "sdlm": ("sdlm", {}),
    "sdlm-sampled": ("sdlm", {"samples": 1000}),
    "self-organized": ("softmax", {"name": "self_organized"}),
    "mos": ("mos", {}),
}
"""A side -> how the name of its recipe ends, and what replaces or joins the recipe's output layer."""


def record(options: argparse.Namespace, step: str, part: str, values: dict[str, Any]) -> None:
    """Append a line, which a later crash cannot take back."""
    line = json.dumps({"benchmark": "gpu", "step": step, "part": part, "rehearsal": options.rehearse, **values})
    with (options.out / "gpu.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def recorded(options: argparse.Namespace) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(options.out / "gpu.jsonl")]


def lines_of(path: Path) -> list[str]:
    """The finished lines of a file that another process may be writing; none where it is not there."""
    return path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines() if path.is_file() else []


def synchronized(function: Callable[[], Any], count: int) -> Callable[[], None]:
    """``function`` ``count`` times; the clock must not stop before the device has."""
    import torch

    def run() -> None:
        for _ in range(count):
            function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return run


def seconds_of(functions: dict[str, Callable[[], Any]], count: int, repeats: int = 5) -> dict[str, float]:
    """Median seconds of one call of each function, interleaved, in blocks of ``count`` calls."""
    from measuring import times

    blocks = {name: synchronized(function, count) for name, function in functions.items()}
    return {name: statistics.median(taken) / count for name, taken in times(blocks, repeats, time.perf_counter).items()}


def machine(options: argparse.Namespace, part: str) -> dict[str, Any]:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [re.split(r"[<>=;\[ ]", need)[0] for need in project["dependencies"]]
    missing = []
    for name in (*needed, "pytest", "pytest-timeout", "hypothesis"):
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    import torch

    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} sees no CUDA device; --rehearse runs all steps on the CPU")
    size, width = (1 << 28, 8192) if device.type == "cuda" else (1 << 20, 256)
    source, target = torch.randn(size, device=device), torch.empty(size, device=device)
    left, right = torch.randn(2, width, width, device=device)
    small = torch.zeros(1, device=device)
    rates = {"bytes_per_second": 2 * 4 * size / seconds_of({"copy": lambda: target.copy_(source)}, 5)["copy"]}
    flops: dict[str, float] = {}
    for dtype in DTYPES:
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        sides = [side.bfloat16() if dtype == "bfloat16" else side for side in (left, right)]
        flops[dtype] = 2 * width**3 / seconds_of({"product": lambda sides=sides: sides[0] @ sides[1]}, 3)["product"]
    cuda = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    return {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "device": cuda.name if cuda else "cpu",
        "device_megabytes": cuda.total_memory / 1e6 if cuda else None,
        "missing_packages": missing,
        **rates,
        "flops_per_second": flops,
        "seconds_of_a_small_kernel": seconds_of({"add": lambda: small.add_(1.0)}, 100)["add"],
    }


def tests(options: argparse.Namespace, part: str) -> dict[str, Any]:
    """The tests marked ``gpu``, or in a rehearsal those beside the first of them that need none."""
    files = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "@pytest.mark.gpu" in path.read_text("utf-8"))
    chosen = [str(path) for path in files]
    which = ["-m", "gpu", *chosen]
    if options.rehearse:
        which = ["-m", "not gpu and not slow", *(name for name in chosen if name.endswith("test_devices.py"))]
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-W", "default", *which]
    begin, names, counts = time.monotonic(), list[str](), dict[str, int]()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if result := re.match(r"(\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", line):
                counts[result[2].lower()] = counts.get(result[2].lower(), 0) + 1
                names += [result[1]] if result[2] in ("FAILED", "ERROR") else []
            if time.monotonic() - begin > options.part_limit - 5:
                names.append("stopped at the time limit")
                process.kill()
                break
    return {"files": len(files), **counts, "failures": names, "exit_code": process.wait()}


def vocabulary_and_graph(options: argparse.Namespace) -> tuple[Any, Any]:
    """Words that fall off as 1 / rank, with senses and sememes as many as in the released graph, drawn at random."""
    from sdlm import random_graph
    from self_organized import zipf

    vocabulary = zipf(options.words)
    return vocabulary, random_graph(num_sememes=60 if options.rehearse else 1742, vocabulary=vocabulary)[1]


def plan_of(options: argparse.Namespace, model: str, layer: str, dropout: bool = True) -> Any:
    """The plan of a recipe with the output layer of a side, with or without that layer's dropout; small in a rehearsal."""
    from sememekit.config.recipes import load_recipe
    from sememekit.runs.plan import read_plan

    ending, change = LAYERS[layer]
    table = dict(load_recipe(f"sdlm/{MODELS[model]}-{ending}"))
    decoder = change if "name" in change else {**table["decoder"], **change}
    decoder = {name: value for name, value in decoder.items() if dropout or not name.endswith("_dropout")}
    if options.rehearse:
        table["task"] = {**table["task"], "embedding_size": 16, "batch_size": 4, "chunk_length": 6}
        table["encoder"] = {**table["encoder"], "hidden_size": 16 if model == "medium" else 24}
        decoder |= {"samples": 20} if "samples" in decoder else {}
    table |= {"decoder": decoder, "run": {"device": options.device}}
    return read_plan({key: table[key] for key in ("task", "encoder", "decoder", "optimizer", "run")}, f"{model} {layer}")


def floor(plan: Any, model: Any, target: Any, graph: Any) -> dict[str, float]:
    """GFLOP of a training step and megabytes that it must move at least, by the formula of this file's docstring."""
    import numpy as np

    layer, num_tokens = model.decoder, target.numel()
    num_words, size = layer.words.weight.shape
    width, num_edges = model.encoder.output_size, int(np.diff(graph.set_offsets)[graph.sense_set].sum())
    settings, name = plan.decoder.settings, plan.decoder.name
    rows = num_words
    if samples := getattr(settings, "samples", 0):
        rows = min(num_words, samples + len(target.unique()))
    products = {
        "softmax": lambda: rows * size,
        "sdlm": lambda: (
            settings.num_bases * (rows * size + width * size + num_edges * rows / num_words) + graph.num_sememes * width
        ),
        "mos": lambda: settings.num_components * (rows * size + width * size + width),
        "self_organized": lambda: size * (2 * width + layer.num_clusters + _mean_group(layer, target)),
    }[name]()
    encoder = sum(weight.numel() for weight in model.encoder.parameters() if weight.dim() > 1)
    numbers = sum(weight.numel() for weight in model.parameters())
    sparse = rows < num_words and plan.optimizer.name == "sgd" and not plan.optimizer.weight_decay
    if sparse:  # only the rows that were looked up have gradients
        numbers -= (num_words - rows) * size
    return {"gigaflop": 6 * num_tokens * (encoder + products) / 1e9, "megabytes": 28 * numbers / 1e6}


def _mean_group(layer: Any, target: Any) -> float:
    return float(layer.groups.sizes[layer.groups.group_of[target.flatten()]].double().mean())


class TrainingStep:
    """One step of a plan's model on a fixed batch, as the trainer takes it."""

    def __init__(self, plan: Any, vocabulary: Any, graph: Any) -> None:
        import torch
        from self_organized import draw

        from sememekit.runs.build import build_task
        from sememekit.training.optimizers import make_optimizer

        self.plan, self.device, self.dtype = plan, torch.device(plan.run.device), "float32"
        needs_graph = plan.decoder.name == "sdlm"
        self.model = build_task(plan, vocabulary, graph if needs_graph else None).to(self.device).train()
        self.optimizer = make_optimizer(plan.optimizer, self.model.parameters())
        task = plan.task.settings
        self.tokens = draw(vocabulary, (task.chunk_length + 1, task.batch_size)).to(self.device)
        self.start = self.model.encoder.start(task.batch_size)
        self.number = 0

    def take(self, dtype: str) -> None:
        """Set the precision of the steps that follow."""
        from sememekit.runs.build import prepare_torch

        self.dtype = dtype
        prepare_torch(self.plan.run.model_copy(update={"dtype": dtype}))

    def __call__(self) -> None:
        from sememekit.training import autocast
        from sememekit.training.optimizers import clip_gradients, sparse_lookups

        self.optimizer.zero_grad(set_to_none=True)
        with sparse_lookups(self.model, self.optimizer):
            with autocast(self.device, self.dtype):
                loss = self.model.loss(self.tokens, self.start)
            objective = loss.nats / loss.count
            (objective if loss.penalty is None else objective + loss.penalty).backward()
        clip_gradients([*self.model.parameters()], self.plan.optimizer.clip)
        self.optimizer.step()
        self.number += 1
        self.model.after_step(self.number)

    def peak_megabytes(self) -> float | None:
        """Peak memory of a step on a GPU, weights included."""
        import torch

        if self.device.type != "cuda":
            return None
        torch.cuda.reset_peak_memory_stats()
        synchronized(self, 1)()
        return torch.cuda.max_memory_allocated() / 1e6

    def kernels(self, count: int = 3, most: int = 12) -> dict[str, Any]:
        """The kernels that take most of a step: name, calls and microseconds a step; and the sum over all."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        on_gpu = self.device.type == "cuda"
        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        with profile(activities=kinds) as profiler:
            synchronized(self, count)()
        field = "self_device_time_total" if on_gpu else "self_cpu_time_total"
        events = [
            event
            for event in profiler.key_averages()
            # A launch and the range of an annotation have the time of their kernels again.
            if not on_gpu or (event.device_type == torch.autograd.DeviceType.CUDA and not event.is_user_annotation)
        ]
        events.sort(key=lambda event: -getattr(event, field))
        return {
            "device_seconds_per_step": sum(getattr(event, field) for event in events) / count / 1e6,
            "kernels_per_step": sum(event.count for event in events) / count,
            "top": [[event.key[:70], event.count / count, getattr(event, field) / count] for event in events[:most]],
        }


def steps(options: argparse.Namespace, part: str) -> dict[str, Any]:
    from sememekit.runs.build import prepare_torch

    model, layer = part.split()
    plan = plan_of(options, model, layer)
    prepare_torch(plan.run)
    step = TrainingStep(plan, *options.words_and_graph)
    count, repeats = (1, 2) if options.rehearse else (5, 5)
    result: dict[str, Any] = {"words": options.words, "tokens": step.tokens[1:].numel(), "seconds": {}, "peak_megabytes": {}}
    for dtype in DTYPES:
        step.take(dtype)
        result["seconds"][dtype] = seconds_of({dtype: step}, count, repeats)[dtype]
        result["peak_megabytes"][dtype] = step.peak_megabytes()
    step.take("float32")
    least = floor(plan, step.model, step.tokens[1:], options.words_and_graph[1])
    rates = [line for line in recorded(options) if "bytes_per_second" in line][-1]
    moved = least["megabytes"] * 1e6 / rates["bytes_per_second"]
    floors = {dtype: max(least["gigaflop"] * 1e9 / rate, moved) for dtype, rate in rates["flops_per_second"].items()}
    shares = {dtype: floors[dtype] / seconds for dtype, seconds in result["seconds"].items()}
    return {**result, "floor": {**least, "seconds": floors}, "share_of_floor": shares, "profile": step.kernels()}


def compiled(options: argparse.Namespace, part: str) -> dict[str, Any]:
    """Loss and gradients of an output layer of the medium model, without dropout, so that both sides agree."""
    import torch

    from sememekit.runs.build import prepare_torch

    plan = plan_of(options, "medium", part, dropout=False)
    prepare_torch(plan.run)
    step = TrainingStep(plan, *options.words_and_graph)
    layer, target = step.model.decoder, step.tokens[1:]
    width = step.model.encoder.output_size
    hidden = (torch.randn(*target.shape, width, device=step.device) * 0.3).requires_grad_()
    backend = "eager" if options.rehearse else "inductor"
    forms: dict[str, Callable[..., Any]] = {"eager": layer.nll, "compiled": torch.compile(layer.nll, backend=backend)}

    def pass_through(form: str) -> Any:
        hidden.grad = None
        layer.zero_grad(set_to_none=True)
        torch.manual_seed(1)  # sampled words
        nats = forms[form](hidden, target)
        nats.mean().backward()
        return nats.detach()

    expected = pass_through("eager")
    begin = time.perf_counter()
    difference = (pass_through("compiled") - expected).abs().max().item()
    compiling = time.perf_counter() - begin
    sides = {form: lambda form=form: pass_through(form) for form in forms}
    taken = seconds_of(sides, *((1, 2) if options.rehearse else (5, 5)))
    ratio = taken["compiled"] / taken["eager"]
    values = {"seconds": taken, "compiled_over_eager": ratio, "seconds_of_compilation": compiling}
    return {"backend": backend, **values, "largest_difference_of_nll": difference}


def made_up_data(options: argparse.Namespace, folder: Path) -> None:
    """Prepared data of a text in which half of the words follow from the word before, and the others come by Zipf's law."""
    import numpy as np

    from sememekit.jobs.preprocess import preprocess
    from sememekit.prepare.settings import PreprocessSettings

    num_words, num_tokens = (50, 4000) if options.rehearse else (13_477, 1_000_000)
    generator = np.random.default_rng(1)
    share = 1.0 / np.arange(1, num_words + 1)
    words = generator.choice(num_words, size=num_tokens, p=share / share.sum())
    follows, next_word = generator.random(num_tokens) < 0.5, generator.permutation(num_words)
    for place in range(1, num_tokens):
        if follows[place]:
            words[place] = next_word[words[place - 1]]
    lines = words.reshape(-1, 20)
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(" ".join(f"w{word}" for word in line) + "\n" for line in lines.tolist())
    (folder / "text.txt").write_text(text, encoding="utf-8")
    preprocess("plain", folder / "text.txt", folder / "data", PreprocessSettings(min_count=1))


def training(options: argparse.Namespace, part: str) -> None:
    """Become the program that trains; what is there already is used again."""
    folder: Path = options.training
    data, graph, run = options.data or folder / "data", options.graph or folder / "random.graph", folder / "run"
    if options.data is None and not (data / "signature.json").is_file():
        made_up_data(options, folder)
    if options.graph is None and not graph.is_file():
        from sdlm import random_graph

        from sememekit.data.prepared import PreparedData

        random_graph(num_sememes=60 if options.rehearse else 1742, vocabulary=PreparedData.open(data).vocabulary)[1].save(graph)
    words = ["train", "--out", str(run), "--data", str(data), "--graph", str(graph), "--device", options.device, "--quiet"]
    if (run / "plan.json").is_file():
        words.append("--resume")
    else:
        words += ["--recipe", "sdlm/tied-medium-sdlm", "--set", "run.checkpoint_every=500"]
        small = ("task.embedding_size=16", "encoder.hidden_size=16", "task.chunk_length=5", "run.report_every=5")
        words += [word for setting in small if options.rehearse for word in ("--set", setting)]
    os.execv(sys.executable, [sys.executable, "-m", "sememekit", *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, kind in {"step": str, "parts": str, "device": str, "words": int, "part-limit": float}.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    for name in ("out", "training", "data", "graph"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    if options.step in ("steps", "compiled"):
        options.words_and_graph = vocabulary_and_graph(options)
    for part in options.parts.split("|"):
        if values := globals()[options.step](options, part):
            record(options, options.step, part, values)


if __name__ == "__main__":
    main()
