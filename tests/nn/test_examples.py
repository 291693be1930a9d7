"""The files of docs/examples as a user copies them: a model of transformers, an exported program, a run in int8."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from math import log
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from sememekit import load_run, train
from tests.small_run import Place
from tests.tiny_models import save_quietly

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PIECES = 40
SENSES = [[["human"], ["tool", "work"]], [["work"]], []] * 13 + [[]]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["gpt2", "qwen2"])
def backbone(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with an untrained model without dropout: one with absolute and one with rotary positions."""
    transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    torch.manual_seed(5)
    ids = {"vocab_size": PIECES, "bos_token_id": 0, "eos_token_id": 0}
    if request.param == "gpt2":
        rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}
        model = transformers.GPT2Model(transformers.GPT2Config(**ids, **sizes, **rates))
    else:
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        model = transformers.Qwen2Model(transformers.Qwen2Config(**ids, **sizes, intermediate_size=32))
    save_quietly(model, tmp_path / "backbone")
    return tmp_path / "backbone"


def build(backbone: Path, senses: list[Any] = SENSES) -> tuple[Any, Any]:
    example = load("causal_lm")
    config = example.SememeConfig.of(str(backbone), senses, num_bases=2)
    return example, example.SememeForCausalLM.from_backbone(str(backbone), config).eval()


def texts(count: int = 4) -> torch.Tensor:
    return torch.randint(1, PIECES, (count, 12), generator=torch.Generator().manual_seed(7))


def test_it_starts_from_the_backbone_and_is_saved_and_read_to_the_bit(backbone: Path, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    example, model = build(backbone)
    hidden = transformers.AutoModel.from_pretrained(backbone).eval()(texts()).last_hidden_state
    torch.testing.assert_close(model(texts()).logits, model.out.log_prob(hidden), atol=0, rtol=0)
    loss = model(texts(), labels=texts()).loss
    expected = -model(texts()).logits[:, :-1].gather(-1, texts()[:, 1:, None]).mean()
    torch.testing.assert_close(loss, expected)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    save_quietly(model, tmp_path / "saved")
    again = example.SememeForCausalLM.from_pretrained(tmp_path / "saved").eval()
    assert torch.equal(again(texts()).logits, model(texts()).logits)
    assert again.out.layer.words.weight is again.get_input_embeddings().weight
    assert again.config.senses == model.config.senses


def test_it_gives_logits_beside_the_loss_if_asked(backbone: Path, tmp_path: Path) -> None:
    example, model = build(backbone)
    assert model(texts(), labels=texts()).logits is None
    both, alone = model(texts(), labels=texts(), logits_with_loss=True), model(texts())
    assert torch.equal(both.logits, alone.logits)
    assert torch.equal(both.loss, model(texts(), labels=texts()).loss)
    model.config.logits_with_loss = True
    save_quietly(model, tmp_path / "both")
    assert example.SememeForCausalLM.from_pretrained(tmp_path / "both")(texts(), labels=texts()).logits is not None
    half = model.to(torch.bfloat16)
    found = half(texts(), labels=texts())
    assert (found.loss.dtype, found.logits.dtype) == (torch.bfloat16, torch.float32), "log-probabilities"
    torch.testing.assert_close(found.loss.float(), both.loss, rtol=0.05, atol=0.05)
    assert half.generate(texts(1), max_new_tokens=3, do_sample=False, pad_token_id=0).shape == (1, 15)


def test_trainer_computes_metrics_of_its_logits(backbone: Path, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    pytest.importorskip("accelerate", reason="Trainer needs accelerate")
    _, model = build(backbone)
    model.config.logits_with_loss = True
    data = [{"input_ids": row, "labels": row} for row in texts()]

    def metrics(found: Any) -> dict[str, float]:
        logs, wanted = torch.from_numpy(found.predictions)[:, :-1], torch.from_numpy(found.label_ids)[:, 1:]
        return {"nats": float(-logs.gather(-1, wanted[..., None]).mean())}

    given = {"output_dir": str(tmp_path), "report_to": [], "use_cpu": True, "disable_tqdm": True}
    trainer = transformers.Trainer(model, transformers.TrainingArguments(**given), eval_dataset=data, compute_metrics=metrics)
    found = trainer.evaluate()
    assert found["eval_nats"] == pytest.approx(found["eval_loss"], rel=1e-5)


def test_it_writes_text_as_its_probabilities_say(backbone: Path) -> None:
    _, model = build(backbone)
    start, told = texts()[:, :3], {"max_new_tokens": 6, "attention_mask": torch.ones(4, 3, dtype=torch.long), "pad_token_id": 0}
    by_hand = start
    for _ in range(6):
        by_hand = torch.cat([by_hand, model(by_hand).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    written = model.generate(start, do_sample=False, eos_token_id=-1, **told)
    assert torch.equal(written, by_hand)
    beams = model.generate(start, num_beams=3, eos_token_id=-1, **told)

    def score(ids: torch.Tensor) -> torch.Tensor:
        return model(ids).logits[:, :-1].gather(-1, ids[:, 1:, None])[:, 2:].sum(dim=(1, 2))

    assert bool((score(beams) >= score(written) - 1e-4).all())


@pytest.mark.parametrize("last", [[], [["work"]]], ids=["some without senses", "all with senses"])
def test_more_pieces_keep_what_was_learned_and_may_have_senses(last: list[Any], backbone: Path, tmp_path: Path) -> None:
    """The sememe of words without senses comes first in the order of sememes, so in the second case all others move."""
    senses = [word or last for word in SENSES]
    example, model = build(backbone, senses)
    before = model(texts()).logits
    model.config.senses = [*model.config.senses, [[model.config.sememes.index("human"), model.config.sememes.index("work")]]]
    model.resize_token_embeddings(PIECES + 3)
    after = model(texts()).logits
    assert after.shape[-1] == PIECES + 3
    torch.testing.assert_close(after.exp().sum(-1), torch.ones(4, 12))
    torch.testing.assert_close(after[..., :PIECES].log_softmax(-1), before, atol=1e-5, rtol=1e-5)
    assert model.config.senses[PIECES + 1 :] == [[], []]
    assert model.out.sememes == ("<unk>", "human", "tool", "work")
    save_quietly(model, tmp_path / "larger")
    again = example.SememeForCausalLM.from_pretrained(tmp_path / "larger").eval()
    assert torch.equal(again(texts()).logits, after)


def test_an_embedding_that_is_replaced_is_shared_and_comes_back(backbone: Path, tmp_path: Path) -> None:
    example, model = build(backbone)
    model.backbone.set_input_embeddings(torch.nn.Embedding(PIECES, 16))
    model.tie_weights()
    expected = model(texts(), labels=texts()).loss
    save_quietly(model, tmp_path / "other")
    again = example.SememeForCausalLM.from_pretrained(tmp_path / "other").eval()
    torch.testing.assert_close(again(texts(), labels=texts()).loss, expected, atol=0, rtol=0)


def first_losses(backbone: Path, accumulated: int, folder: Path) -> list[float]:
    transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    pytest.importorskip("accelerate", reason="Trainer needs accelerate, which the extra 'dev' has")
    torch.manual_seed(1)
    _, model = build(backbone)
    rows = [{"input_ids": row, "labels": row.where(torch.arange(12) < 3 + place, -100)} for place, row in enumerate(texts(8))]
    told = {"max_steps": 2, "logging_steps": 1, "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True}
    sizes = {"per_device_train_batch_size": 8 // accumulated, "gradient_accumulation_steps": accumulated}
    arguments = transformers.TrainingArguments(str(folder), **sizes, **told)
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < 2 * log(PIECES)
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def test_trainer_reports_the_same_loss_however_gradients_are_accumulated(backbone: Path, tmp_path: Path) -> None:
    """Texts have 3 to 10 targets, so that a mean of means would differ; an untrained model is near log V."""
    at_once = first_losses(backbone, 1, tmp_path)
    assert at_once[0] == pytest.approx(log(PIECES), rel=0.1)
    assert first_losses(backbone, 4, tmp_path) == pytest.approx(at_once, abs=2e-4)


@pytest.mark.parametrize("decoder", ["softmax", "sdlm"])
def test_an_exported_program_needs_torch_alone_and_answers_alike(decoder: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(Place(tmp_path).table(decoder, schedule__epochs=1), folder)
    load("export_next_words").export(str(folder), str(tmp_path / "next-words.pt2"))
    run = load_run(folder)
    words = (tmp_path / "next-words.words.txt").read_text(encoding="utf-8").splitlines()
    assert words == list(run.vocabulary.tokens)
    ids, size = [1, 3, 2], run.task.encoder.start(1)[0].shape[-1]
    script = (
        "import sys, torch\nsys.modules['sememekit'] = None\n"
        f"step = torch.export.load({str(tmp_path / 'next-words.pt2')!r}).module()\n"
        f"state = tuple(torch.zeros(1, {size}) for _ in range({len(run.task.encoder.start(1))}))\n"
        f"for word in {ids}:\n    logs, state = step(torch.tensor([word]), state)\n"
        "print(*logs[0].tolist())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    with torch.no_grad():
        hidden, _ = run.task.eval().contexts(torch.tensor(ids)[:, None], run.task.encoder.start(1))
        expected = run.task.decoder.log_probs(hidden[-1])[0]
    torch.testing.assert_close(torch.tensor([float(word) for word in done.stdout.split()]), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("decoder", ["softmax", "sdlm"])
def test_a_run_in_int8_answers_almost_alike(decoder: str, tmp_path: Path) -> None:
    train(Place(tmp_path).table(decoder, schedule__epochs=1), tmp_path / "run")
    whole, example = load_run(tmp_path / "run", device="cpu"), load("int8_next_words")
    rounded = example.in_int8(load_run(tmp_path / "run", device="cpu"))
    assert all(type(layer).__module__.startswith("torch.ao.nn.quantized") for layer in rounded.task.encoder.stack)
    text = " ".join(whole.vocabulary.tokens[:4])
    exact, found = (
        dict(zip(*map(run.next_words(text, top=9).column, ("word", "probability")), strict=True)) for run in (whole, rounded)
    )
    assert found != exact, "nothing was rounded"
    assert found == pytest.approx(exact, rel=0.05)
    assert rounded.perplexity(text) == pytest.approx(whole.perplexity(text), rel=0.02)
