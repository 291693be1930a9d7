"""Every recipe that ships is found, read, and builds a model that learns a step at toy size."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.attack import is_attack
from sememekit.config import USUAL_VARIANTS, resources_folder
from sememekit.config.recipes import Shelf, list_recipes, load_recipe
from sememekit.runs.build import build_task
from sememekit.runs.plan import Plan, read_plan
from sememekit.sememes import build_graph
from sememekit.tasks.base import Kind, Task
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import Snapshot, Trainer
from sememekit.training.schedule import Schedule
from sememekit.training.trainer import _Window
from tests.small import COUNTS, small_lexicon

SHELF = Shelf(resources_folder() / "recipes")
recipe = cache(load_recipe)
"""A recipe as it ships, read once; no test changes it."""
ALL = [info.name for info in list_recipes()]
NAMES = [name for name in ALL if not is_attack(recipe(name))]
"""Recipes that train a model; recipes of attacks are tried in tests/attack/test_recipes.py."""

TOY: dict[str, dict[str, Any]] = {
    "task": {"embedding_size": 8, "batch_size": 3},
    "encoder": {"hidden_size": 8},
    "run": {"threads": 1},
}
"""Settings that make any recipe small; everything else stays as the recipe has it."""


WRITERS = ("headline", "dialogue")
"""Tasks from text to text."""


def toy_table(name: str) -> dict[str, Any]:
    table = recipe(name)
    toy = {**table, **{slot: {**table.get(slot, {}), **keys} for slot, keys in TOY.items()}}
    if toy.get("decoder", {}).get("name") == "adaptive":
        toy["decoder"] = {**toy["decoder"], "shrink": 2.0}  # contexts of 8 cannot shrink twice by 4
    if toy["task"].get("name") in WRITERS:
        toy["task"]["hidden_size"] = 8
        toy["encoder"]["hidden_size"] = 4 if toy["encoder"]["name"].startswith("bi") else 8
    return toy


FAMILIES = {
    "attack": 37,
    "lattice": 24,
    "mixture": 19,
    "ours": 124,
    "quickstart": 3,
    "sdlm": 26,
    "self_organized": 8,
    "sememe_rnn": 72,
    "small": 7,
}
"""Number of recipes in each folder: files, and rows in them."""


def test_the_listing_finds_every_file_and_row() -> None:
    folder = resources_folder() / "recipes"
    names = []
    for path in folder.rglob("*.toml"):
        rows = tomllib.loads(path.read_text(encoding="utf-8")).get("row", {})
        names += [path.with_name(name).relative_to(folder).as_posix() for name in (path.stem, *rows)]
    assert sorted(names) == ALL
    assert Counter(name.partition("/")[0] for name in ALL) == FAMILIES


def leaves(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """``slot.key`` -> value, also inside nested tables."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= leaves(value, f"{above}{key}.") if isinstance(value, Mapping) and value else {f"{above}{key}": value}
    return found


@pytest.mark.parametrize("name", ALL)
def test_no_key_repeats_what_the_base_has(name: str) -> None:
    """Merged tables alone are compared; a table that names another variant replaces its base's table whole."""
    place = SHELF.find(name)
    below = SHELF.base_of(place)
    written, base = place.table(), recipe(below.name) if below else {}
    written.pop("base", None)
    kept = {}
    for slot, keys in written.items():
        if slot in base and ("name" not in keys or keys["name"] == base[slot].get("name", USUAL_VARIANTS.get(slot))):
            kept[slot] = keys
    repeated = [key for key, value in leaves(kept).items() if (key, value) in leaves(base).items()]
    assert not repeated, f"{name} sets {', '.join(repeated)} to what its base has"


class NoFolder:
    """A run folder that writes no snapshots."""

    def save(self, step: int, model: object, trainer: object, *, best: bool) -> str:
        return f"step-{step:08d}"

    def load(self, which: str, *, with_trainer: bool) -> Snapshot:
        return self.best

    best: Snapshot


def take_a_step(plan: Plan, task: Task, batch: Any, carry: Any = ()) -> None:
    """One step of the trainer by the recipe's optimiser, and two epochs of its schedule, the second a worse one."""
    folder, schedule = NoFolder(), plan.schedule
    data: Any = SimpleNamespace(num_added=lambda split: 0)
    trainer = Trainer(task, data, folder, plan.optimizer, schedule, plan.run)  # type: ignore[arg-type]
    trainer.carry = carry
    before = [parameter.detach().clone() for parameter in trainer.parameters]
    trainer._step(batch, _Window())
    assert any(not torch.equal(old, new) for old, new in zip(before, trainer.parameters, strict=True))
    assert all(bool(torch.isfinite(parameter).all()) for parameter in trainer.parameters)
    assert trainer.average.count == (plan.optimizer.averaging == "from_start")
    folder.best = Snapshot("best", {name: value.clone() for name, value in task.state_dict().items()}, {}, "")
    values = [5.0, 6.0] if task.metric.lower_is_better else [0.6, 0.5]
    rate = plan.optimizer.learning_rate
    baseline = 1000.0 if task.metric.lower_is_better else 0.01
    rules = Schedule(schedule, plan.optimizer, plan.run, task.metric, baseline)
    for value in values:
        trainer.progress.nats, trainer.progress.count, trainer.progress.seconds = 1.0, 1, 1.0
        trainer._validate = lambda value=value: {task.metric.name: value}  # type: ignore[misc,method-assign]
        (report,) = trainer._end_epoch(rules)
        assert report.rate == pytest.approx(rate)
        cut = value == values[1] and schedule.grace < 2 and schedule.factor < 1.0
        assert report.rate_cut == cut
        rate *= (schedule.factor if cut else 1.0) * schedule.decay
    assert trainer.progress.rate == pytest.approx(rate)


VOCABULARY = Vocabulary.from_counts({**COUNTS, "<eos>": 9}, ("<s>", "</s>"))
"""Words with every mark that any task asks for."""
GRAPH = build_graph(VOCABULARY, [small_lexicon()])
LABELS = ("yes", "no")


def small_chunks() -> ChunkVocabulary:
    """Chunks of words, as they would come with data for lattices."""
    words = [VOCABULARY.id(word) for word in list(COUNTS)[:3]]
    return ChunkVocabulary(VOCABULARY, [tuple(words[:2]), tuple(words)], [2, 2], max_length=4)


def batch_of_words(task: Any, numbers: np.random.Generator) -> Any:
    return torch.from_numpy(numbers.integers(0, len(VOCABULARY), (6, 3)))


def batch_of_pairs(task: Any, numbers: np.random.Generator) -> Any:
    return task.batch_of(
        [(numbers.integers(0, len(VOCABULARY), size), numbers.integers(0, len(VOCABULARY), 3)) for size in (7, 4)]
    )


def batch_of_labels(task: Any, numbers: np.random.Generator) -> Any:
    texts = [[numbers.integers(0, len(VOCABULARY), size) for size in (5, 3)[: task.num_texts]] for _ in range(3)]
    return task.batch_of(texts, np.array([0, 1, 0]))


def batch_of_sentences(task: Any, numbers: np.random.Generator) -> Any:
    words = [VOCABULARY.id(word) for word in list(COUNTS)[:5]]
    return task.batch_of([np.array([*words, VOCABULARY.end_id]), np.array([VOCABULARY.end_id])])


BATCHES: dict[Kind, Any] = {
    "words": batch_of_words,
    "texts": batch_of_pairs,
    "labels": batch_of_labels,
    "lattices": batch_of_sentences,
}
"""A batch of two or three rows for each kind of model; its data would come from a folder."""


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_builds_and_takes_a_step(name: str) -> None:
    plan = read_plan(toy_table(name), name)
    clusters = np.arange(len(VOCABULARY)) % 3 if plan.clusters.path else None
    task = build_task(plan, VOCABULARY, GRAPH, clusters, LABELS, small_chunks())
    (make_batch,) = (make for kind, make in BATCHES.items() if kind in task.kinds)
    batch = make_batch(task, np.random.default_rng(0))
    carry = task.encoder.start(3) if isinstance(batch, torch.Tensor) else ()
    loss = task.loss(batch, carry)
    choices = LABELS if "labels" in task.kinds else VOCABULARY
    mean = float(loss.nats.detach()) / loss.count
    assert mean == pytest.approx(math.log(len(choices)), rel=0.35), "an untrained model is about as good as a guess"
    loss.nats.backward()
    learnt = [parameter for parameter in task.parameters() if parameter.requires_grad]
    assert len(learnt) > 4
    assert len(learnt) == len(list(task.parameters())) or plan.task.settings.vectors, (
        "vectors of a file alone may stay as they are"
    )
    assert all(parameter.grad is not None for parameter in learnt)
    take_a_step(plan, task, batch, carry)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_survives_its_plan(name: str) -> None:
    plan = read_plan(recipe(name), name)
    assert read_plan(plan.table(), name) == plan


def test_twins_differ_in_the_output_layer_alone() -> None:
    softmax, sdlm = (read_plan(load_recipe(f"sdlm/tied-medium-{name}"), name) for name in ("softmax", "sdlm"))
    assert softmax.encoder == sdlm.encoder
    assert softmax.optimizer == sdlm.optimizer
    assert softmax.schedule == sdlm.schedule
    changed = {key for key, value in softmax.task.settings if value != getattr(sdlm.task.settings, key)}
    assert changed == {"output_dropout"}, "the release gives SDLM its own output dropout and nothing else"


def test_the_mixture_on_penn_treebank_has_the_published_number_of_parameters() -> None:
    """21,500,620 at 10,000 words, as the public code counts them; shared ones once. Nothing is allocated."""
    vocabulary = Vocabulary.from_counts({f"w{number}": 20_000 - number for number in range(9_999)} | {"<unk>": 1})
    plan = read_plan(load_recipe("mixture/ptb-mos"), "ptb-mos")
    with torch.device("meta"):
        task = build_task(plan, vocabulary, None)
    assert sum(parameter.numel() for parameter in task.parameters()) == 21_500_620


def test_finetuning_changes_the_training_alone() -> None:
    for name in ("mixture/ptb-awd", "mixture/ptb-mos", "mixture/wt2-awd", "mixture/wt2-mos"):
        first, second = (read_plan(load_recipe(one), one) for one in (name, f"{name}-finetune"))
        assert (first.encoder, first.decoder) == (second.encoder, second.decoder)
        assert (second.optimizer.averaging, second.schedule.stop_non_monotone) == ("from_start", 5)
        assert first.optimizer.averaging == "triggered"


def test_rows_of_the_sememe_paper_start_as_it_says() -> None:
    """Sememes with the variance of the text, cells as the released code draws them."""
    rows = [name for name in ALL if name.startswith("sememe_rnn/")]
    with_sememes = [recipe(name)["encoder"] for name in rows if recipe(name)["encoder"].get("injection")]
    assert len(with_sememes) == 60
    assert {round(encoder["sememe_deviation"] ** 2, 6) for encoder in with_sememes} == {0.05}
    assert {recipe(name)["encoder"]["initialisation"] for name in rows} == {"kaiming"}


def test_rows_of_the_lattice_paper_start_as_its_release_draws_them() -> None:
    """Glorot on the table of vectors: sqrt(6 / (V + E)), V with n-grams where there are any, once for each copy."""
    rows = [name for name in ALL if name.startswith("lattice/")]
    for name in rows:
        task, prepare = recipe(name)["task"], recipe(name)["data"]["prepare"].split()
        chunks = int(prepare[prepare.index("--chunks") + 1]) if task["longest_chunk"] > 1 else 0
        size, copies = task["composition_size"] or task["embedding_size"], task.get("copies", 1)
        assert task["spread"] == round(math.sqrt(6 / ((10_000 + chunks) * copies + size)), 3), name


def test_rows_of_the_sememe_driven_paper_share_and_start_as_their_baselines() -> None:
    headlines = [read_plan(recipe(f"sdlm/lcsts-{kind}"), kind).table() for kind in ("softmax", "sdlm")]
    assert [table["decoder"]["tied"] for table in headlines] == [False, False]
    assert [table["task"]["share_embedding"] for table in headlines] == [False, False]
    for size in ("tied-medium", "tied-large", "awd"):
        layers = [read_plan(recipe(f"sdlm/{size}-{kind}"), kind).table()["decoder"] for kind in ("softmax", "mos")]
        assert [layer["bias_start"] for layer in layers] == ["zero", "zero"]


LATTICES = [name for name in ALL if name.startswith("lattice/") and recipe(name)["task"].get("max_length")]


@pytest.mark.parametrize("name", LATTICES)
def test_the_longest_sentence_of_a_paper_bounds_every_split(name: str) -> None:
    """``task.max_length`` leaves out sentences of training alone, so the data have to be prepared without longer ones."""
    longest = recipe(name)["task"]["max_length"]
    assert f" --max-length {longest} " in recipe(name)["data"]["prepare"]
