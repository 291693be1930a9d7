"""A causal language model of Hugging Face as encoder: what each word sees, and the figures that transformers itself gives."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sememekit.data.prepared import PreparedData
from sememekit.encoders.base import EncoderResources, FromFiles
from sememekit.encoders.pretrained import Pretrained
from sememekit.errors import CheckpointError, ConfigError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.measure.perplexity import tallies
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.build import build_task, kept_of
from sememekit.runs.plan import read_plan
from sememekit.runs.run import Run
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.huggingface import HuggingFacePieces
from tests.small_run import Place
from tests.tiny_models import save_quietly, write_gpt2

TIME, BATCH = 9, 3

pytest.importorskip("transformers")
pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gpt2(tmp_path_factory.mktemp("gpt2"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("words"), end_of_sentence=True)


@pytest.fixture(scope="module")
def pieces(model: Path, tmp_path_factory: pytest.TempPathFactory, place: Place) -> PreparedData:
    """Return the text as the tokenizer of the model cuts it."""
    out = tmp_path_factory.mktemp("pieces") / "data"
    preprocess("plain", place.text, out, PreprocessSettings(segmenter=f"hf:{model}", end_of_sentence=False))
    return PreparedData.open(out)


def made(model: Path, data: PreparedData, **settings: Any) -> Pretrained:
    chosen = Pretrained.Settings(**{"path": str(model), "context": 13, "overlap": 5, **settings})
    encoder = Pretrained(chosen, EncoderResources(16, data.vocabulary, kept=Pretrained.keep(chosen, data)))
    encoder.read_weights()
    return encoder.double().eval()


def some_words(data: PreparedData, time: int = TIME, batch: int = BATCH) -> Tensor:
    source = torch.Generator().manual_seed(9)
    return torch.randint(len(data.vocabulary), (time, batch), generator=source)


def read(encoder: Pretrained, tokens: Tensor, state: Any = None, lengths: Tensor | None = None) -> Any:
    return encoder(torch.zeros(*tokens.shape, 16), tokens, encoder.start(tokens.shape[1]) if state is None else state, lengths)


def written_out(encoder: Pretrained, words: list[int], context: int, overlap: int) -> Tensor:
    """(T, H) by the definition: each word alone, with the pieces of its block up to its last one."""
    block: list[int] = []
    states = []
    for word in words:
        own = list(encoder._pieces[word])
        if len(block) + len(own) > context:
            block = block[len(block) - min(overlap, context - len(own)) :]
        block = block + own
        states.append(encoder.model(input_ids=torch.tensor([block]))[0][0, -1])
    return torch.stack(states)


@pytest.mark.parametrize(("context", "overlap"), [(13, 5), (12, 0), (48, 47)])
def test_what_a_word_sees(model: Path, place: Place, context: int, overlap: int) -> None:
    encoder = made(model, place.data, context=context, overlap=overlap)
    tokens = some_words(place.data, 30)
    hidden = read(encoder, tokens).hidden
    for row in range(BATCH):
        expected = written_out(encoder, tokens[:, row].tolist(), context, overlap)
        torch.testing.assert_close(hidden[:, row], expected, rtol=0, atol=1e-12)


def test_how_the_text_was_cut_for_computing_changes_nothing(model: Path, place: Place) -> None:
    """Halves with the state carried, single steps, rows alone and moved, rows of different lengths, what comes later."""
    encoder = made(model, place.data)
    tokens = some_words(place.data)
    warm = read(encoder, some_words(place.data, 5)).state
    whole = read(encoder, tokens, warm)
    first = read(encoder, tokens[:4], warm)
    second = read(encoder, tokens[4:], first.state)
    torch.testing.assert_close(torch.cat([first.hidden, second.hidden]), whole.hidden, rtol=0, atol=1e-12)
    assert torch.equal(second.state[0], whole.state[0])
    state = warm
    for time in range(TIME):
        hidden, state = encoder.step(torch.zeros(BATCH, 16), tokens[time], state)
        torch.testing.assert_close(hidden, whole.hidden[time], rtol=0, atol=1e-12)
    order = torch.tensor([2, 0, 0])
    moved = read(encoder, tokens[:, order], (warm[0][order],))
    torch.testing.assert_close(moved.hidden, whole.hidden[:, order], rtol=0, atol=1e-12)
    lengths = torch.tensor([3, TIME, 1])
    short = read(encoder, tokens, warm, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = read(encoder, tokens[:length, row : row + 1], (warm[0][row : row + 1],))
        torch.testing.assert_close(short.hidden[:length, row], alone.hidden[:, 0], rtol=0, atol=1e-12)
        assert not short.hidden[length:, row].any()
        assert torch.equal(short.state[0][row], alone.state[0][0])
    other = tokens.clone()
    other[6:] = 0
    torch.testing.assert_close(read(encoder, other, warm).hidden[:6], whole.hidden[:6], rtol=0, atol=1e-12)


def test_a_start_of_text_begins_every_block(model: Path, place: Place, tmp_path: Path) -> None:
    """A tokenizer that puts a piece before a text."""
    import tokenizers

    folder = Path(shutil.copytree(model, tmp_path / "bos"))
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    template = tokenizers.processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)])
    tokenizer.post_processor = template
    tokenizer.save(str(folder / "tokenizer.json"))
    encoder = made(folder, place.data, context=12, overlap=0)
    tokens = some_words(place.data, 20, 1)
    encoded = read(encoder, tokens)
    assert encoder._first == (0,)
    first = list(encoder._pieces[int(tokens[0, 0])])
    expected = encoder.model(input_ids=torch.tensor([[0, *first]]))[0][0, -1]
    torch.testing.assert_close(encoded.hidden[0, 0], expected, rtol=0, atol=1e-12)
    assert int(encoded.state[0][0, 0]) == 1, "the last block, too, begins with it"


def table_of(data: PreparedData, model: Path, **changes: Any) -> dict[str, Any]:
    table: dict[str, Any] = {
        "data": {"path": str(data.folder)},
        "task": {"embedding_size": 16, "batch_size": 4, "chunk_length": 16, "evaluation_batch_size": 1},
        "encoder": {"name": "hf", "path": str(model), "context": 24, "overlap": 8},
        "decoder": {"bias": False},
        "optimizer": {"learning_rate": 0.5},
        "schedule": {"epochs": 2},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0, "report_every": 5},
    }
    for path, value in changes.items():
        slot, _, key = path.partition("__")
        table[slot] = {**table.get(slot, {}), key: value}
    return table


def test_word_vectors_are_as_wide_as_its_hidden_states_unless_said_otherwise(model: Path, place: Place) -> None:
    table = table_of(place.data, model)
    del table["task"]["embedding_size"]
    assert read_plan(table, "test").task.settings.embedding_size == 16  # type: ignore[attr-defined]
    del table["encoder"]
    assert read_plan(table, "test").task.settings.embedding_size == 650  # type: ignore[attr-defined]


def fresh_task(data: PreparedData, table: dict[str, Any]) -> LanguageModel:
    plan = read_plan(table, "test")
    task = build_task(plan, data.vocabulary, None, kept=kept_of(plan, data))
    assert isinstance(task, LanguageModel)
    assert isinstance(task.encoder, FromFiles)
    task.encoder.read_weights()
    task.begin_training(data)
    return task


def test_perplexity_of_its_own_pieces_is_that_of_transformers(tmp_path: Path, place: Place) -> None:
    """A whole text in one block; the output layer shares its vectors with the embedding, which begins as the model's own."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = write_gpt2(tmp_path / "long", positions=700)
    out = tmp_path / "data"
    preprocess("plain", place.text, out, PreprocessSettings(segmenter=f"hf:{model}", end_of_sentence=False))
    data = PreparedData.open(out)
    task = fresh_task(data, table_of(data, model, encoder__context=700, encoder__overlap=0))
    nats = tallies(task.score(data.tokens("test")))[0]
    whole, tokenizer = AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    assert len(data.vocabulary) == len(tokenizer), "no piece is missing, and no word is added"
    lines = (place.text / "test.txt").read_text(encoding="utf-8").splitlines()
    ids = [number for line in lines for number in tokenizer(line).input_ids]
    assert len(data.tokens("test")) == len(ids) < 700
    with torch.no_grad():
        loss = float(whole(input_ids=torch.tensor([ids]), labels=torch.tensor([ids])).loss)
    assert nats.mean == pytest.approx(loss, rel=1e-5)
    in_pieces = HuggingFacePieces.of_folder(str(model)).names
    assert data.vocabulary.decode(data.tokens("test")) == [in_pieces[number] for number in ids]


def test_perplexity_of_words_sums_over_words(model: Path, place: Place) -> None:
    """Word-level: the state after the last piece of the words before, through a softmax over words."""
    task = fresh_task(place.data, table_of(place.data, model, encoder__context=48, encoder__overlap=8)).double()
    tokens = place.data.tokens("test")[:9]
    nats = np.concatenate([part.nats.flatten().numpy() for part in task.score(tokens)])
    encoder, weight = task.encoder, task.embedding.weight
    assert isinstance(encoder, Pretrained)
    pieces: list[int] = []
    with torch.no_grad():
        for number, (word, following) in enumerate(zip(tokens[:-1].tolist(), tokens[1:].tolist(), strict=True)):
            pieces += encoder._pieces[word]
            hidden = encoder.model(input_ids=torch.tensor([pieces]))[0][0, -1]
            expected = -torch.log_softmax(weight @ hidden, dim=0)[following]
            assert nats[number] == pytest.approx(float(expected), abs=1e-9)
    word = place.data.vocabulary.id("苹果")
    assert len(encoder._pieces[word]) == 2
    own = torch.stack([encoder.model.wte.weight[piece] for piece in encoder._pieces[word]]).mean(dim=0)
    torch.testing.assert_close(weight[word], own)


@pytest.mark.parametrize("frozen", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_run_trains_resumes_and_opens_without_the_model(
    model: Path, place: Place, tmp_path: Path, frozen: bool, pieces: PreparedData
) -> None:
    data = place.data if frozen else pieces
    source = Path(shutil.copytree(model, tmp_path / "model"))
    table = table_of(data, source, encoder__frozen=frozen, schedule__epochs=2)
    report = train(table, tmp_path / "whole")
    assert (report.parameters == len(data.vocabulary) * 16) is frozen, "what is frozen is not learned"
    train({**table, "schedule": {"epochs": 1}}, tmp_path / "parts")
    stopped = {"run": {"checkpoint_every": 3}, "schedule": {"epochs": 2}}
    train(stopped, tmp_path / "parts", resume=True)
    weights = [Run.open(tmp_path / name, which="last").task.state_dict() for name in ("whole", "parts")]
    assert all(torch.equal(one, weights[1][name]) for name, one in weights[0].items())
    began = fresh_task(data, table).state_dict()
    moved = [name for name, one in weights[0].items() if not torch.equal(one, began[name])]
    assert ("encoder.model.wte.weight" in moved) is not frozen
    assert "embedding.weight" in moved
    before = Run.open(tmp_path / "whole").task.evaluate(data, "valid")
    shutil.rmtree(source)
    run = Run.open(tmp_path / "whole")
    assert run.task.evaluate(data, "valid") == before
    assert run.segmenter().segment("我 吃 苹果 。") == data.segmenter().segment("我 吃 苹果 。")


def test_runs_of_a_stopped_training_go_on_in_the_middle_of_an_epoch(model: Path, place: Place, tmp_path: Path) -> None:
    """The state that is carried from chunk to chunk, and the random numbers of dropout, are part of a checkpoint."""
    table = table_of(place.data, model, encoder__frozen=False, schedule__epochs=1)
    train(table, tmp_path / "whole")
    calls = iter(range(100))
    train(table, tmp_path / "parts", should_stop=lambda: next(calls) == 7)
    assert Run.open(tmp_path / "parts", which="last").folder.pointer() == {"last": "step-00000007"}
    train({}, tmp_path / "parts", resume=True)
    one, two = (Run.open(tmp_path / name, which="last").task.state_dict() for name in ("whole", "parts"))
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_what_cannot_be_an_encoder(model: Path, place: Place, pieces: PreparedData, tmp_path: Path) -> None:
    def fails(problem: str, data: PreparedData = place.data, folder: Path = model, **changes: Any) -> None:
        with pytest.raises(ConfigError, match=problem):
            train(table_of(data, folder, **changes), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def copy(name: str) -> Path:
        return Path(shutil.copytree(model, tmp_path / name))

    fails("is no folder; give the folder of a model", folder=tmp_path / "absent")
    fails(r"task.embedding_size=16", task__embedding_size=8)
    fails(r"has 48 positions and encoder.context is 64; add --set encoder.context=48", encoder__context=64)
    fails(r"overlap \(24\) must be less", encoder__overlap=24)
    fails(r"do not fit into a block of 3", encoder__context=3, encoder__overlap=0)
    fails("takes no lattice|cannot be the encoder of a lattice|chunks", task__name="lattice")
    bare = copy("bare")
    (bare / "tokenizer.json").unlink()
    fails("has no tokenizer.json; write one with", folder=bare)
    pickled = copy("pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    fails("no weights as safetensors; other files of weights can run code", folder=pickled)
    indexed = copy("indexed")
    (indexed / "model.safetensors").rename(indexed / "model-1.safetensors")
    (indexed / "model.safetensors.index.json").write_text('{"metadata": {}, "weight_map": {"wte.weight": "pytorch_model.bin"}}')
    fails("names 'pytorch_model.bin', which is no safetensors file of its folder", folder=indexed)
    kernel = copy("kernel")
    described = json.loads((kernel / "config.json").read_text())
    (kernel / "config.json").write_text(json.dumps({**described, "attn_implementation": "kernels-community/flash"}))
    fails("which is code of the hub", folder=kernel)
    strange = copy("strange")
    described = json.loads((strange / "config.json").read_text())
    (strange / "config.json").write_text(json.dumps({**described, "model_type": "nobody"}))
    fails("cannot open nobody as a causal language model", folder=strange)
    other = copy("other")
    (other / "tokenizer_config.json").write_text("{}")
    fails(f"cut by another tokenizer than in {other}", data=pieces, folder=other)


def test_code_beside_a_model_is_never_trusted(model: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    asked: list[Any] = []
    for name in ("from_config", "from_pretrained"):
        real = getattr(transformers.AutoModelForCausalLM, name)

        def opened(*args: Any, real: Any = real, **keys: Any) -> Any:
            asked.append(keys["trust_remote_code"])
            return real(*args, **keys)

        monkeypatch.setattr(transformers.AutoModelForCausalLM, name, opened)
    made(model, place.data)
    assert asked == [False, False]


def test_a_model_that_looks_ahead_is_refused(model: Path, place: Place, tmp_path: Path) -> None:
    import transformers

    folder = Path(shutil.copytree(model, tmp_path / "bert"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=290, max_position_embeddings=48, **sizes)
    save_quietly(transformers.BertForMaskedLM(config), folder)
    with pytest.raises(ConfigError, match="depend on the words that follow"):
        made(folder, place.data)


def test_without_the_package_the_extra_is_named(model: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"needs the package 'tokenizers'.*pip install \"sememekit\[hf\]\""):
        made(model, place.data)


def test_files_of_another_run_are_refused(model: Path, place: Place, pieces: PreparedData) -> None:
    settings = Pretrained.Settings(path=str(model), context=24, overlap=8)
    kept = Pretrained.keep(settings, place.data)
    with pytest.raises(CheckpointError, match="of different runs"):
        Pretrained(settings, EncoderResources(16, pieces.vocabulary, kept=kept))
    table = json.loads(kept)
    for wrong in ([-1], [10**9], []):
        changed = json.dumps({**table, "pieces": [wrong, *table["pieces"][1:]]}).encode()
        with pytest.raises(CheckpointError, match="a word without pieces, or a piece that is not one of the 290 of"):
            Pretrained(settings, EncoderResources(16, place.data.vocabulary, kept=changed))
    with pytest.raises(CheckpointError, match="not what sememekit wrote"):
        Pretrained(settings, EncoderResources(16, place.data.vocabulary, kept=b"{}"))
