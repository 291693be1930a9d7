"""Classifiers of other libraries as victims: folders and pipelines of transformers, scikit-learn's manner, pickles, logits."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sememekit import attack_classifier
from sememekit.attack.searches import softmax
from sememekit.config import trusting_code
from sememekit.errors import CheckpointError, ConfigError
from sememekit.files import sealed
from sememekit.jobs.attack import attack as attack_command
from sememekit.runs.attacks.adapters import _classifier, _labels_of, _longest, adapted
from sememekit.runs.attacks.victims import open_victim
from tests.attack.toys import LABELS, TABLE, TEXTS, predict
from tests.tiny_models import save_quietly, write_classifier

WORDS = [text for text, _ in TEXTS]
GOLD = [label for _, label in TEXTS]


class Model:
    """A classifier with the interface of scikit-learn; it can be pickled."""

    def __init__(self) -> None:
        self.classes_ = np.array(LABELS)

    def predict_proba(self, texts: list[str]) -> np.ndarray:
        return predict(texts)


model = Model()


class Scores:
    """Logits, and no array but a tensor."""

    labels = LABELS
    logits = True

    def __call__(self, texts: list[str]) -> torch.Tensor:
        return torch.from_numpy(np.log(predict(texts)) + 3.0).requires_grad_(True)


scores = Scores()


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "table.json"
    path.write_text(json.dumps(TABLE), encoding="utf-8")
    return {"search": {"name": "greedy"}, "candidates": {"name": "table", "path": str(path)}}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with random weights whose texts are cut after 12 pieces."""
    return write_classifier(tmp_path_factory.mktemp("classifier"), ("entailment", "neutral", "contradiction"))


def of_transformers(folder: Path, texts: list[Any]) -> np.ndarray:
    """Probabilities of one text after the other, as transformers gives them."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        parts = (text,) if isinstance(text, str) else text
        with torch.no_grad():
            read = tokenizer(*parts, truncation=True, max_length=12, return_tensors="pt")
            rows.append(torch.softmax(model(**read).logits[0].double(), dim=0).numpy())
    return np.stack(rows)


def test_a_folder_of_transformers_answers_as_transformers_does(folder: Path) -> None:
    named = open_victim(f"hf:{folder}")
    assert named.victim.labels == ("entailment", "neutral", "contradiction")
    singles = ["a good film", "我 吃 苹果 。", "a" * 40]
    pairs = [("a good man", "a good film"), ("a man", "an old man is in the film")]
    for texts in (singles, pairs):
        found = named.victim.ask([[(text,) if isinstance(text, str) else text for text in texts]])[0]
        np.testing.assert_allclose(np.stack(found), of_transformers(folder, texts), atol=1e-6)
    renamed = open_victim(f"hf:{folder}", labels=("0", "1", "2"))
    assert renamed.victim.labels == ("0", "1", "2")
    assert renamed.identity["kind"] == "hf"
    assert len(renamed.identity["sha256"]) == 64


def test_more_texts_than_go_through_at_once(folder: Path) -> None:
    texts = [f"a film {number}" for number in range(70)]
    found = open_victim(f"hf:{folder}").victim.ask([[(text,) for text in texts]])[0]
    np.testing.assert_allclose(np.stack(found), of_transformers(folder, texts), atol=1e-6)


def test_a_model_without_a_piece_for_padding_is_asked_one_by_one(folder: Path, tmp_path: Path) -> None:
    bare = Path(shutil.copytree(folder, tmp_path / "bare"))
    (bare / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}), encoding="utf-8")
    texts = ["a good film", "an old man is"]
    found = open_victim(f"hf:{bare}").victim.ask([[(text,) for text in texts]])[0]
    np.testing.assert_allclose(np.stack(found), of_transformers(bare, texts), atol=1e-6)


def test_a_pipeline_answers_as_its_folder_does(folder: Path) -> None:
    from transformers import pipeline

    pipe = pipeline("text-classification", model=str(folder), device="cpu")
    found = adapted(pipe)
    assert found.labels == ["entailment", "neutral", "contradiction"]
    for texts in (["a good film", "我"], [("a man", "a good film")]):
        np.testing.assert_allclose(found.predict(texts), of_transformers(folder, texts), atol=1e-5)
    with pytest.raises(ConfigError, match="gives probabilities; leave logits out"):
        adapted(pipe, logits=True)
    pipe.task = "feature-extraction"
    with pytest.raises(ConfigError, match="one is of the task 'feature-extraction'"):
        adapted(pipe)


def test_an_attack_on_a_folder_resumes_without_code(folder: Path, tmp_path: Path) -> None:
    """The victim's name has a colon, and is no code that must be trusted."""
    table, data = tmp_path / "t.json", tmp_path / "d.tsv"
    table.write_text(json.dumps({"good": ["old", "film"], "man": ["film", "old"], "film": ["man"]}), encoding="utf-8")
    texts = ["a good man is in the film", "an old film of a man"]
    gold = [open_victim(f"hf:{folder}").victim.labels[row.argmax()] for row in of_transformers(folder, texts)]
    data.write_text("".join(f"{text}\t{label}\n" for text, label in zip(texts, gold, strict=True)), encoding="utf-8")
    plan = {"candidates": {"name": "table", "path": str(table)}, "search": {"name": "greedy"}}
    report = attack_command(f"hf:{folder}", data, tmp_path / "out", table=plan)
    assert report.queries > 2
    again = attack_command(None, None, tmp_path / "out", resume=True)
    assert again.rates == report.rates
    assert "--trust-code" not in report.resume_command
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    identity = json.loads((tmp_path / "out" / "attack.json").read_text(encoding="utf-8"))
    torch.manual_seed(5)
    weights = sorted(other.glob("*.safetensors"))[0]
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    identity["victim"]["name"] = f"hf:{other}"
    del identity["sha256"]
    (tmp_path / "out" / "attack.json").write_bytes(sealed(identity))
    with pytest.raises(CheckpointError, match=r"was begun with victim\.sha256"):
        attack_command(None, None, tmp_path / "out", resume=True)


@pytest.mark.parametrize(
    ("labels", "problem", "told"),
    [
        (["a"], None, "gives one number"),
        (["a"], "regression", "gives one number"),
        (["a", "b"], "regression", "is made for regression"),
    ],
)
def test_labels_must_exclude_each_other(labels: list[str], problem: str | None, told: str) -> None:
    config = SimpleNamespace(id2label=dict(enumerate(labels)), problem_type=problem)
    with pytest.raises(ConfigError, match=f"^attack: the model {told}, and a victim gives"):
        _labels_of(config, "the model")


def test_folders_that_are_no_victims(folder: Path, tmp_path: Path) -> None:
    import transformers

    def fails(problem: str, change: Any) -> None:
        changed = Path(shutil.copytree(folder, tmp_path / "changed"))
        change(changed)
        with pytest.raises(ConfigError, match=problem):
            open_victim(f"hf:{changed}")
        shutil.rmtree(changed)

    def described(**keys: Any) -> Any:
        def change(changed: Path) -> None:
            table = json.loads((changed / "config.json").read_text())
            (changed / "config.json").write_text(json.dumps({**table, **keys}))

        return change

    def without_head(changed: Path) -> None:
        bare = transformers.BertModel(transformers.BertConfig.from_pretrained(changed))
        save_quietly(bare, changed)

    fails("no weights for classifier.*its answers would be random", without_head)
    fails("is made for multi_label_classification", described(problem_type="multi_label_classification"))
    fails("cannot open it as a sequence classifier", described(model_type="nobody"))
    fails("no weights as safetensors", lambda changed: (changed / "model.safetensors").rename(changed / "pytorch_model.bin"))
    for index in ("pytorch_model.bin", "../other/model.safetensors", 7):
        fails("names .* which is no safetensors file of its folder", lambda changed, name=index: sharded(changed, name))
    fails("names 'pytorch_model.bin'", described(transformers_weights="pytorch_model.bin"))
    fails("names 'x/a.safetensors'", described(transformers_weights="x/a.safetensors"))
    fails(
        "attn_implementation is 'kernels-community/flash'.*code of the hub",
        described(attn_implementation="kernels-community/flash"),
    )
    fails("code of the hub", described(text_config={"_attn_implementation": {"": "kernels-community/flash:f"}}))
    fails("training_args.bin is no regular file", lambda changed: (changed / "training_args.bin").symlink_to("absent"))
    with pytest.raises(ConfigError, match="is no folder"):
        open_victim(f"hf:{tmp_path}/absent")
    with pytest.raises(ConfigError, match=r"--logits: the victim hf:.* gives probabilities"):
        open_victim(f"hf:{folder}", logits=True)


def sharded(changed: Path, name: object) -> None:
    """Put an index that names a file of weights beside the weights, which have another name than before."""
    (changed / "model.safetensors").rename(changed / "model-1.safetensors")
    table = {"metadata": {}, "weight_map": {"classifier.weight": name}}
    (changed / "model.safetensors.index.json").write_text(json.dumps(table))


def test_code_beside_a_model_is_never_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    asked: list[dict[str, Any]] = []
    for kind in (transformers.AutoTokenizer, transformers.AutoModelForSequenceClassification):
        real = kind.from_pretrained

        def from_pretrained(*args: Any, real: Any = real, **keys: Any) -> Any:
            asked.append(keys)
            return real(*args, **keys)

        monkeypatch.setattr(kind, "from_pretrained", from_pretrained)
    open_victim(f"hf:{folder}")
    assert [keys["trust_remote_code"] for keys in asked] == [False, False]
    assert all(keys["local_files_only"] is True for keys in asked)


def test_a_module_may_name_an_object_with_predict_proba(plan: dict[str, Any], data: Path, tmp_path: Path) -> None:
    plain = attack_command("tests.attack.toys:predict", data, tmp_path / "plain", table=plan, labels=LABELS)
    own = attack_command("tests.runs.test_adapters:model", data, tmp_path / "own", table=plan)
    assert (own.rates, own.queries) == (plain.rates, plain.queries)


def test_logits_become_probabilities(plan: dict[str, Any], data: Path, tmp_path: Path) -> None:
    plain = attack_classifier(predict, WORDS, GOLD, names=LABELS, settings=plan)
    for victim, options in ((scores, {}), (scores.__call__, {}), (lambda texts: np.log(predict(texts)), {"names": LABELS})):
        found = attack_classifier(victim, WORDS, GOLD, settings=plan, logits=victim is not scores, **options)
        assert found.report.rates == plain.report.rates
    raw = attack_command("tests.runs.test_adapters:log_of", data, tmp_path / "logits", table=plan, labels=LABELS, logits=True)
    assert raw.rates == plain.report.rates
    assert attack_command("tests.runs.test_adapters:log_of", None, tmp_path / "logits", resume=True).rates == raw.rates
    np.testing.assert_allclose(softmax(np.array([[1000.0, 1000.0], [0.0, np.log(3.0)]])), [[0.5, 0.5], [0.25, 0.75]])


def log_of(texts: list[str]) -> np.ndarray:
    return np.log(predict(texts))


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib"])
def test_a_pickle_is_read_only_where_it_is_trusted(name: str, plan: dict[str, Any], data: Path, tmp_path: Path) -> None:
    file = tmp_path / name
    if name.endswith("joblib"):
        pytest.importorskip("joblib").dump(model, file)
    else:
        file.write_bytes(pickle.dumps(model))
    ran = tmp_path / "ran"
    with pytest.raises(ConfigError, match=r"a pickle is a program.*--trust-code.*mine:model"):
        open_victim(str(file))
    with pytest.raises(ConfigError, match="a pickle is a program"):
        attack_classifier(file, WORDS, GOLD, settings=plan)
    with trusting_code():
        assert open_victim(str(file)).victim.labels == tuple(LABELS)
    plain = attack_classifier(predict, WORDS, GOLD, names=LABELS, settings=plan)
    assert attack_classifier(file, WORDS, GOLD, settings=plan, trust_code=True).report.rates == plain.report.rates
    report = attack_command(str(file), data, tmp_path / "out", table=plan, trust_code=True)
    assert report.rates == plain.report.rates
    file.write_bytes(b"no pickle")
    with pytest.raises(ConfigError, match="cannot be read"), trusting_code():
        open_victim(str(file))
    assert not ran.exists()


def test_without_joblib_it_is_joblib_that_is_to_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.joblib"
    file.touch()
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(ConfigError, match=r"needs the package 'joblib'.* run: pip install .joblib."), trusting_code():
        open_victim(str(file))


def fake_wrapper(function: Any) -> Any:
    """An object of a class that derives from TextAttack's ModelWrapper, without the package."""
    module = ModuleType("textattack.models.wrappers.model_wrapper")
    base = type("ModelWrapper", (), {"__module__": module.__name__})
    return type("Mine", (base,), {"__call__": lambda self, texts: function(texts), "__module__": "mine"})()


def test_a_model_wrapper_of_textattack_is_a_victim(plan: dict[str, Any]) -> None:
    """Logits or probabilities: a softmax is taken of what is none yet, as TextAttack takes it."""
    plain = attack_classifier(predict, WORDS, GOLD, names=LABELS, settings=plan)
    for function in (predict, log_of, lambda texts: torch.from_numpy(predict(texts))):
        np.testing.assert_allclose(adapted(fake_wrapper(function)).predict(WORDS), predict(WORDS))
        found = attack_classifier(fake_wrapper(function), WORDS, GOLD, names=LABELS, settings=plan)
        assert found.report.rates == plain.report.rates


def test_what_is_no_victim() -> None:
    with pytest.raises(ConfigError, match=r"a pipeline of transformers or a run, given int"):
        adapted(3)
    assert "transformers" in sys.modules or adapted(predict).predict is predict


def test_words_behind_the_length_of_the_model_are_no_part_of_an_attack(folder: Path, plan: dict[str, Any]) -> None:
    """A victim that reads 16 pieces looked robust on long texts: words that it never sees filled the search."""
    victim = f"hf:{folder}"
    named = open_victim(victim)
    assert named.reads is not None
    long = "a man " * 20
    assert named.reads(("a man",)) == (5,)
    [end] = named.reads((long,))
    assert 0 < end < len(long)
    ends = named.reads(("a man", "a film " * 20))
    assert ends[0] == 5
    assert ends[1] < len("a film " * 20)
    texts = [long, f"an {long}", "a film"]
    predicted = [named.victim.labels[int(named.victim.alone((text,)).argmax())] for text in texts]  # type: ignore[union-attr]
    found = attack_classifier(victim, texts, predicted, settings=plan)
    ends = tuple(named.reads((text,))[0] for text in texts)
    unread = sum(word.start() >= end for text, end in zip(texts, ends, strict=True) for word in re.finditer(r"\S+", text))
    assert unread > 20
    assert (found.report.texts_cut, found.report.words_cut) == (2, unread)
    assert found.report.coverage.words == sum(len(text.split()) for text in texts) - unread
    assert f"reads 2 of 3 texts only in part, since they are longer than its model: the {unread} " in str(found.report.warnings)
    assert found.report.signature.endswith(f"unread:2/{unread}")
    plain = attack_classifier(victim, texts[2:], predicted[2:], settings=plan)
    assert (plain.report.texts_cut, "unread" in plain.report.signature) == (0, False)


def test_a_tokenizer_without_offsets_tells_what_it_cuts_too(tmp_path: Path, plan: dict[str, Any]) -> None:
    """One in Python had no count: its victim read 12 bytes of each text, and the words behind them were attacked."""
    from transformers import BertConfig, BertForSequenceClassification, ByT5Tokenizer

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    sizes |= {"vocab_size": 300, "initializer_range": 0.5}
    config = BertConfig(max_position_embeddings=12, id2label={0: "no", 1: "yes"}, pad_token_id=0, **sizes)
    save_quietly(BertForSequenceClassification(config), tmp_path)
    ByT5Tokenizer().save_pretrained(tmp_path)
    named = open_victim(f"hf:{tmp_path}")
    assert named.reads is not None
    assert named.reads(("a man",)) == (5,)
    assert named.reads(("a film or a film",)) == (11,), "eleven bytes and the end mark"
    assert named.reads(("电影好看",)) == (3,), "three bytes each, and none of half a character"
    assert named.reads(("a man", "a long film here")) == (5, 5), "two end marks, the longer side is cut first"
    text = "a film or a film"
    for end, same in ((11, True), (10, False)):
        answers = [named.victim.alone((read,)) for read in (text, text[:end])]
        assert np.allclose(*answers, atol=1e-6) == same  # type: ignore[arg-type]
    label = named.victim.labels[int(named.victim.alone((text,)).argmax())]  # type: ignore[union-attr]
    found = attack_classifier(f"hf:{tmp_path}", [text], [label], settings=plan)
    assert (found.report.texts_cut, found.report.words_cut) == (1, 1)
    table = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**table, "truncation_side": "left"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="cuts long texts on the left; set its truncation_side to right"):
        attack_classifier(f"hf:{tmp_path}", [text], [label], settings=plan)


def test_padding_on_the_left_changes_no_answer(folder: Path, tmp_path: Path) -> None:
    left = Path(shutil.copytree(folder, tmp_path / "left"))
    table = json.loads((left / "tokenizer_config.json").read_text(encoding="utf-8"))
    (left / "tokenizer_config.json").write_text(json.dumps({**table, "padding_side": "left"}), encoding="utf-8")
    texts = ["a man", "an old man is in the film"]
    victim = open_victim(f"hf:{left}").victim
    together = np.stack([row for [row] in victim.ask([[(text,)] for text in texts])])
    alone = np.stack([victim.ask([[(text,)]])[0][0] for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-9)


def test_length_and_padding_of_a_model_that_says_them_in_one_place_only() -> None:
    """Positions behind the padding id, as RoBERTa has them, hold no text; the pad piece comes from the tokenizer."""
    from transformers import BertConfig, BertForSequenceClassification, RobertaConfig, RobertaForSequenceClassification

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 9}
    tokenizer = SimpleNamespace(model_max_length=int(1e30), pad_token="<pad>", pad_token_id=1)
    assert _longest(BertForSequenceClassification(BertConfig(max_position_embeddings=18, **sizes)), tokenizer) == 18
    body = RobertaForSequenceClassification(RobertaConfig(max_position_embeddings=18, pad_token_id=1, **sizes))
    assert _longest(body, tokenizer) == 16
    body.config.pad_token_id = None
    _classifier(body, tokenizer, 16)
    assert body.config.pad_token_id == 1
