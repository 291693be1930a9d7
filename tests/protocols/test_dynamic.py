"""Dynamic evaluation against its equations, and what it must leave as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.protocols.dynamic import (
    DYNAMIC_PRESETS,
    DynamicGrid,
    DynamicSettings,
    dynamic_settings,
    grid_points,
    score_dynamically,
)
from sememekit.protocols.gradient_statistics import (
    GradientStatistics,
    gather_statistics,
    gradients_without_dropout,
    statistics_for,
    trainable,
)
from sememekit.tasks.language_model import LanguageModel
from tests.protocols.conftest import Make
from tests.small_run import Place

KRAUSE = DynamicSettings(rate=0.02, decay=0.05, epsilon=0.001)
MOS = DynamicSettings(rate=0.05, decay=0.3, epsilon=0.004, scaling="mos")
COLUMNS = 20


def loss_of(task: LanguageModel, rows: np.ndarray, state: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Mean loss, nats of every word and the state, word by word through ``step`` and ``log_probs``."""
    task.eval()
    nats = []
    for before, after in pairwise(rows):
        word = torch.from_numpy(before.astype(np.int64))
        hidden, state = task.encoder.step(task.embedding(word), word, state)
        nats.append(-task.decoder.log_probs(hidden)[torch.arange(len(after)), torch.from_numpy(after.astype(np.int64))])
    return torch.stack(nats).mean(), torch.stack(nats).detach(), tuple(part.detach() for part in state)


def gradients(task: LanguageModel, loss: Tensor) -> dict[str, Tensor]:
    task.zero_grad()
    loss.backward()
    return {name: p.grad.clone() if p.grad is not None else torch.zeros_like(p) for name, p in task.named_parameters()}


def batches(tokens: np.ndarray, segment: int) -> list[np.ndarray]:
    rows = len(tokens) // COLUMNS
    columns = tokens[: rows * COLUMNS].reshape(COLUMNS, rows).T
    return [columns[begin : begin + segment + 1] for begin in range(0, rows - 1, segment)]


def twin_statistics(task: LanguageModel, tokens: np.ndarray, segment: int, scaling: str) -> tuple[dict[str, Tensor], int]:
    """MS as the equations have it (root of the mean of squares), or as the older code has it (root of the sum)."""
    total: dict[str, Tensor] = {}
    state = task.encoder.start(COLUMNS)
    chunks = batches(tokens, segment)
    for rows in chunks:
        loss, _, state = loss_of(task, rows, state)
        for name, gradient in gradients(task, loss).items():
            total[name] = total.get(name, 0) + gradient**2
    count = len(chunks) if scaling == "krause" else 1
    return {name: (square / count) ** 0.5 for name, square in total.items()}, len(chunks)


def twin(task: LanguageModel, train: np.ndarray, tokens: np.ndarray, settings: DynamicSettings) -> list[float]:
    """Nats of each word; the update exactly as each of the two codes writes it, no conversion."""
    sizes, _ = twin_statistics(task, train, settings.segment, settings.scaling)
    means = [float(size.mean()) for size in sizes.values()]
    typical = sum(means) / len(means) if settings.scaling == "krause" else sum(means)
    relative = {name: (size / typical).clamp(max=1 / settings.decay) for name, size in sizes.items()}
    start = {name: p.detach().clone() for name, p in task.named_parameters()}
    state, nats = task.encoder.start(1), []
    for begin in range(0, len(tokens) - 1, settings.segment):
        loss, each, state = loss_of(task, tokens[begin : begin + settings.segment + 1, None], state)
        nats += each[:, 0].tolist()
        step = gradients(task, loss)
        with torch.no_grad():
            for name, p in task.named_parameters():
                back = settings.decay * relative[name] * (start[name] - p)
                p += back - settings.rate * step[name] / (sizes[name] + settings.epsilon)
    with torch.no_grad():
        for name, p in task.named_parameters():
            p.copy_(start[name])
    return nats


def ours(
    task: LanguageModel, train: np.ndarray, tokens: np.ndarray, settings: DynamicSettings, columns: int = 1
) -> list[list[float]]:
    statistics = gather_statistics(task, train, segment=settings.segment, batch_size=COLUMNS)
    chunks = score_dynamically(task, tokens, settings, statistics, batch_size=columns)
    return [row for chunk in chunks for row in chunk.nats.tolist()]


@pytest.mark.parametrize("settings", [KRAUSE, MOS, KRAUSE.model_copy(update={"segment": 3, "decay": 0.9})], ids=str)
@pytest.mark.parametrize("decoder", ["softmax", "mos"])
def test_values_equal_the_plain_twin(place: Place, make: Make, settings: DynamicSettings, decoder: str) -> None:
    """58 predictions: the last segment is short. A large decay reaches the cap of lambda D at 1."""
    train, tokens = place.data.tokens("train"), place.data.tokens("test")[:59]
    task = make(decoder)
    expected = twin(task, train, tokens, settings)
    found = [row[0] for row in ours(task.train(), train, tokens, settings)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    static = torch.cat([chunk.nats for chunk in task.score(tokens, batch_size=1)])[:, 0].numpy()
    assert np.abs(np.array(found) - static)[settings.segment :].max() > 1e-3
    np.testing.assert_allclose(found[: settings.segment], static[: settings.segment], atol=1e-9)


PAIRS = ["softmax gru", "sdlm lstm", "adaptive lstm", "moc gru", "softmax mogrifier", "mos transformer"]


@pytest.mark.parametrize(("decoder", "encoder"), [pair.split() for pair in PAIRS])
def test_any_encoder_and_output_layer(place: Place, make: Make, decoder: str, encoder: str) -> None:
    train, tokens = place.data.tokens("train"), place.data.tokens("test")[:24]
    task = make(decoder, encoder)
    expected = twin(task, train, tokens, KRAUSE)
    np.testing.assert_allclose([row[0] for row in ours(task, train, tokens, KRAUSE)], expected, rtol=0, atol=1e-9)


def test_the_conversion_is_that_of_the_public_code() -> None:
    exact = MOS.in_krause_scaling(num_tensors=17, num_batches=400)
    assert exact == DynamicSettings(rate=0.05 / 20, decay=0.3 / 17, epsilon=0.004 / 20)
    assert exact.in_krause_scaling(3, 3) == exact


def test_shared_weights_are_counted_once(place: Place, make: Make) -> None:
    tied = make("softmax")
    statistics = gather_statistics(tied, place.data.tokens("train"), segment=5, batch_size=COLUMNS)
    names = list(statistics.root_mean_square)
    assert "embedding.weight" in names
    assert not any("words" in name for name in names)
    expected, count = twin_statistics(tied, place.data.tokens("train"), 5, "krause")
    assert statistics.num_batches == count
    assert names == list(expected)
    for name, size in statistics.root_mean_square.items():
        torch.testing.assert_close(size, expected[name], rtol=0, atol=1e-12)


def test_columns_share_one_set_of_weights(place: Place, make: Make) -> None:
    train, tokens = place.data.tokens("train"), place.data.tokens("test")[:60]
    rows = ours(make(), train, tokens, KRAUSE, columns=3)
    assert len(rows) == 20
    assert {len(row) for row in rows} == {3}


def state_bytes(task: LanguageModel) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in task.state_dict().items()}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("end", ["whole", "close", "error"])
def test_weights_and_modes_are_as_before_to_the_bit(place: Place, make: Make, end: str, training: bool) -> None:
    task = make("mos").float().train(training)
    before = state_bytes(task)
    statistics = gather_statistics(task, place.data.tokens("train"), segment=5, batch_size=COLUMNS)
    chunks = score_dynamically(task, place.data.tokens("test"), KRAUSE, statistics)
    next(chunks), next(chunks), next(chunks)
    assert state_bytes(task) != before, "or nothing was learned"
    if end == "whole":
        list(chunks)
    elif end == "close":
        chunks.close()
    else:
        with pytest.raises(RuntimeError, match="stop"):
            chunks.throw(RuntimeError("stop"))
    assert state_bytes(task) == before
    assert {module.training for module in task.modules()} == {training}
    assert all(parameter.grad is None for parameter in task.parameters())


def test_under_autocast_every_step_is_seen(place: Place, make: Make) -> None:
    """Autocast keeps low-precision copies of weights, which a step in place leaves behind."""
    train, tokens = place.data.tokens("train"), place.data.tokens("valid")

    def dynamic(cached: bool) -> Tensor:
        task = make().float()
        statistics = gather_statistics(task, train, segment=5)
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=cached):
            segments = score_dynamically(task, tokens, KRAUSE.model_copy(update={"segment": 5}), statistics)
            return torch.cat([scored.nats.flatten().float() for scored in segments])

    assert torch.equal(dynamic(cached=True), dynamic(cached=False))


def test_two_runs_are_equal_and_nothing_is_dropped(place: Place, make: Make) -> None:
    task = make().train()
    train, tokens = place.data.tokens("train"), place.data.tokens("test")[:40]
    assert ours(task, train, tokens, KRAUSE) == ours(task, train, tokens, KRAUSE)


def test_recurrent_kernels_are_ready_for_cudnn_and_drop_nothing(make: Make) -> None:
    task = make().train(False)
    kernels = [module for module in task.modules() if isinstance(module, torch.nn.RNNBase)]
    kernels[0].dropout = 0.3
    with gradients_without_dropout(task):
        assert all(kernel.training and kernel.dropout == 0.0 for kernel in kernels)
        assert not any(module.training for module in task.modules() if module not in kernels)
        assert torch.is_grad_enabled()
    assert kernels[0].dropout == 0.3
    assert not any(module.training for module in task.modules())


def test_a_weight_that_the_loss_does_not_reach_stays(place: Place, make: Make) -> None:
    task = make()
    task.register_parameter("idle", torch.nn.Parameter(torch.ones(3, dtype=torch.float64)))
    task.register_parameter("frozen", torch.nn.Parameter(torch.ones(3, dtype=torch.float64), requires_grad=False))
    statistics = gather_statistics(task, place.data.tokens("train"), segment=5, batch_size=COLUMNS)
    assert "frozen" not in statistics.root_mean_square
    chunks = score_dynamically(task, place.data.tokens("test"), KRAUSE, statistics)
    next(chunks), next(chunks)
    assert task.idle.tolist() == [1.0, 1.0, 1.0]
    chunks.close()


def test_it_learns_a_text_that_repeats_itself(place: Place, make: Make) -> None:
    tokens = np.tile(place.data.tokens("test")[:15], 8)
    task = make()
    static = float(torch.cat([chunk.nats for chunk in task.score(tokens, batch_size=1)]).mean())
    assert np.mean(ours(task, place.data.tokens("train"), tokens, KRAUSE)) < static - 0.1


class Kept:
    """A run folder's file of statistics, and whether they were gathered."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.file, self.place, self.gathered = folder / "statistics.safetensors", place, 0

    def ask(self, task: LanguageModel, num_tokens: int | None = None, **changes: object) -> GradientStatistics:
        before = self.gathered
        options = {"segment": 5, "dtype": "float32", **changes}
        found = statistics_for(
            task,
            self.place.data.tokens("train")[:num_tokens],
            str(options.pop("text", "sha")),
            self.file,
            progress=self._count,
            **options,
        )
        self.last = self.gathered > before
        return found

    def _count(self, done: int, total: int) -> None:
        self.gathered += 1


def test_statistics_are_kept_beside_the_run_until_something_changes(place: Place, make: Make, tmp_path: Path) -> None:
    kept, task = Kept(place, tmp_path), make()
    first = kept.ask(task)
    assert kept.last
    again = kept.ask(task)
    assert not kept.last
    assert again.num_batches == first.num_batches
    assert list(again.root_mean_square) == list(trainable(task))
    for name, size in first.root_mean_square.items():
        assert torch.equal(size, again.root_mean_square[name])
    for changes in ({"segment": 2}, {"dtype": "bfloat16"}, {"text": "other"}, {"num_tokens": 300}):
        kept.ask(task, **changes)
        assert kept.last, changes
    with torch.no_grad():
        task.encoder.stack[0].bias_hh_l0[0] += 1e-9
    kept.ask(task, num_tokens=300)
    assert kept.last, "other weights"
    with safetensors.safe_open(kept.file, framework="pt") as opened:
        assert '"tokens": 300' in opened.metadata()["signature"]


def test_a_broken_file_of_statistics_is_named(place: Place, make: Make, tmp_path: Path) -> None:
    kept = Kept(place, tmp_path)
    kept.file.write_bytes(b"nothing of the kind")
    with pytest.raises(CheckpointError, match=r"statistics.safetensors holds no gradient statistics.*delete it"):
        kept.ask(make())


def change_a_number(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-10] ^= 4
    file.write_bytes(content)


def change_a_shape(file: Path) -> None:
    with safetensors.safe_open(file, framework="pt") as opened:
        metadata, tensors = opened.metadata(), {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    rows, columns = tensors["embedding.weight"].shape
    tensors["embedding.weight"] = tensors["embedding.weight"].reshape(columns, rows)
    safetensors.torch.save_file(tensors, file, metadata=metadata)


@pytest.mark.parametrize("change", [change_a_number, change_a_shape])
def test_changed_statistics_are_refused(place: Place, make: Make, tmp_path: Path, change: Callable[[Path], None]) -> None:
    kept, task = Kept(place, tmp_path), make()
    kept.ask(task)
    change(kept.file)
    with pytest.raises(CheckpointError, match=r"not those that were written.*delete it"):
        kept.ask(task)


def test_a_folder_that_cannot_be_written_is_told_first(
    place: Place, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr("os.access", lambda path, mode: asked.append(path))
    kept = Kept(place, tmp_path)
    with pytest.raises(CheckpointError, match=r"cannot be written.*copy the run"):
        kept.ask(make())
    assert (asked, kept.gathered) == ([tmp_path], 0)


def test_two_rows_of_training_text_are_enough(place: Place, make: Make) -> None:
    task, tokens = make(), place.data.tokens("train")
    with pytest.raises(DataError, match="199 tokens fill less than two rows"):
        gather_statistics(task, tokens[:199], segment=5)
    assert gather_statistics(task, tokens[:200], segment=5).num_batches == 1


def test_progress_is_told_of_each_batch_and_of_all_predicted_tokens(place: Place, make: Make) -> None:
    task, tokens = make(), place.data.tokens("test")[:22]
    batches, words = list[tuple[int, int]](), list[tuple[int, int]]()
    statistics = gather_statistics(
        task, place.data.tokens("train")[:221], segment=5, batch_size=20, progress=lambda *told: batches.append(told)
    )
    assert batches == [(1, 2), (2, 2)], "11 rows: five predicted ones, and five"
    list(score_dynamically(task, tokens, KRAUSE, statistics, batch_size=2, progress=lambda *told: words.append(told)))
    assert words == [(10, 21), (20, 21), (21, 21)]


def test_presets_and_scalings() -> None:
    assert dynamic_settings() == DynamicSettings() == DYNAMIC_PRESETS["awd-ptb"]
    assert dynamic_settings(scaling="mos") == dynamic_settings("mos-ptb") == DYNAMIC_PRESETS["mos-ptb"]
    assert (DYNAMIC_PRESETS["mos-ptb"].decay, DYNAMIC_PRESETS["mos-wikitext-2"].decay) == (0.075, 0.02)
    longer = dynamic_settings("mos-ptb", segment=20, rate=0.01)
    assert (longer.rate, longer.decay, longer.epsilon, longer.segment) == (0.01, pytest.approx(0.3), 0.001, 20)
    with pytest.raises(ConfigError, match=r"unknown preset 'ptb'.*awd-ptb"):
        dynamic_settings("ptb")
    with pytest.raises(ConfigError, match="'mos-ptb' are in the scaling 'mos', given 'krause'"):
        dynamic_settings("mos-ptb", scaling="krause")


# awd-ptb: the defaults of dynamiceval.py in benkrause/dynamic-evaluation at 09fa27c (lr, lamb, epsilon, bptt), tuned for the
# AWD-LSTM on Penn Treebank. awd-ptb-paper, awd-wikitext-2: "the exact settings" of Krause et al. 2018, the two commands with
# --oldhyper in its README. mos-*: Table 8 of Yang et al. 2018; zihangdai/mos at 9c0c608 gives what its defaults are not
# (--lamb 0.075 for Penn Treebank, --epsilon 0.002 for WikiText-2).
PUBLISHED = {
    "awd-ptb": ("krause", 5e-5, 0.002, 2e-5),
    "awd-ptb-paper": ("mos", 0.002, 0.02, 0.001),
    "awd-wikitext-2": ("mos", 0.002, 0.02, 0.001),
    "mos-ptb": ("mos", 0.002, 0.075, 0.001),
    "mos-wikitext-2": ("mos", 0.002, 0.02, 0.002),
}
"""Scaling, rate (eta), decay (lambda) and epsilon of each preset."""


def test_presets_have_the_published_numbers() -> None:
    assert {
        name: (preset.scaling, preset.rate, preset.decay, preset.epsilon) for name, preset in DYNAMIC_PRESETS.items()
    } == PUBLISHED
    assert {preset.segment for preset in DYNAMIC_PRESETS.values()} == {5}


def test_the_grid_multiplies_rate_and_decay() -> None:
    points = grid_points(KRAUSE, DynamicGrid(rates=(0.5, 2.0), decays=(1.0,)))
    assert [(point.rate, point.decay, point.epsilon) for point in points] == [(0.01, 0.05, 0.001), (0.04, 0.05, 0.001)]
    assert math.isfinite(points[0].rate)
