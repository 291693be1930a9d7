"""Accuracy of classifiers on words that training never had, read as ``<unk>`` or by their sememes.

    python benchmarks/open_vocabulary.py --corpora CORPORA --out OUT [--results FILE] [--sets sst2 nli] [--seeds N ...]

Rare words are out of the vocabulary (``--min-count``), so that the training text has ``<unk>`` in their places. Three
classifiers learn from it: a BiLSTM with sememes inside its cells, the same with random labels in place of sememes, and one
without. ``predict`` labels the test text without and with ``--open-vocabulary``, and with the words of the lexicon by their
characters alone (``bare:``), which is the control. A cell that has a result is not trained again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from measuring import Cell, cell_arguments, fill, train_to_the_end

from sememekit.analysis.predict import predict
from sememekit.config import load_recipe
from sememekit.jobs.build_sememe_graph import build_sememe_graph
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.run import Run

LEXICON: Final = "table:{}/hownet/english/en_wordnet_sememes.tsv.xz"
LEMMAS: Final = "{}/hownet/english/lemmatization.txt"
VECTORS: Final = "{}/glove/glove.6B.50d.subset.txt.xz"
RECIPES: Final = {
    "sst2": {"plain": "ours/sst2-tuned", "sememes": "ours/sst2-tuned-cell", "random labels": "ours/sst2-tuned-cell"},
    "nli": {"plain": "ours/nli17k-bilstm", "sememes": "ours/nli17k-bilstm-cell", "random labels": "ours/nli17k-bilstm-cell"},
}
MIN_COUNT: Final = 20


def main() -> None:
    """Train and measure every cell that has no result yet."""
    parser = cell_arguments(__doc__ or "", "open-vocabulary")
    parser.add_argument("--sets", nargs="*", default=list(RECIPES))
    given = parser.parse_args()
    fill(given.results, cells(given.corpora, given.out, given.sets, given.seeds))


def cells(corpora: Path, out: Path, sets: list[str], seeds: list[int]) -> Iterator[Cell]:
    """Yield each model and seed with its measurement, which trains it first."""
    for dataset in sets:
        data, file, labels = prepared(corpora, out, dataset)
        for seed, model in product(seeds, RECIPES[dataset]):
            run = partial(trained, corpora, out, dataset, model, data, seed)
            yield (
                f"{dataset} {model}",
                seed,
                partial(both, run, file, labels, lexicon_of(model, corpora), LEMMAS.format(corpora)),
            )


def both(run: Callable[[], Path], file: Path, labels: list[str], lexicon: str, lemmas: str) -> dict[str, Any]:
    """Train a model, and measure it without and with an open vocabulary, and with one of characters alone."""
    folder = run()
    opened, bare = (
        measured(folder, file, labels, open_vocabulary=[one], lemmas=lemmas) for one in (lexicon, f"bare:{lexicon}")
    )
    return {"unknown": measured(folder, file, labels), "open": opened, "characters": bare}


def lexicon_of(model: str, corpora: Path) -> str:
    """Return the source of senses: sememes, or as many random labels."""
    return f"{'random:' if model == 'random labels' else ''}{LEXICON.format(corpora)}"


def prepared(corpora: Path, out: Path, dataset: str) -> tuple[Path, Path, list[str]]:
    """Prepared data, and the test text with its labels."""
    data, file = out / dataset, out / f"{dataset}-test.tsv"
    out.mkdir(parents=True, exist_ok=True)
    settings = PreprocessSettings(min_count=MIN_COUNT)
    if dataset == "sst2":
        rows = [line.rsplit("\t", 1) for line in (corpora / "sst2/test.tsv").read_text("utf-8").split("\n") if line.strip()]
        texts, labels = [text for text, _ in rows], [("negative", "positive")[int(label)] for _, label in rows]
        source, files = corpora / "sst2", {}
    else:
        snli, source = corpora / "snli", None
        lines = {name: (snli / name).read_text("utf-8").splitlines() for name in _names("dev", "test")}
        cut = {"train": slice(0, 8842), "dev": slice(-1000, None), "test": slice(None)}
        for split, kept in cut.items():
            for side in ("s1", "s2", "labels"):
                chosen = lines[f"{side}.{'test' if split == 'test' else 'dev'}"][kept]
                (out / f"{side}.{split}").write_text("\n".join(chosen) + "\n", "utf-8")
        texts, labels = ["\t".join(pair) for pair in zip(lines["s1.test"], lines["s2.test"], strict=True)], lines["labels.test"]
        revised = [snli / "cad-nli" / f"{name}.train.tsv" for name in ("original", "revised_combined")]
        files = {"train": [out / "s1.train", *revised], "valid": [out / "s1.dev"], "test": [out / "s1.test"]}
    file.write_text("\n".join(texts) + "\n", "utf-8")
    if not data.exists():
        preprocess(dataset, source, data, settings, files=files)
    return data, file, labels


def _names(*splits: str) -> list[str]:
    return [f"{side}.{split}" for split in splits for side in ("s1", "s2", "labels")]


def trained(corpora: Path, out: Path, dataset: str, model: str, data: Path, seed: int) -> Path:
    """Return the folder of a finished training."""
    run = out / f"{dataset}-{model.replace(' ', '-')}-{seed}"
    table = load_recipe(RECIPES[dataset][model])
    table["data"] = {"path": str(data)}
    table["task"]["vectors"] = VECTORS.format(corpora)
    table["run"] = {**table.get("run", {}), "threads": 1, "device": "cpu", "seed": seed, "stall_epochs": 0}
    if model != "plain":
        graph = out / f"{dataset}-{model.replace(' ', '-')}.graph"
        if not graph.exists():
            build_sememe_graph([lexicon_of(model, corpora)], data, graph, lemmas=LEMMAS.format(corpora), seed=1)
        table["graph"] = {"path": str(graph)}
    return train_to_the_end(table, run)


def measured(run: Path, file: Path, labels: list[str], **lexicons: Any) -> dict[str, float]:
    """Accuracy, mean nats of the right label, and how many words the lexicon gave."""
    found = predict(Run.open(run, device="cpu"), file, **lexicons)
    rows = list(found)
    kept = [(row, label) for row, label in zip(rows, labels, strict=True) if label in row.probabilities]
    right = sum(row.label == label for row, label in kept)
    nats = -sum(math.log(row.probabilities[label]) for row, label in kept)
    return {"accuracy": right / len(kept), "nats": nats / len(kept), "texts": len(kept), "added": len(found.added)}


if __name__ == "__main__":
    main()
