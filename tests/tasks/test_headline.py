"""Headlines on validation: what is written for which text, and how it is scored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.tasks.base import PrimaryMetric
from sememekit.tasks.headline import rouge_settings
from sememekit.text.vocabulary import Vocabulary
from tests.small import small_vocabulary
from tests.small_pairs import PairPlace


def test_rouge_on_validation_is_of_what_is_written_for_the_sources(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = PairPlace(tmp_path_factory.mktemp("pairs"))
    task, examples = pairs.model(name="eight", task__checkpoint_by="rouge"), pairs.eight.examples("valid")
    asked: list[list[int]] = []
    write = task.write

    def told(sources: Any, *rest: Any) -> Any:
        asked.extend(source.tolist() for source in sources)
        return write(sources, *rest)

    monkeypatch.setattr(task, "write", told)
    metrics = task.evaluate(pairs.eight, "valid")
    assert asked == [examples.text(index, 0).tolist() for index in range(len(examples))]
    assert {"perplexity", "rouge1", "rouge2", "rougeL"} <= set(metrics)
    assert task.metric == PrimaryMetric("rougeL", lower_is_better=False)
    assert pairs.model(name="eight").metric == PrimaryMetric("perplexity", lower_is_better=True)


@pytest.mark.parametrize(
    ("dataset", "vocabulary", "names"),
    [
        ("lcsts", small_vocabulary(), ["lcsts-characters", "lcsts-words"]),
        ("mine", small_vocabulary(), ["characters"]),
        ("mine", Vocabulary.from_counts({"fine": 3, "film": 2, "<unk>": 1}), ["words"]),
    ],
)
def test_data_are_scored_by_the_rouge_that_is_usual_for_them(dataset: str, vocabulary: Vocabulary, names: list[str]) -> None:
    data: Any = SimpleNamespace(signature=SimpleNamespace(dataset=dataset), vocabulary=vocabulary)
    assert [name for name, _ in rouge_settings(data)] == names
