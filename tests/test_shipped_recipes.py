"""Every recipe that ships is found, read, and builds a model that learns a step at toy size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from sememekit.attack import is_attack
from sememekit.build import Plan, build_task, read_plan
from sememekit.config import resources_folder
from sememekit.config.recipes import list_recipes, load_recipe
from sememekit.sememes import build_graph
from sememekit.tasks.classifier import TextClassifier
from sememekit.tasks.lattice import Lattice
from sememekit.tasks.seq2seq import SequenceToSequence
from sememekit.text import Vocabulary
from sememekit.text.chunks import ChunkVocabulary
from tests.small import COUNTS, small_graph, small_lexicon, small_vocabulary

ALL = [recipe.name for recipe in list_recipes()]
NAMES = [name for name in ALL if not is_attack(load_recipe(name))]
"""Recipes that train a model; those of attacks are tried in tests/attack/test_recipes.py."""

TOY: dict[str, dict[str, Any]] = {
    "task": {"embedding_size": 8, "batch_size": 3},
    "encoder": {"hidden_size": 8},
    "run": {"threads": 1},
}
"""What makes any recipe small; everything else stays as the recipe has it."""


WRITERS = ("headline", "dialogue")
"""Tasks from text to text."""


def toy_table(name: str) -> dict[str, Any]:
    table = load_recipe(name)
    toy = {**table, **{slot: {**table.get(slot, {}), **keys} for slot, keys in TOY.items()}}
    if toy["task"].get("name") in WRITERS:
        toy["task"]["hidden_size"] = 8
        toy["encoder"]["hidden_size"] = 4 if toy["encoder"]["name"].startswith("bi") else 8
    return toy


def test_the_listing_finds_every_file() -> None:
    files = {path.relative_to(resources_folder() / "recipes").with_suffix("").as_posix() for path in files_of_recipes()}
    assert set(ALL) == files
    assert len(NAMES) >= 6


def files_of_recipes() -> list[Any]:
    return list((resources_folder() / "recipes").rglob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_builds_and_takes_a_step(name: str) -> None:
    plan = read_plan(toy_table(name), name)
    if plan.decoder is None:
        check_a_classifier(plan)
        return
    if plan.task.name in WRITERS:
        check_a_writer(plan)
        return
    if plan.task.name == "lattice":
        check_a_lattice(plan)
        return
    task = build_task(plan, small_vocabulary(), small_graph())
    tokens = torch.randint(0, len(small_vocabulary()), (6, 3), generator=torch.Generator().manual_seed(0))
    loss = task.loss(tokens, task.encoder.start(3))
    mean = float(loss.nats.detach()) / loss.count
    assert mean == pytest.approx(math.log(len(small_vocabulary())), rel=0.35), "an untrained model is about as good as a guess"
    loss.nats.backward()
    assert all(parameter.grad is not None for parameter in task.parameters())


def check_a_writer(plan: Plan) -> None:
    """The same for a model from text to text."""
    vocabulary = Vocabulary.from_counts(COUNTS, ("<s>", "</s>"))
    clusters = np.arange(len(vocabulary)) % 3 if plan.clusters.path else None
    task = build_task(plan, vocabulary, build_graph(vocabulary, [small_lexicon()]), clusters)
    assert isinstance(task, SequenceToSequence)
    generator = np.random.default_rng(0)
    pairs = [(generator.integers(0, len(vocabulary), size), generator.integers(0, len(vocabulary), 3)) for size in (7, 4)]
    loss = task.loss(task.batch_of(pairs), ())
    assert float(loss.nats.detach()) / loss.count == pytest.approx(math.log(len(vocabulary)), rel=0.35)
    loss.nats.backward()
    assert all(parameter.grad is not None for parameter in task.parameters())


def check_a_lattice(plan: Plan) -> None:
    """The same for a model of sentences, which have an end; its chunks would come with the data."""
    vocabulary = Vocabulary.from_counts({**COUNTS, "<eos>": 9})
    words = [word for word in range(len(vocabulary)) if word not in (vocabulary.unknown_id, vocabulary.end_id)][:5]
    chunks = ChunkVocabulary(vocabulary, [tuple(words[:2]), tuple(words[:3])], [2, 2], max_length=4)
    task = build_task(plan, vocabulary, build_graph(vocabulary, [small_lexicon()]), chunks=chunks)
    assert isinstance(task, Lattice)
    loss = task.loss(task.batch_of([np.array([*words, vocabulary.end_id]), np.array([vocabulary.end_id])]), ())
    mean = float(loss.nats.detach()) / loss.count
    assert mean == pytest.approx(math.log(len(vocabulary)), rel=0.35), "an untrained model is about as good as a guess"
    loss.nats.backward()
    assert all(parameter.grad is not None for parameter in task.parameters())


def check_a_classifier(plan: Plan) -> None:
    """The same for a model of labels: its vocabulary has marks, and its vectors would come from a file."""
    vocabulary = Vocabulary.from_counts(COUNTS, ("<s>", "</s>"))
    task = build_task(plan, vocabulary, build_graph(vocabulary, [small_lexicon()]), labels=("yes", "no"))
    assert isinstance(task, TextClassifier)
    generator = np.random.default_rng(0)
    texts = [[generator.integers(0, len(vocabulary), size) for size in (5, 3)[: task.num_texts]] for _ in range(3)]
    loss = task.loss(task.batch_of(texts, np.array([0, 1, 0])), ())
    assert float(loss.nats.detach()) / loss.count == pytest.approx(math.log(2), rel=0.35)
    loss.nats.backward()
    learnt = [parameter for parameter in task.parameters() if parameter.requires_grad]
    assert len(learnt) > 4
    assert all(parameter.grad is not None for parameter in learnt)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_survives_its_plan(name: str) -> None:
    plan = read_plan(load_recipe(name), name)
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
    with_sememes = [load_recipe(name)["encoder"] for name in rows if load_recipe(name)["encoder"].get("injection")]
    assert len(with_sememes) == 36
    assert {round(encoder["sememe_deviation"] ** 2, 6) for encoder in with_sememes} == {0.05}
    assert {load_recipe(name)["encoder"]["initialisation"] for name in rows} == {"kaiming"}
