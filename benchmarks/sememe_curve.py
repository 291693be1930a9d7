"""Perplexity of a softmax, and of SDLM with HowNet, the open lexicon and random labels, by the size of the training text.

    python benchmarks/sememe_curve.py --corpora CORPORA --out OUT [--results FILE] [--sizes N ...] [--seeds N ...]

CORPORA has the released People's Daily and the lexicons at the paths of the data page. All sizes have the vocabulary of the
whole text, one validation text and one test text, so that a word without a training token is predicted as any other. Dropout
and rate are the same for all models and sizes; the best epoch by validation counts. A cell that has a result is not trained
again, so the same command continues. FILE has the perplexity of each cell and of its bands of training counts, as
``evaluate-ppl --by frequency`` has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from measuring import Cell, cell_arguments, fill, train_to_the_end

from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings

LINES: Final = {10_000: 360, 30_000: 1_080, 75_000: 2_700, 150_000: 5_400, 300_000: 10_800, 735_000: 26_386}
"""Tokens of the training text, about -> its first lines."""
EPOCHS: Final = {10_000: 20, 30_000: 14, 75_000: 10, 150_000: 8, 300_000: 6, 735_000: 5}
HELD_OUT: Final = {"valid": 100, "test": 1000}
"""Lines of the other splits."""
HOWNET: Final = (
    "hownet2000:{}/hownet/hownet2000/glossary.dat",
    "list:{}/hownet/thunlp-zh/Character-enhanced-Sememe-Prediction.hownet.txt",
)
MODELS: Final = {
    "softmax": (),
    "sdlm-hownet": HOWNET,
    "sdlm-open": ("open",),
    "sdlm-random": tuple(f"random:{source}" for source in HOWNET),
}
"""Model -> the lexicons of its graph; none for a softmax."""
DROPOUT: Final = 0.4


def main() -> None:
    """Train and measure every cell that has no result yet."""
    parser = cell_arguments(__doc__ or "", "curve")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(LINES))
    given = parser.parse_args()
    prepare(given.corpora, given.out, given.sizes)
    fill(given.results, cells(given.out, given.sizes, given.seeds))


def cells(out: Path, sizes: list[int], seeds: list[int]) -> Iterator[Cell]:
    """Yield each size, model and seed with its measurement, which trains it first."""
    for seed, size, model in product(seeds, sizes, MODELS):
        yield f"{size} {model}", seed, partial(measured, out, size, model, seed)


def measured(out: Path, size: int, model: str, seed: int) -> dict[str, Any]:
    """Train a model, and measure its perplexity on test, in all and by training counts."""
    found = evaluate_ppl(trained(out, size, model, seed), by=["frequency"], device="cpu")
    assert found.groups is not None
    bands = {one.name: {"perplexity": one.perplexity, "tokens": one.tokens} for one in found.groups["frequency"]}
    return {"perplexity": found.perplexity, "tokens": found.tokens, "bands": bands}


def prepare(corpora: Path, out: Path, sizes: list[int]) -> None:
    """Write the text of each size, all with the vocabulary of the whole, and the graphs of that vocabulary."""
    released, whole = corpora / "peoples-daily-sdlm" / "renmin_hownet", out / "whole"
    for folder, lines in ((whole, max(LINES.values())), *((out / f"data-{size}", LINES[size]) for size in sizes)):
        if folder.exists():
            continue
        texts = {split: folder.with_name(f"{folder.name}-{split}.txt") for split in ("train", *HELD_OUT)}
        out.mkdir(parents=True, exist_ok=True)
        for split, text in texts.items():
            kept = (released / f"{split}.txt").read_text("utf-8").splitlines()[: {"train": lines, **HELD_OUT}[split]]
            text.write_text("\n".join(kept) + "\n", "utf-8")
        settings = PreprocessSettings(segmenter="none", end_of_sentence=False, vocabulary=None if folder == whole else whole)
        preprocess("plain", None, folder, settings, files={split: [text] for split, text in texts.items()})
    for model, sources in MODELS.items():
        if sources and not (out / f"{model}.graph").exists():
            build_sememe_graph([source.format(corpora) for source in sources], whole, out / f"{model}.graph", seed=1)


def trained(out: Path, size: int, model: str, seed: int) -> Path:
    """Return the folder of a finished training."""
    run, sampled = out / f"{size}-{model}-{seed}", {"tied": True, "bias_start": "zero", "samples": 400}
    sdlm = {"name": "sdlm", "preset": "identity", "num_bases": 2, "tokens_per_block": 128}
    dropout = {"input_dropout": DROPOUT, "output_dropout": DROPOUT}
    table: dict[str, Any] = {
        "data": {"path": str(out / f"data-{size}")},
        "task": {
            "name": "language_model",
            "embedding_size": 128,
            "spread": 0.4,
            "batch_size": 10,
            "chunk_length": 35,
            **dropout,
        },
        "encoder": {"name": "lstm", "hidden_size": 128, "num_layers": 2, "dropout": DROPOUT},
        "decoder": {**sampled, **(sdlm if MODELS[model] else {"name": "softmax"})},
        "optimizer": {"name": "adam", "learning_rate": 0.008, "clip": 1.0},
        "schedule": {"epochs": EPOCHS[size], "factor": 1.0, "decay": 0.03 ** (1 / EPOCHS[size])},
        "run": {"threads": 1, "device": "cpu", "seed": seed, "stall_epochs": 0},
    }
    if MODELS[model]:
        table["graph"] = {"path": str(out / f"{model}.graph")}
    return train_to_the_end(table, run)


if __name__ == "__main__":
    main()
