"""Models without senses seen through a lexicon: runs of any output layer, and models of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit import load_run
from sememekit.commands._program import app
from sememekit.decoders.even_senses import EvenSenses
from sememekit.errors import ConfigError
from sememekit.jobs.train import train
from sememekit.runs.run import Run
from tests.small_run import Place
from tests.tiny_models import write_gpt2

LEXICON = "苹果\tfruit\n苹果\tcomputer brand\n梨\tfruit\n电脑\tcomputer\n我\thuman\n人\thuman\n吃\teat\n买\tbuy\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("lens"))
    train(place.table(schedule__epochs=1), place.folder / "softmax")
    (place.folder / "lex.tsv").write_text("word\tsememes\n" + LEXICON, encoding="utf-8")
    return place


def source(place: Place) -> str:
    return f"table:{place.folder / 'lex.tsv'}"


def test_a_word_shares_its_probability_evenly_and_sememes_add_up(place: Place) -> None:
    plain = Run.open(place.folder / "softmax")
    seen = Run.open(plain, sources=[source(place)])
    assert isinstance(seen.task.decoder, EvenSenses)
    graph, hidden = seen.graph, torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    assert graph is not None
    with torch.no_grad():
        words = plain.task.decoder.log_probs(hidden).exp().double()  # type: ignore[union-attr, operator]
        found = seen.task.decoder.sense_probabilities(hidden)
        attribution = seen.task.decoder.sense_attribution(hidden[0], torch.arange(len(plain.vocabulary)))
    torch.testing.assert_close(found.log_senses_NS.exp().double().sum(dim=1), torch.ones(5, dtype=torch.float64))
    masses = np.zeros((5, graph.num_sememes))
    for number, entry in enumerate(graph.entries()):
        for sense in entry.senses:
            for sememe in sense.sememes:
                masses[:, graph.sememes.index(sememe)] += words[:, number].numpy() / len(entry.senses)
        assert {share for _, share in attribution.word_senses[number]} == {1 / len(entry.senses)}
    np.testing.assert_allclose(found.gates_NK.numpy(), masses, atol=1e-6)
    assert plain.task.decoder is not seen.task.decoder
    assert plain.graph is None, "the run stays as it is"


def invoke(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_commands_see_a_softmax_through_a_lexicon(place: Place) -> None:
    run = str(place.folder / "softmax")
    bare = CliRunner().invoke(app, ["eval", run, "--explanations"])
    assert bare.exit_code == 1
    assert "--source open" in bare.stderr
    scores = invoke("eval", run, "--explanations", "--source", source(place))
    assert {"rise", "mass", "frequency"} <= {row["ranking"] for row in scores["rankings"]}
    assert scores["positions"] > 0
    found = invoke("explain", run, "我 吃", "--source", source(place))
    assert found["no_senses"] is None
    assert {item["name"] for item in found["expected"]} & {"fruit", "computer", "brand", "human", "eat", "buy"}
    apple = next(word for word in found["words"] if word["word"] == "苹果")
    assert [sense["share"] for sense in apple["senses"]] == [0.5, 0.5]
    assert "--source open" in invoke("explain", run, "我 吃")["no_senses"]


def test_a_model_of_hugging_face_is_asked_without_training(place: Place, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
    (tmp_path / "gpt2").mkdir()
    folder = write_gpt2(tmp_path / "gpt2")
    found = invoke("explain", f"hf:{folder}", "我吃苹果。我买", "--source", source(place), "--top", "5")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer("我吃苹果。我买", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = model(ids).logits[0, -1].softmax(-1).topk(5).values.tolist()
    assert [word["probability"] for word in found["words"]] == pytest.approx(expected, rel=1e-4)
    assert "predictions of valid" in found["mean"]
    english = invoke("explain", f"hf:{folder}", "a good film", "--source", source(place))
    assert [word["word"] for word in english["context"]] == ["a", "good", "film"]
    lines = (
        CliRunner()
        .invoke(app, ["tag", f"hf:{folder}", "--source", source(place), "--format", "jsonl"], input="a good film\n")
        .stdout.splitlines()
    )
    tagged = [json.loads(line)["read_as"] for line in lines[1:]]
    assert [word["read_as"] for word in english["context"]] == tagged, "words are read as tag reads them"
    assert [one.replace(" ", "") for one in tagged] == ["▁a", "▁good", "▁film"]


def test_what_a_lens_cannot_show_is_refused(place: Place, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--source"):
        load_run(place.folder / "softmax", sources=[source(place)], overlay="changes.json")
    done = CliRunner().invoke(app, ["explain", f"hf:{tmp_path / 'none'}", "a", "--source", "open"])
    assert done.exit_code == 1
    assert "is no folder" in done.stderr
