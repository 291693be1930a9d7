"""Settings and graphs that nothing reads are remarked on, and so are settings that change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sememekit.config import load_recipe, recipe_names
from sememekit.jobs.train import train
from sememekit.runs.plan import read_plan, remarks_on
from sememekit.runs.run import Run
from sememekit.sememes import build_graph
from tests.small import small_lexicon
from tests.small_examples import ExamplePlace
from tests.small_run import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("unread"))


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ExamplePlace:
    return ExamplePlace(tmp_path_factory.mktemp("unread_examples"))


@pytest.mark.parametrize(
    ("encoder", "keys", "named"),
    [
        (
            "lstm",
            {"sememe_dropout": 0.2},
            "encoder.sememe_dropout=0.2 changes nothing: it is read with injection other than none",
        ),
        ("lstm", {"sememe_size": 5}, "encoder.injection is none"),
        (
            "gru",
            {"candidate": "release", "injection": "gate"},
            "encoder.candidate=release changes nothing: it is read with inj",
        ),
        ("gru", {"gate_output": "plain"}, "it is read with injection=gate only, and encoder.injection is none"),
        ("bilstm", {"shared_sememes": False}, "encoder.shared_sememes=False changes nothing"),
        (
            "lstm",
            {"num_layers": 1, "dropout": 0.5},
            "it is read with num_layers other than 1 only, and encoder.num_layers is 1",
        ),
    ],
)
def test_a_setting_that_nothing_reads_is_remarked_on(encoder: str, keys: dict[str, object], named: str) -> None:
    plan = read_plan({"encoder": {"name": encoder, "hidden_size": 4, **keys}}, "test")
    (remark,) = remarks_on(plan)
    assert named in remark


def test_a_setting_that_is_read_or_is_the_default_is_not() -> None:
    read = {"name": "gru", "injection": "cell", "candidate": "release", "sememe_dropout": 0.2, "sememe_size": 5}
    assert remarks_on(read_plan({"encoder": read}, "test")) == ()
    assert remarks_on(read_plan({"encoder": {"name": "gru", "candidate": "paper", "sememe_dropout": 0.0}}, "test")) == ()


def test_settings_of_vectors_without_vectors() -> None:
    task = {"name": "nli", "outside": "drop", "tune_vectors": True, "classifier_layers": 0, "classifier_size": 7}
    found = remarks_on(read_plan({"task": task}, "test"))
    assert [text.split(" ")[0] for text in found] == ["task.tune_vectors=True", "task.outside=drop", "task.classifier_size=7"]
    assert "it is read with vectors given only, and task.vectors is empty" in found[0]


def test_no_shipped_recipe_has_a_setting_that_nothing_reads() -> None:
    for name in recipe_names():
        if name.startswith("attack/"):
            continue
        assert remarks_on(read_plan(load_recipe(name), name)) == (), name


def test_a_graph_that_no_part_reads_is_remarked_on_and_kept(place: Place, tmp_path: Path) -> None:
    said: list[str] = []
    table = place.table(graph__path=str(place.graph), schedule__epochs=1)
    report = train(table, tmp_path / "run", on_remark=said.append)
    assert list(report.remarks) == said
    assert "changes nothing: task 'language_model' and encoder 'lstm' and decoder 'softmax'" in said[0]
    assert (tmp_path / "run" / "graph.json").exists(), "evaluate-ppl --by reads it"
    assert remarks_on(read_plan(place.table("sdlm"), "test")) == ()
    assert remarks_on(read_plan(place.table(encoder__injection="cell", graph__path=str(place.graph)), "test")) == ()


def test_a_run_that_shares_is_stored_once_and_loaded(examples: ExamplePlace, tmp_path: Path) -> None:
    graph = tmp_path / "graph.json"
    build_graph(examples.pairs.vocabulary, [small_lexicon()]).save(graph)
    table = examples.table(encoder="bilstm", encoder__injection="cell", graph__path=str(graph))
    report = train(table, tmp_path / "run")
    loaded = Run.open(tmp_path / "run", device="cpu")
    encoder = loaded.task.encoder
    assert encoder.back.sememes is encoder.forth.sememes
    assert encoder.back.stack[0].sememe_cell is encoder.forth.stack[0].sememe_cell
    assert loaded.task.evaluate(examples.pairs, "valid")["accuracy"] == pytest.approx(report.best_valid)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"decoder": {"name": "softmax", "samples_until": "first-cut"}}, "decoder.samples_until"),
        ({"decoder": {"name": "softmax", "samples_power": 0.5}}, "decoder.samples_power"),
        ({"decoder": {"name": "softmax", "samples": 9, "samples_until": "first-cut"}, "schedule": {"factor": 1}}, "first-cut"),
        ({"task": {"shortest_chunk": 9}}, "task.shortest_chunk"),
        ({"task": {"length_halving": 0.5}}, "task.length_halving"),
        ({"optimizer": {"trigger": 9}}, "optimizer.trigger"),
        ({"schedule": {"epochs": 1, "milestones": [5]}}, "schedule.milestones"),
    ],
)
def test_settings_that_change_nothing_are_remarked_on(table: dict[str, Any], told: str) -> None:
    (remark,) = remarks_on(read_plan(table, "test"))
    assert told in remark


def test_the_same_settings_are_not_where_they_are_read() -> None:
    draws = {"name": "softmax", "samples": 9, "samples_until": "first-cut", "samples_power": 0.5}
    task = {"random_lengths": True, "length_halving": 0.5, "shortest_chunk": 9}
    optimizer = {"averaging": "triggered", "trigger": 9}
    schedule = {"epochs": 6, "milestones": [5], "factor": 0.5}
    assert remarks_on(read_plan({"decoder": draws, "task": task, "optimizer": optimizer, "schedule": schedule}, "test")) == ()


@pytest.mark.parametrize(("every", "told"), [(1000, True), (2, False), (0, False)])
def test_clusters_that_never_change_are_told_of(place: Place, tmp_path: Path, every: int, told: bool) -> None:
    remarks = list[str]()
    table = place.table("self_organized", decoder__update_every=every, schedule__epochs=1)
    train(table, tmp_path / "run", on_remark=remarks.append)
    assert any("the clusters stay as they began" in remark for remark in remarks) == told
