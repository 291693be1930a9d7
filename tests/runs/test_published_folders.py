"""Folders of Hugging Face that cannot be used are refused in one line, and texts are read in one pass."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit import load_run
from sememekit.commands._program import app
from sememekit.encoders.piece_model import PieceModel
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.small_run import write_text
from tests.tiny_models import save_quietly, write_classifier, write_gpt2, write_masked

transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
safetensors: Any = pytest.importorskip("safetensors.torch", reason="the extra 'hf' is not installed")

LEXICON = "word\tsememes\n苹果\tfruit\n苹果\tcomputer brand\n梨\tfruit\n电脑\tcomputer\n我\thuman\n吃\teat\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders")
    for name, write in (("gpt", write_gpt2), ("masked", write_masked)):
        (folder / name).mkdir()
        write(folder / name)
    (folder / "classifier").mkdir()
    write_classifier(folder / "classifier", ["0", "1"])
    (folder / "lex.tsv").write_text(LEXICON, encoding="utf-8")
    texts = "".join(f"我 吃 {word}\t{label}\n" for word in ("苹果", "梨") for label in "01")
    (folder / "texts.tsv").write_text(f"sentence\tlabel\n{texts}", encoding="utf-8")
    preprocess("plain", write_text(folder / "text", 20), folder / "data", PreprocessSettings(segmenter="none"))
    return folder


def weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        read = safetensors.load_file(folder / "model.safetensors")
        change(read)
        safetensors.save_file(read, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def described(**changes: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "config.json"
        table = json.loads(file.read_text(encoding="utf-8")) | changes
        left = {key: value for key, value in table.items() if value is not None}
        file.write_text(json.dumps(left), encoding="utf-8")

    return damage


def with_more_pieces(folder: Path) -> None:
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer.add_tokens(["云计算", "苹果树"])
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))


def cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-40])


def set_first(value: float) -> Callable[[dict[str, torch.Tensor]], None]:
    def change(read: dict[str, torch.Tensor]) -> None:
        next(tensor for tensor in read.values() if tensor.is_floating_point()).view(-1)[0] = value

    return change


def drop(read: dict[str, torch.Tensor]) -> None:
    read.pop(next(name for name in sorted(read) if "mlp" in name or "intermediate" in name))


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "more pieces than rows": (with_more_pieces, "has 292 pieces, and the model 290 rows, none for .*resize_token_embeddings"),
    "nan": (weights(set_first(float("nan"))), "holds weights that are not finite"),
    "inf": (weights(set_first(float("inf"))), "holds weights that are not finite"),
    "cut off": (cut, "model.safetensors is damaged or cut off"),
    "missing tensor": (weights(drop), "has no weights for"),
    "other sizes": (described(n_embd=8, hidden_size=8), "in the weights and .* by config.json"),
    "no kind": (described(model_type=None), "has no model_type"),
    "no configuration": (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights as safetensors"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer"),
}


def invoke(*words: str, code: int = 0, text: str | None = None) -> Any:
    done = CliRunner().invoke(app, [*words], input=text)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused_by_every_command(place: Path, tmp_path: Path, name: str) -> None:
    damage, told = DAMAGES[name]
    source = ("--source", f"table:{place / 'lex.tsv'}")
    for kind in ("gpt", "classifier"):
        damage(Path(shutil.copytree(place / kind, tmp_path / kind)))
    causal, classifier = f"hf:{tmp_path / 'gpt'}", f"hf:{tmp_path / 'classifier'}"
    train = ("train", "--encoder", causal, "--data", str(place / "data"), "--set", "encoder.context=32")
    for typed in (
        ("tag", causal, *source),
        ("explain", causal, "我 吃", *source),
        (*train, "--set", "encoder.overlap=8", "--out", str(tmp_path / "run")),
        ("attack", classifier, "--data", str(place / "texts.tsv"), *source, "--out", str(tmp_path / "attack")),
    ):
        if name == "other sizes" and typed[0] == "train":
            continue  # the width of the encoder is read from config.json, too
        found = " ".join(invoke(*typed, code=1, text="我 吃 苹果\n").stderr.split())
        assert "bug" not in found
        assert re.search(told, found), found
    assert not (tmp_path / "attack").exists()


def test_a_special_piece_without_a_row_is_refused_where_a_text_has_it(place: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(place / "gpt", tmp_path / "special"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens({"additional_special_tokens": ["<extra>"]})
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    typed = ("tag", f"hf:{folder}", "--source", f"table:{place / 'lex.tsv'}")
    invoke(*typed, text="我 吃 苹果\n")
    assert "'<extra>', and the model has no row for this special piece" in invoke(*typed, code=1, text="我 <extra> 吃\n").stderr


def test_a_model_with_many_more_rows_than_pieces_is_remarked_on(place: Path, tmp_path: Path) -> None:
    source = ("--source", f"table:{place / 'lex.tsv'}")
    for rows, remarks in ((400, 1), (300, 0)):
        folder = Path(shutil.copytree(place / "gpt", tmp_path / str(rows)))
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        model.resize_token_embeddings(rows)
        save_quietly(model, folder)
        found = " ".join(invoke("tag", f"hf:{folder}", *source, text="我 吃 苹果\n").stderr.split())
        assert found.count(f"the tokenizer has 290 pieces, and the model {rows} rows; if the tokenizer is of") == remarks


def test_a_model_without_marks_is_explained_and_tagged(place: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(place / "gpt", tmp_path / "unmarked"))
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    source = ("--source", f"table:{place / 'lex.tsv'}")
    explained = json.loads(invoke("explain", f"hf:{folder}", "我 吃", *source, "--json").stdout)
    lines = invoke("tag", f"hf:{folder}", *source, "--format", "jsonl", text="我 吃 苹果\n").stdout.splitlines()
    rows = [json.loads(line) for line in lines[1:]]
    assert [word["read_as"] for word in explained["context"]] == [row["read_as"] for row in rows[:2]]
    ids = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))("\n我")["input_ids"]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    expected = -sum(float(logs[at - 1, ids[at]]) for at in range(1, len(ids)))
    assert rows[0]["nats"] == pytest.approx(expected, rel=1e-4), "a line end stands before the first word"


def test_a_model_without_a_limit_of_positions_is_attacked(place: Path, tmp_path: Path) -> None:
    (tmp_path / "xlnet").mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(place / "classifier" / name, tmp_path / "xlnet")
    told = {"pad_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"}  # and no model_max_length
    (tmp_path / "xlnet" / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
    sizes = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16, "vocab_size": 290, "pad_token_id": 0}
    config = transformers.XLNetConfig(**sizes, id2label={0: "0", 1: "1"})
    transformers.XLNetForSequenceClassification(config).save_pretrained(tmp_path / "xlnet")
    typed = ("attack", f"hf:{tmp_path / 'xlnet'}", "--data", str(place / "texts.tsv"), "--out", str(tmp_path / "attack"))
    invoke(*typed, "--source", f"table:{place / 'lex.tsv'}")
    rows = [json.loads(line) for line in (tmp_path / "attack" / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows
    assert "error" not in {row["outcome"] for row in rows}


@pytest.mark.parametrize("kind", ["gpt", "masked"])
def test_rows_read_in_one_pass_are_as_each_alone(place: Path, kind: str) -> None:
    model = PieceModel(str(place / kind))
    text = [int(piece) for piece in np.random.default_rng(1).integers(5, max(model.tokenizer.ordinary.values()), 30)]
    lefts = [[], text[:1], text[:12], text[:30], text[5:9], text[:12]]
    more = [(2, [7]), (3, [8, 9]), (0, [7, 8, 9]), (1, [11])]
    seen, found, longer = [], torch.zeros(len(lefts), 0), {}
    for rows, logs, further in model.after(lefts):
        if not found.shape[1]:
            found = torch.zeros(len(lefts), logs.shape[1])
        found[rows] = logs
        seen += rows
        if wanted := [(row, begun) for row, begun in more if row in rows]:
            longer.update(zip((row for row, _ in wanted), further(wanted), strict=True))
    assert sorted(seen) == [0, 1, 2, 3, 4, 5]
    for row, left in enumerate(lefts):
        [(_, alone, _)] = model.after([left])
        torch.testing.assert_close(found[row], alone[0], atol=1e-5, rtol=1e-5)
        assert float(found[row].exp().sum()) == pytest.approx(1.0, abs=1e-5)
    for row, begun in more[:2]:
        [(_, alone, _)] = model.after([[*lefts[row], *begun]])
        torch.testing.assert_close(longer[row], alone[0], atol=1e-5, rtol=1e-5)
    if kind == "gpt":
        whole = torch.tensor([[0, *text[:3], 7, *text[20:22]]])
        with torch.no_grad():
            logs = model.model(whole).logits[0].double().log_softmax(-1)
        expected = float(sum(logs[at - 1, int(whole[0, at])] for at in range(4, 7)))
        assert model.in_sentence(text[:3], [[9, 9], [7]], text[20:22])[1] == pytest.approx(expected, abs=1e-5)


def test_means_are_kept_and_made_anew_if_damaged(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMEMEKIT_CACHE", str(tmp_path / "kept"))

    def means() -> dict[str, float]:
        run = load_run(f"hf:{place / 'gpt'}", sources=[f"table:{place / 'lex.tsv'}"])
        found = run.explain("我 吃", mean="valid").report
        return {one.name: one.mean for word in found.words for sense in word.senses for one in sense.sememes}

    first = means()
    [file] = (tmp_path / "kept").iterdir()
    content, written = file.read_bytes(), file.stat().st_mtime_ns
    assert means() == first
    assert file.stat().st_mtime_ns == written, "read, not written"
    for damaged in (content[:-30], b"{}", content.replace(b"0", b"1", 1)):
        file.write_bytes(damaged)
        assert means() == first
        assert file.read_bytes() == content
