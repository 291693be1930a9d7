"""Sememes in the encoder with every decoder: the combinations that a plan allows must be models, not errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.decoders import DECODERS
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.runs.build import build_task, graph_of
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from tests.small_run import Place


@pytest.mark.parametrize("encoder", ["lstm", "gru"])
@pytest.mark.parametrize("injection", ["concat", "gate", "cell"])
def test_every_decoder_takes_an_encoder_with_sememes(place: Place, encoder: str, injection: str) -> None:
    for decoder in DECODERS:
        table = place.table(decoder, encoder__name=encoder, encoder__injection=injection, graph__path=str(place.graph))
        plan = read_plan(table, "case")
        task = build_task(plan, place.data.vocabulary, graph_of(plan))
        batch = next(task.batches(place.data, 1, 0))
        result = task.loss(batch, task.start(place.data))
        (result.nats / result.count).backward()
        gradient = task.encoder.sememes.vectors.grad
        assert gradient is not None, decoder
        assert gradient.any(), decoder


def test_a_plan_with_injection_and_no_graph_is_refused_before_anything_is_built(place: Place) -> None:
    table = place.table("softmax", encoder__injection="cell")
    with pytest.raises(ConfigError, match="needs a sememe graph; add --graph FILE"):
        graph_of(read_plan(table, "case"))


def test_a_language_model_refuses_to_read_ahead(place: Place) -> None:
    plan = read_plan(place.table("softmax", encoder__name="bilstm"), "case")
    with pytest.raises(ConfigError, match=r"has read already.*did you mean 'lstm'"):
        build_task(plan, place.data.vocabulary, None)


def test_a_run_with_sememes_on_both_sides_is_trained_and_loaded(place: Place, tmp_path: Path) -> None:
    table = place.table("sdlm", encoder__injection="cell", schedule__epochs=1)
    report = train(table, tmp_path / "run")
    loaded = Run.open(tmp_path / "run", device="cpu")
    assert loaded.task.encoder.injection == "cell"
    assert loaded.task.evaluate(place.data, "valid")["perplexity"] == pytest.approx(report.best_valid, rel=1e-6)
