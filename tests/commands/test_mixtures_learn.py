"""Mixtures learn under Adam, whatever K and the rate: they do not stay where only the frequencies of words are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit.data.prepared import PreparedData
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.measure import unigram_tally
from sememekit.prepare.settings import PreprocessSettings

WORDS = 800


def write_zipf(folder: Path, tokens: int) -> None:
    """Lines of 20 words: half the time the fixed follower of the word before, otherwise a draw by Zipf's law."""
    source = np.random.default_rng(3)
    follower = source.permutation(WORDS)
    shares = 1.0 / np.arange(1, WORDS + 1)
    folder.mkdir()
    for split, size in (("train", tokens), ("valid", tokens // 10), ("test", 200)):
        drawn, follows = source.choice(WORDS, size, p=shares / shares.sum()), source.random(size) < 0.5
        text, before = [], 0
        for word, keeps in zip(drawn.tolist(), follows.tolist(), strict=True):
            before = int(follower[before]) if keeps else word
            text.append(f"w{before}")
        lines = (" ".join(text[begin : begin + 20]) for begin in range(0, size, 20))
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def zipf(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    folder = tmp_path_factory.mktemp("zipf")
    write_zipf(folder / "text", 40_000)
    preprocess("plain", folder / "text", folder / "data", PreprocessSettings(min_count=1, segmenter="none"))
    return PreparedData.open(folder / "data")


def reached(
    data: PreparedData, out: Path, decoder: dict[str, Any], rate: float, task: dict[str, Any] | None = None
) -> tuple[float, float]:
    """Validation perplexity after two epochs, and the perplexity of word frequencies."""
    table = {
        "data": {"path": str(data.folder)},
        "task": {"embedding_size": 32, **(task or {})},
        "encoder": {"hidden_size": 32, "num_layers": 1},
        "decoder": decoder,
        "optimizer": {"name": "adam", "learning_rate": rate},
        "schedule": {"epochs": 2},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
    }
    best = train(table, out).best_valid
    assert best is not None
    frequencies = unigram_tally(data.tokens("train"), data.tokens("valid"), len(data.vocabulary)).perplexity
    return best, frequencies


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("rate", "share"), [(0.002, 0.75), (0.01, 0.5)])
@pytest.mark.parametrize("decoder", [("mos", 3), ("mos", 15), ("moc", 15)], ids=str)
def test_mixtures_learn_under_adam(
    zipf: PreparedData, tmp_path: Path, decoder: tuple[str, int], rate: float, share: float
) -> None:
    name, components = decoder
    found, frequencies = reached(zipf, tmp_path / "run", {"name": name, "num_components": components}, rate)
    assert found < share * frequencies, (found, frequencies)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_from_zero_they_do_not(zipf: PreparedData, tmp_path: Path) -> None:
    """Short word vectors do not learn either, hence the defaults. Longer vectors alone are enough on this text."""
    decoder = {"name": "mos", "num_components": 15, "bias_start": "zero"}
    found, frequencies = reached(zipf, tmp_path / "run", decoder, 0.01, {"spread": 0.1})
    assert found > 0.75 * frequencies, (found, frequencies)
