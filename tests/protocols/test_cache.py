"""The cache against its equation, one position after the other."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.protocols import cache
from sememekit.protocols.cache import CACHE_PRESETS, CacheGrid, CacheSettings, cache_settings, tune_cache, with_cache
from sememekit.tasks.language_model import LanguageModel
from tests.protocols.conftest import Make
from tests.small_run import Place, in_chunks

SETTINGS = CacheSettings(theta=0.7, weight=0.2, window=9)


def twin(task: LanguageModel, tokens: np.ndarray, settings: CacheSettings) -> list[float]:
    """Nats of each token of one column, by the equation: probabilities, not logarithms, and a list for a history."""
    task.eval()
    nats: list[float] = []
    history: list[tuple[torch.Tensor, int]] = []
    state = task.encoder.start(1)
    with torch.no_grad():
        for before, after in zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True):
            hidden, state = task.encoder.step(task.embedding(torch.tensor([before])), torch.tensor([before]), state)
            context = hidden[0]
            probability = float(task.decoder.log_probs(context)[after].exp())
            long_enough = len(history) > settings.window if settings.start == "full-window" else bool(history)
            if long_enough:
                window = history[-settings.window :]
                attention = torch.softmax(settings.theta * torch.stack([key @ context for key, _ in window]), dim=0)
                cached = sum(float(a) for a, (_, word) in zip(attention, window, strict=True) if word == after)
                probability = settings.weight * cached + (1 - settings.weight) * probability
            nats.append(-math.log(probability))
            history.append((context, after))
    return nats


def scored(task: LanguageModel, tokens: np.ndarray, settings: CacheSettings, length: int, columns: int = 1) -> torch.Tensor:
    chunks = list(with_cache(in_chunks(task, length).score(tokens, batch_size=columns), settings))
    return torch.cat([chunk.nats for chunk in chunks])


@pytest.mark.parametrize("start", ["history", "full-window"])
@pytest.mark.parametrize("length", [1, 4, 9, 10, 70])
def test_it_is_the_equation_whatever_the_chunks(place: Place, make: Make, start: str, length: int) -> None:
    """Chunks shorter than the window, as long as it and longer: no gap where one begins."""
    tokens, settings = place.data.tokens("test")[:60], SETTINGS.model_copy(update={"start": start})
    task = make()
    expected = torch.tensor(twin(task, tokens, settings), dtype=torch.float64)[:, None]
    torch.testing.assert_close(scored(task, tokens, settings, length), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoder", ["sdlm", "mos", "adaptive"])
def test_it_stands_on_any_output_layer(place: Place, make: Make, decoder: str) -> None:
    tokens, task = place.data.tokens("test")[:40], make(decoder)
    expected = torch.tensor(twin(task, tokens, SETTINGS), dtype=torch.float64)[:, None]
    torch.testing.assert_close(scored(task, tokens, SETTINGS, 7), expected, rtol=0, atol=1e-12)


def test_small_blocks_change_nothing(place: Place, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, task = place.data.tokens("test"), make()
    whole = scored(task, tokens, SETTINGS, 30)
    monkeypatch.setattr(cache, "BLOCK_ELEMENTS", 100)
    multiply, keys = torch.bmm, list[int]()
    monkeypatch.setattr(torch, "bmm", lambda rows, past: keys.append(past.shape[2]) or multiply(rows, past))
    torch.testing.assert_close(scored(task, tokens, SETTINGS, 30), whole, rtol=0, atol=1e-12)
    assert max(keys) == SETTINGS.window + 2, "a block has two rows, and their window alone"


def test_each_column_has_its_own_history(place: Place, make: Make) -> None:
    tokens, task = place.data.tokens("test")[:61], make()
    together = scored(task, tokens, SETTINGS, 8, columns=3)
    for column in range(3):
        alone = scored(task, tokens[20 * column : 20 * column + 21], SETTINGS, 8)
        torch.testing.assert_close(together[:, column], alone[:, 0], rtol=0, atol=1e-12)


def test_the_published_start_leaves_the_model_alone_until_more_than_a_window_is_read(place: Place, make: Make) -> None:
    tokens, task = place.data.tokens("test")[:40], make()
    plain = torch.cat([chunk.nats for chunk in task.score(tokens, batch_size=1)])
    late, early = (scored(task, tokens, SETTINGS.model_copy(update={"start": s}), 6) for s in ("full-window", "history"))
    torch.testing.assert_close(late[:10], plain[:10], rtol=1e-6, atol=0.0)
    assert (late[10:] != plain[10:]).all()
    assert early[0] == plain[0]
    assert (early[1:] != plain[1:]).all()
    torch.testing.assert_close(early[10:], late[10:])


def test_single_precision_is_near_double(place: Place, make: Make) -> None:
    tokens, task = place.data.tokens("test"), make()
    exact = scored(task, tokens, SETTINGS, 30)
    single = scored(task.float(), tokens, SETTINGS, 30)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(scored(task, tokens, SETTINGS, 30).double(), exact, rtol=0.1, atol=0.2)


def test_the_grid_is_what_each_setting_gives_alone(place: Place, make: Make) -> None:
    tokens, task = place.data.tokens("valid")[:80], make()
    grid = CacheGrid(thetas=(0.3, 1.0), weights=(0.1, 0.4), windows=(5, 30))
    points = tune_cache(in_chunks(task, 9).score(tokens, batch_size=1), grid)
    assert len(points) == 8
    assert [point.perplexity for point in points] == sorted(point.perplexity for point in points)
    for point in points:
        alone = math.exp(float(scored(task, tokens, point.settings, 70).mean()))
        assert point.perplexity == pytest.approx(alone, rel=1e-10)


def test_a_text_that_repeats_itself_is_easier_with_a_cache(place: Place, make: Make) -> None:
    tokens = np.tile(place.data.tokens("test")[:15], 6)
    task = make()
    plain = torch.cat([chunk.nats for chunk in task.score(tokens, batch_size=1)]).mean()
    assert scored(task, tokens, CacheSettings(theta=5.0, weight=0.4, window=30), 70).mean() < plain - 0.1


def test_a_task_without_contexts_is_refused(place: Place, make: Make) -> None:
    chunks = (replace(chunk, hidden=None) for chunk in make().score(place.data.tokens("test")))
    with pytest.raises(ConfigError, match=r"one context for each predicted word.*--cache"):
        list(with_cache(chunks, SETTINGS))


def test_presets_can_be_changed_and_wrong_names_are_refused() -> None:
    assert cache_settings("wikitext-2") == CACHE_PRESETS["wikitext-2"] == CacheSettings(theta=0.662, weight=0.1279, window=3785)
    assert cache_settings("ptb", theta=0.5, start="full-window") == CacheSettings(theta=0.5, start="full-window")
    with pytest.raises(ConfigError, match=r"unknown preset 'wt2'.*ptb, wikitext-2"):
        cache_settings("wt2")
