"""The cloze task: a word is predicted from all others of its line, and from nothing else."""

import math

import numpy as np
import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.measure.perplexity import tallies
from sememekit.runs.build import build_task
from sememekit.runs.plan import read_plan
from sememekit.tasks.cloze import Cloze
from tests.small import small_vocabulary
from tests.small_run import Place

TABLE = {
    "task": {"name": "cloze", "embedding_size": 6, "batch_size": 3, "chunk_length": 5, "evaluation_batch_size": 2},
    "encoder": {"hidden_size": 4, "num_layers": 2},
    "decoder": {"name": "softmax", "tied": False},
    "run": {"seed": 3},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("cloze"))


@pytest.fixture(params=["lstm", "gru", "transformer"])
def task(request: pytest.FixtureRequest) -> Cloze:
    sizes = {"transformer": {"hidden_size": 4, "num_heads": 2}}.get(request.param, {"hidden_size": 4, "num_layers": 2})
    plan = read_plan({**TABLE, "encoder": {"name": request.param, **sizes}}, "the plan")
    found = build_task(plan, small_vocabulary(), None)
    assert isinstance(found, Cloze)
    return found.double().eval()


def lines(number: int, seed: int = 0) -> list[np.ndarray]:
    source = np.random.default_rng(seed)
    return [source.integers(0, len(small_vocabulary()), length) for length in source.integers(1, 9, number)]


def test_a_context_is_of_all_words_but_its_own(task: Cloze) -> None:
    tokens = torch.tensor([1, 4, 2, 5, 3])[:, None]
    before = task.both_sides(tokens)[:, 0]
    for changed in range(5):
        other = tokens.clone()
        other[changed] = 0
        same = (task.both_sides(other)[:, 0] - before).abs().amax(dim=1) < 1e-12
        assert same.tolist() == [place == changed for place in range(5)]


def test_a_line_is_scored_as_if_it_were_alone(task: Cloze) -> None:
    texts = lines(7)
    together = torch.cat([one.nats.T[one.mask.T] for one in task.score(texts)])
    alone = torch.cat([one.nats.flatten() for text in texts for one in task.score([text])])
    torch.testing.assert_close(together, alone)
    twin = []
    for text in texts:
        hidden = task.both_sides(torch.from_numpy(text)[:, None])[:, 0]
        twin += [-task.decoder.log_probs(row[None])[0, word].item() for row, word in zip(hidden, text, strict=True)]
    assert together.tolist() == pytest.approx(twin, rel=1e-12)


def test_the_loss_is_of_each_word_but_the_first_of_the_next_segment(task: Cloze) -> None:
    batch = torch.from_numpy(np.random.default_rng(1).integers(0, 5, (6, 3)))
    loss = task.loss(batch, ())
    contexts = task.both_sides(batch)
    twin = -task.decoder.log_probs(contexts[:-1]).gather(-1, batch[:-1, :, None]).sum()
    assert (loss.count, loss.carry) == (15, ())
    torch.testing.assert_close(loss.nats, twin)
    loss.nats.backward()
    assert all(part.grad is not None and part.grad.abs().sum() > 0 for part in task.back.parameters())


def test_each_word_of_a_split_is_scored_once(place: Place) -> None:
    task = build_task(read_plan(TABLE, "the plan"), place.data.vocabulary, None).eval()
    assert isinstance(task, Cloze)
    tokens, size = place.data.tokens("valid"), task.settings.evaluation_chunk_length
    twin = tallies(task.score([tokens[begin : begin + size] for begin in range(0, len(tokens), size)]))[0]
    found = task.evaluate(place.data, "valid")
    assert found["tokens"] == len(tokens) == twin.count
    assert found["pseudo_perplexity"] == pytest.approx(math.exp(twin.nats / twin.count))


def test_an_encoder_that_has_read_the_word_is_refused() -> None:
    with pytest.raises(ConfigError, match="task 'cloze' predicts a word that encoder 'bilstm' has read already"):
        build_task(read_plan({**TABLE, "encoder": {"name": "bilstm"}}, "the plan"), small_vocabulary(), None)
