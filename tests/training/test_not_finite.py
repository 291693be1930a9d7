"""Losses, gradients, weights and validations that are no numbers: named, and never kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from sememekit.errors import CheckpointError, TrainingError
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.training import RunFolder, Trainer
from tests.small_run import Place
from tests.training.scripted import script_validation, trained


def spoil(monkeypatch: pytest.MonkeyPatch, step: int, where: str) -> None:
    """Put NaN into a part of the model right before a step."""
    original = Trainer._step

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == step:
            module = self.task.get_submodule(where)
            module.register_forward_hook(lambda module, inputs, output: output * float("nan"))
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)


@pytest.mark.parametrize(("where", "decoder"), [("embedding", "sdlm"), ("decoder.mixture.prior", "mos")])
def test_a_module_that_gives_nan_is_named_with_its_batch(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, decoder: str
) -> None:
    spoil(monkeypatch, 37, where)
    pattern = (
        rf"not finite at epoch 2, batch 8, step 38: .*module '{where}'.*optimizer\.learning_rate=1\).*optimizer\.clip=0\.125"
    )
    with pytest.raises(TrainingError, match=pattern):
        trained(place, tmp_path / "run", decoder)
    assert RunFolder.open(tmp_path / "run").load("last", with_trainer=True).trainer["progress"]["step"] == 30


@pytest.mark.parametrize("samples", [0, 3], ids=["dense", "sparse"])
def test_a_gradient_that_is_nan_is_named(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, samples: int) -> None:
    original, kinds = Trainer._step, set()

    def nan(gradient: torch.Tensor) -> torch.Tensor:
        kinds.add(gradient.is_sparse)
        return gradient * float("nan")

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == 3:
            self.task.embedding.weight.register_hook(nan)
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)
    with pytest.raises(TrainingError, match=r"batch 4, step 4: .* comes from the gradient of 'embedding\.weight'"):
        trained(place, tmp_path / "run", decoder__samples=samples)
    assert kinds == {samples > 0}


def test_a_parameter_that_is_nan_is_named(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Trainer._step

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == 3:
            with torch.no_grad():
                self.task.decoder.bias[2] = float("inf")
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)
    with pytest.raises(TrainingError, match=r"epoch 1, batch 4, step 4: parameter 'decoder\.bias' holds non-finite"):
        trained(place, tmp_path / "run")


def test_a_gradient_that_is_nan_is_named_before_it_is_applied(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Trainer._step

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        if self.progress.step == 3:
            self.task.decoder.bias.register_hook(lambda gradient: gradient * float("nan"))
        original(self, batch, window)

    monkeypatch.setattr(Trainer, "_step", spoiled)
    with pytest.raises(TrainingError, match=r"step 4: .*the gradient of 'decoder\.bias'"):
        trained(place, tmp_path / "run")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_validation_that_is_no_number_ends_the_run_and_the_last_good_checkpoint_stays(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: float
) -> None:
    script_validation(monkeypatch, [50.0, bad])
    message = rf"^training diverged: validation perplexity is {bad} after epoch 2; start again .* best is .* 1, step-00000030$"
    with pytest.raises(TrainingError, match=message):
        trained(place, tmp_path / "run", schedule__epochs=3)
    folder = RunFolder.open(tmp_path / "run")
    pointer = folder.pointer()
    assert pointer["last"] == pointer["best"] == "step-00000030"
    assert Run.open(tmp_path / "run", which="last", device="cpu").snapshot == pointer["last"]
    script_validation(monkeypatch, [bad])
    with pytest.raises(TrainingError, match="no checkpoint was written"):
        trained(place, tmp_path / "first", schedule__epochs=3)
    assert RunFolder.open(tmp_path / "first").pointer() == {}


def test_worse_than_guessing_all_words_alike_is_divergence(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_validation(monkeypatch, [2.3e123])
    monkeypatch.setattr("sememekit.training.divergence.uniform_perplexity", lambda task: 1000.0)
    with pytest.raises(
        TrainingError, match=r"diverged: validation perplexity is 2\.3e\+123 after epoch 1, .* 1,000 words"
    ) as error:
        trained(place, tmp_path / "run")
    assert len(str(error.value)) < 400


def test_an_over_fitted_model_may_be_worse_than_guessing_on_new_text(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model was better before, and it is better on the text that it learns."""
    script_validation(monkeypatch, [50.0, 2000.0])
    monkeypatch.setattr("sememekit.training.divergence.uniform_perplexity", lambda task: 1000.0)
    report, _ = trained(place, tmp_path / "run")
    assert (report.best_valid, report.finished) == (50.0, "2 epochs done")
    script_validation(monkeypatch, [0.5, 2000.0])
    monkeypatch.setattr(
        "sememekit.training.divergence.uniform_perplexity", lambda task: 1.5
    )  # now the training loss is worse than that, too
    with pytest.raises(TrainingError, match="diverged: validation perplexity is 2000 after epoch 2"):
        trained(place, tmp_path / "other")


@pytest.mark.parametrize("which", ["epoch", "checkpoint", "signal"])
def test_weights_that_are_not_finite_are_never_written(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """The loss of a step is finite, and what the step leaves is not: seen before the snapshot, not at the next loss."""
    original = Trainer._step
    last = {"epoch": 60, "checkpoint": 36, "signal": 41}[which]

    def spoiled(self: Any, batch: Any, window: Any) -> None:
        original(self, batch, window)
        if self.progress.step == last:
            with torch.no_grad():
                self.task.decoder.bias[2] = float("nan")

    monkeypatch.setattr(Trainer, "_step", spoiled)
    plan = read_plan(place.table(run__checkpoint_every=12), "test")
    folder = RunFolder.create(tmp_path / "run", plan.table(), {}, {})
    trainer = Trainer(
        build_task(plan, place.data.vocabulary, None), place.data, folder, plan.optimizer, plan.schedule, plan.run
    )
    message = (
        f"'decoder\\.bias' holds values that are not finite after step {last}, in epoch 2; .* best is from epoch 1, "
        "step-00000030$"
    )
    with pytest.raises(TrainingError, match=message):
        list(trainer.run(lambda: which == "signal" and trainer.progress.step == last))
    assert folder.pointer()["best"] == "step-00000030"
    weights = folder.load("last", with_trainer=False).weights
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


def test_a_model_whose_weights_are_not_finite_is_refused(place: Place, tmp_path: Path) -> None:
    trained(place, tmp_path / "run", schedule__epochs=1)
    run = Run.open(tmp_path / "run", device="cpu")
    with torch.no_grad():
        run.task.get_parameter("decoder.bias")[1] = float("inf")
    run.folder.revise(run.snapshot, run.task)
    with pytest.raises(CheckpointError, match=r"run: its best checkpoint .* diverged: 'decoder\.bias' holds values"):
        Run.open(tmp_path / "run", device="cpu").load()
