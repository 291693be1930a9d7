"""Models of float64 on the few hundred words of ``place``."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from sememekit.runs.build import build_task, graph_of
from sememekit.runs.plan import read_plan
from sememekit.tasks.language_model import LanguageModel
from tests.small_run import Place

Make = Callable[..., LanguageModel]


@pytest.fixture
def make(place: Place) -> Make:
    """A model with dropout everywhere, in float64, moved away from where it starts."""

    def build(decoder: str = "softmax", encoder: str = "lstm") -> LanguageModel:
        table = place.table(decoder, task__input_dropout=0.4, task__output_dropout=0.4, encoder__dropout=0.4)
        table["encoder"] |= {"name": encoder, **({"num_heads": 3, "context": 4} if encoder == "transformer" else {})}
        if encoder.startswith("sememe") and "graph" not in table:
            table["graph"] = {"path": str(place.graph)}
        plan = read_plan(table, "test")
        task = build_task(plan, place.data.vocabulary, graph_of(plan)).double()
        assert isinstance(task, LanguageModel)
        with torch.no_grad():
            for parameter in task.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
        return task

    return build
