"""From tables to plans and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sememekit.config import apply_overrides
from sememekit.config.tables import PLACES_OF_KEYS
from sememekit.decoders.softmax import Softmax
from sememekit.encoders.gru import GRU
from sememekit.errors import ConfigError, GraphError
from sememekit.runs.build import build_task, graph_of
from sememekit.runs.plan import read_plan
from tests.small_run import Place

TABLES: list[dict[str, Any]] = [
    {},
    {"decoder": {"name": "sdlm", "preset": "release-awd", "vector_dropout": 0.3}},
    {"decoder": {"name": "sdlm", "preset": "paper", "sense_bias": True}},
    {"encoder": {"name": "gru", "hidden_size": 5, "output_size": 4}, "task": {"embedding_size": 4}},
    {"claim": {"paper": "p", "table": "1", "row": "r", "metric": "perplexity", "value": 97.3}, "run": {"seed": 9}},
    {"optimizer": {"name": "adam", "learning_rate": 1}, "graph": {"path": "x.graph", "prepare": "make it"}},
    {"decoder": {"name": "tests.training.test_plan:Louder", "gain": 2.0}},
]


class Louder(Softmax):
    """A decoder of somebody else's: a softmax of contexts made larger."""

    class Settings(Softmax.Settings):
        gain: float = 1.0

    def _logits(self, hidden: Any) -> Any:
        return super()._logits(hidden * self.gain)

    def __init__(self, settings: Settings, resources: Any) -> None:
        super().__init__(settings, resources)
        self.gain = settings.gain


@pytest.mark.parametrize("table", TABLES, ids=lambda table: "-".join(table) or "nothing")
def test_a_plan_read_from_its_table_is_the_plan(table: dict[str, Any]) -> None:
    plan = read_plan(table, "test")
    assert read_plan(plan.table(), "again") == plan
    assert read_plan(plan.table(), "again").table() == plan.table()


@pytest.mark.parametrize(
    ("table", "pattern"),
    [
        (
            {"decoder": {"name": "sdlm", "num_base": 3}},
            r"test \[decoder\] of decoder 'sdlm': .*'num_base'.*did you mean 'num_bases'",
        ),
        (
            {"encoder": {"hiden_size": 3}},
            r"\[encoder\].*'hiden_size'.*did you mean 'hidden_size'.*allowed: dropout, hidden_size",
        ),
        ({"data": "prepared"}, r"\[data\] must be a table of keys and values, given 'prepared'"),
        ({"encodr": {}}, r"unknown table \[encodr\].*did you mean 'encoder'"),
        ({"encoder": {"name": "lstn"}}, r"unknown encoder 'lstn'.*did you mean 'lstm'"),
        ({"task": {"name": "languagemodel"}}, r"unknown task.*did you mean 'language_model'"),
        ({"optimizer": {"name": "sgdd"}}, r"\[optimizer\].*'name'.*'sgdd'"),
        ({"schedule": {"epochs": 0}}, r"\[schedule\].*'epochs'.*given 0"),
        ({"optimizer": {"learning_rate": "fast"}}, r"'learning_rate'.*given 'fast'"),
        ({"optimizer": {"learning_rate": float("nan")}}, "'learning_rate'"),
        ({"decoder": {"name": "sdlm", "preset": "papier"}}, r"'preset'.*'paper'"),
        ({"claim": {"paper": "p"}}, r"\[claim\].*'table' is required"),
        ({"decoder": {"name": "tests.training.test_plan:Quieter"}}, "has no class 'Quieter'"),
        ({"decoder": {"name": "tests.no_such_module:Louder"}}, r"no module named 'tests\.no_such_module'"),
        ({"task": {"batch_size": 2.5}}, "'batch_size'"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(table: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        read_plan(table, "test")


def test_classes_of_ones_own_are_built(place: Place) -> None:
    plan = read_plan(place.table("tests.training.test_plan:Louder", decoder__gain=2.0), "test")
    task = build_task(plan, place.data.vocabulary, None)
    assert isinstance(task.decoder, Louder)
    assert task.decoder.gain == 2.0
    plan = read_plan(place.table(encoder__name="sememekit.encoders.gru:GRU"), "test")
    assert isinstance(build_task(plan, place.data.vocabulary, None).encoder, GRU)


def test_a_decoder_that_needs_a_graph_gets_one_or_says_how(place: Place) -> None:
    plan = read_plan({"decoder": {"name": "sdlm"}, "graph": {"prepare": "sememekit build-sememe-graph ..."}}, "test")
    with pytest.raises(
        ConfigError,
        match=r"decoder 'sdlm' with these settings needs a sememe graph; add --graph FILE; .*build-sememe-graph \.\.\.",
    ):
        graph_of(plan)
    with pytest.raises(ConfigError, match="needs a sememe graph"):
        build_task(read_plan(place.table("sdlm"), "test"), place.data.vocabulary, None)


def test_a_graph_of_other_words_is_refused(place: Place) -> None:
    from tests.small import small_graph

    with pytest.raises(GraphError, match="build it again"):
        build_task(read_plan(place.table("sdlm"), "test"), place.data.vocabulary, small_graph())


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "own.txt",
            "人\n人 家具\n",
            "a lexicon, build a graph from it: .* list:HERE/own.txt --data DATA --out HERE/own.graph$",
        ),
        (
            "own.tsv",
            "人\t人 家具\n",
            "a lexicon, build a graph from it: .* table:HERE/own.tsv --data DATA --out HERE/own.graph$",
        ),
        (
            "torn.graph",
            '{"format": "sememekit',
            "torn.graph is not JSON .*; build it again: .* FORMAT:PATH --data DATA --out HERE/torn.graph$",
        ),
        (".", "", "build it again: .* --data DATA --out FILE$"),
    ],
)
def test_what_is_no_graph_is_told_the_command_that_makes_one(
    place: Place, tmp_path: Path, name: str, text: str, told: str
) -> None:
    if text:
        (tmp_path / name).write_text(text, encoding="utf-8")
    table = place.table("sdlm", graph__path=str(tmp_path / name))
    with pytest.raises(GraphError) as error:
        graph_of(read_plan(table, "test"))
    assert re.search(told.replace("DATA", str(place.data.folder)).replace("HERE", str(tmp_path)), str(error.value))
    assert "sememekit build-sememe-graph --source" in str(error.value)


def test_sizes_that_cannot_be_tied_say_what_to_set(place: Place) -> None:
    with pytest.raises(
        ConfigError, match=r"embedding size \(6\).*size of its contexts \(9: .*task\.hidden_size\).*set task\.embedding_size=9"
    ):
        build_task(read_plan(place.table(encoder__hidden_size=9), "test"), place.data.vocabulary, None)
    build_task(read_plan(place.table(encoder__hidden_size=9, decoder__tied=False), "test"), place.data.vocabulary, None)
    build_task(read_plan(place.table(encoder__hidden_size=9, encoder__output_size=6), "test"), place.data.vocabulary, None)


def test_the_seed_decides_the_start(place: Place) -> None:
    import torch

    start = [
        build_task(read_plan(place.table(run__seed=seed), "test"), place.data.vocabulary, None).state_dict()
        for seed in (1, 1, 2)
    ]
    assert all(torch.equal(start[0][name], start[1][name]) for name in start[0])
    assert not torch.equal(start[0]["embedding.weight"], start[2]["embedding.weight"])


@pytest.mark.parametrize(
    ("table", "pattern"),
    [
        ({"run": {"seed": 99999999999999999999}}, r"\[run\]: key 'seed': .*8796093022207, given 99999999999999999999"),
        ({"run": {"threads": 1_000_000}}, r"\[run\]: key 'threads': .* 1024, given 1000000"),
        ({"optimizer": {"weight_decay": 1e308}}, r"\[optimizer\]: key 'weight_decay': .*1, given 1e\+308"),
        ({"optimizer": {"learning_rate": 1e308}}, r"\[optimizer\]: key 'learning_rate': input should be 3.4e38 at most"),
        ({"encoder": {"hidden_size": 10**26}}, r"'hidden_size': input should be 2,147,483,647 at most, given 1000"),
        ({"schedule": {"epochs": 10**4000}}, r"'epochs': input should be 2,147,483,647 at most, given 1000.*\.\.\.0000"),
        ({"decoder": {"name": "adaptive", "shrink": 1e308}}, r"'shrink': .*1000000, given 1e\+308"),
        (
            {"task": {"name": "headline", "search": {"length_penalty": 1e308}}},
            r"'search\.length_penalty': .*100, given 1e",
        ),
        ({"task": {"name": "headline", "search": {"beam_size": 10_000_000}}}, r"'search\.beam_size': .*1000, given 10000000"),
    ],
)
def test_numbers_that_no_computation_can_use_are_refused_in_one_short_line(table: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern) as error:
        read_plan(table, "test")
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("slot", "key", "hint"),
    [
        ("run", "batch_size", "it belongs to task: --set task.batch_size=VALUE"),
        ("run", "epochs", "it belongs to schedule: --set schedule.epochs=VALUE"),
        ("task", "lr", "it belongs to optimizer: --set optimizer.learning_rate=VALUE"),
        ("encoder", "embedding_size", "it belongs to task: --set task.embedding_size=VALUE"),
        ("decoder", "dropout", "it belongs to encoder: --set encoder.dropout=VALUE"),
        ("optimizer", "lr", "did you mean 'learning_rate'?"),
        ("encoder", "nhid", "did you mean 'hidden_size'?"),
    ],
)
def test_a_key_in_the_wrong_table_is_told_where_it_belongs(slot: str, key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as told:
        read_plan({slot: {key: 1}}, "test")
    assert f"unknown key {key!r} ({hint}); allowed: " in str(told.value)


@pytest.mark.parametrize("task", ["nli", "classification"])
def test_tasks_with_labels_have_an_optimiser_of_their_own_where_none_is_named(task: str) -> None:
    """SGD at 20, as in the papers' language models, leaves them at chance."""

    def found(**optimizer: Any) -> tuple[str, float, float]:
        plan = read_plan({"task": {"name": task}, "optimizer": optimizer}, "test")
        return plan.optimizer.name, plan.optimizer.learning_rate, plan.optimizer.clip

    assert found() == ("adam", 0.002, 5.0)
    assert found(learning_rate=0.01) == ("adam", 0.01, 5.0)
    assert found(name="sgd") == ("sgd", 20.0, 0.25)
    assert read_plan({}, "test").optimizer.name == "sgd"


def test_settings_that_are_typed_without_their_slot_are_told_with_it() -> None:
    """The places come from a plan, and keys of other names are refused as usual."""
    elsewhere = {"lr": "optimizer.learning_rate", "nhid": "encoder.hidden_size", "bptt": "task.chunk_length"}
    for key, place in {**PLACES_OF_KEYS, **elsewhere}.items():
        slot, _, name = place.partition(".")
        assert name in read_plan({}, "test").table()[slot]
        for typed in (key, f"trainer.{key}"):
            with pytest.raises(ConfigError) as told:
                apply_overrides({}, [f"{typed}=4"])
            assert f"(did you mean '{place}=4'?)" in str(told.value)
    with pytest.raises(ConfigError, match=r"expected slot\.key=value, for example encoder\.hidden_size=200$"):
        apply_overrides({}, ["gain=4"])
