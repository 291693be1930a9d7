"""Words that models score in a CPU second, beside an n-gram model of KenLM on the same prepared text.

    python benchmarks/perplexity_speed.py [RUN...] [--split test] [--order 3] [--results FILE]

All runs have the data of the first. KenLM (pip install kenlm) reads an ARPA file; this script writes one with interpolated
absolute discounting (lower orders by types, as Kneser and Ney 1995). Best of three, one thread.
"""

import argparse
import json
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from measuring import best_times

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.files import to_json
from sememekit.runs.run import Run

DISCOUNT = 0.75


def main() -> None:
    """Print a JSON object for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, default=[Path("quickstart/softmax"), Path("quickstart/sdlm")])
    parser.add_argument("--split", default="test")
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = measured(given.runs, given.split, given.order)
    print(json.dumps(found, ensure_ascii=False))
    if given.results:
        given.results.write_bytes(to_json(found))


def measured(runs: list[Path], split: str, order: int, repeats: int = 3) -> dict[str, dict[str, float]]:
    """Return the perplexity and the words a CPU second of each model; the models take turns."""
    import kenlm  # in no extra of ours

    data = Run.open(runs[0], device="cpu").data()
    words = {name: [data.vocabulary.token(number) for number in data.tokens(name).tolist()] for name in ("train", split)}
    text, tokens = " ".join(map(spelled, words[split])), len(words[split])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.arpa"
        file.write_text(arpa(words["train"], order), encoding="utf-8")
        ngrams = kenlm.Model(str(file))
    scored: dict[str, Callable[[], float]] = {
        f"KenLM, order {order}": lambda: 10 ** (-ngrams.score(text, bos=False, eos=False) / tokens)
    }
    for path in runs:
        scored[path.name] = partial(perplexity, Run.open(path, device="cpu"), split)
    found = {name: {"perplexity": score(), "tokens": tokens} for name, score in scored.items()}
    for name, seconds in best_times(scored, repeats).items():
        found[name]["tokens_per_cpu_second"] = tokens / seconds
    return found


def perplexity(run: Run, split: str) -> float:
    return evaluate_ppl(run, split=split).perplexity


def spelled(word: str) -> str:
    """Return a word as it can stand in the ARPA file, where ``<unk>`` is any unknown word."""
    return "<unknown>" if word == "<unk>" else word


def arpa(words: list[str], order: int) -> str:
    """Return a model of the words: p(w | h) = (c(h w) - D) / c(h) + b(h) p(w | shorter h), lower orders from types."""
    words = [spelled(word) for word in words]
    counts = [Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for n in range(1, order + 1)]
    for n in range(order - 2, -1, -1):  # how many words stand before, instead of how often
        counts[n] = Counter([tuple(words[: n + 1]), *(gram[1:] for gram in counts[n + 1])])
    sums: dict[tuple[str, ...], int] = defaultdict(int)
    types: dict[tuple[str, ...], int] = defaultdict(int)
    for level in counts:
        for gram, count in level.items():
            sums[gram[:-1]] += count
            types[gram[:-1]] += 1
    share: dict[tuple[str, ...], float] = {}
    lines = ["\\data\\", *(f"ngram {n}={len(level) + 3 * (n == 1)}" for n, level in enumerate(counts, start=1))]
    for n, level in enumerate(counts, start=1):
        lines += ["", f"\\{n}-grams:", *(["-99\t<s>\t0", "-99\t</s>", "-7\t<unk>"] if n == 1 else [])]
        for gram, count in level.items():
            before = gram[:-1]
            lower = share[gram[1:]] if n > 1 else 1.0 / len(counts[0])
            share[gram] = (count - DISCOUNT) / sums[before] + DISCOUNT * types[before] / sums[before] * lower
            weight = DISCOUNT * types[gram] / sums[gram] if gram in types else 1.0
            lines.append(
                f"{math.log10(share[gram]):.6f}\t{' '.join(gram)}" + (f"\t{math.log10(weight):.6f}" if n < order else "")
            )
    return "\n".join([*lines, "", "\\end\\", ""])


if __name__ == "__main__":
    main()
