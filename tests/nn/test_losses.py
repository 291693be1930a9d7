"""Losses like torch's, where the layer goes, and the vocabularies of tokenizers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sememekit.errors import ConfigError
from sememekit.nn import (
    AdaptiveSoftmax,
    FullSoftmax,
    MogrifierLSTM,
    SampledSoftmax,
    SelfOrganizedSoftmax,
    SememeSoftmax,
    Senses,
)
from sememekit.text.pieces import whole_words
from sememekit.text.sentencepieces import train_sentencepieces
from tests.nn.cases import COUNTS, SENSES, WIDTH, WORDS, contexts, targets

WEIGHT = torch.tensor([1.0, 0.5, 2.0, 0.0, 3.0, 1.0, 0.25])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("make", [lambda **o: FullSoftmax(WIDTH, COUNTS, **o), lambda **o: SememeSoftmax(WIDTH, SENSES, **o)])
def test_losses_are_those_of_torch(make: Any, weight: torch.Tensor | None, smoothing: float, reduction: str) -> None:
    options: dict[str, Any] = {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    layer, hidden, target = make(**options), contexts(5, 3).requires_grad_(), targets(5, 3).clone()
    target[1, 2] = -100
    other = nn.CrossEntropyLoss(**options)(layer.log_prob(hidden).flatten(0, 1), target.flatten())
    found = layer(hidden, target)
    torch.testing.assert_close(found.loss.flatten(), other.flatten())
    torch.testing.assert_close(found.output, -layer.nll(hidden, target))
    grads = [torch.autograd.grad(loss.sum(), hidden, retain_graph=True)[0] for loss in (found.loss, other)]
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weight", [None, WEIGHT, WEIGHT.tolist()])
@pytest.mark.parametrize("make", [lambda **o: FullSoftmax(WIDTH, COUNTS, **o), lambda **o: SememeSoftmax(WIDTH, SENSES, **o)])
def test_the_mean_of_no_targets_is_zero(make: Any, weight: Any, smoothing: float) -> None:
    hidden = contexts(4).requires_grad_()
    nothing = [torch.full((4,), -100)] + ([] if weight is None else [torch.full((4,), 3)])  # word 3 has the weight 0
    for target in nothing:
        for reduction in ("mean", "sum", "none"):
            loss = make(weight=weight, label_smoothing=smoothing, reduction=reduction)(hidden, target).loss
            assert reduction != "mean" or float(loss.detach()) == 0.0
            assert loss.isfinite().all()
            assert torch.autograd.grad(loss.sum(), hidden)[0].isfinite().all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"weight": [1.0] * 6 + [-1.0]}, "weight must be .* given .7,., least -1"),
        ({"weight": [float("nan")] * 7}, "weight must be"),
        ({"weight": [[1.0], [1.0, 2.0]]}, "weight must be"),
        ({"label_smoothing": "0.1"}, "label_smoothing must be a number of 0 to 1, given '0.1'"),
        ({"label_smoothing": float("nan")}, "label_smoothing must be"),
        ({"reduction": ["mean"]}, "reduction must be"),
        ({"ignore_index": None}, "ignore_index must be a whole number, given None"),
        ({"ignore_index": 1.5}, "ignore_index must be"),
        ({"batch_first": "yes"}, "batch_first must be True or False, given 'yes'"),
        ({"device": "nowhere"}, "device must be a device of torch"),
        ({"dtype": torch.int64}, "dtype must be a torch.dtype of floats"),
        ({"in_features": "8"}, "in_features must be a whole number of 1 or more, given '8'"),
        ({"in_features": -1}, "in_features must be"),
        ({"counts": [[1], [1, 2]]}, "counts must be"),
        ({"counts": {"a": 1}}, "counts must be"),
        ({"counts": 10**30}, "V must be 1 or more, below"),
    ],
)
def test_arguments_of_wrong_kinds_are_refused_by_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"FullSoftmax: .*{told}"):
        FullSoftmax(**{"in_features": WIDTH, "counts": COUNTS, **options})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: AdaptiveSoftmax(WIDTH, 1), "a tail needs 2 words or more, and there is 1"),
        (lambda: MogrifierLSTM("8", 4), "MogrifierLSTM: input_size must be a whole number of 1 or more, given '8'"),
        (lambda: MogrifierLSTM(WIDTH, 4, num_layers=[1]), "num_layers must be"),
        (lambda: MogrifierLSTM(WIDTH, 4, num_sememes=-1), "num_sememes must be"),
        (lambda: Senses.from_arrays("a", [0, 1], [1]), "Senses.from_arrays: sense_offsets must be whole numbers"),
        (lambda: Senses.from_arrays([0, float("nan")], [0, 1], [1]), "Senses.from_arrays: offsets and sememes must be"),
        (lambda: Senses.of_words([1, 2]), "Senses.of_words: words must be a list of strings, given 1"),
        (lambda: Senses([[["a"]]], words=3), "Senses: words must be a list of strings, given 3"),
    ],
)
def test_arguments_of_other_modules_are_refused_by_name(make: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


def test_words_by_falling_count_are_weighted_by_their_own_ids() -> None:
    layer = AdaptiveSoftmax(WIDTH, COUNTS, cutoffs=(3,), weight=WEIGHT, label_smoothing=0.2)
    expected = nn.CrossEntropyLoss(weight=WEIGHT, label_smoothing=0.2)(layer.log_prob(contexts(9)), targets(9))
    torch.testing.assert_close(layer(contexts(9), targets(9)).loss, expected)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: FullSoftmax(WIDTH, COUNTS, reduction="max"), "reduction must be 'mean', 'sum' or 'none', given 'max'"),
        (lambda: FullSoftmax(WIDTH, COUNTS, label_smoothing=1.5), "label_smoothing must be a number of 0 to 1, given 1.5"),
        (
            lambda: FullSoftmax(WIDTH, COUNTS, weight=torch.ones(3)),
            r"weight must be \(7,\) finite numbers of 0 or more, one for each word, given \(3,\)",
        ),
        (lambda: SampledSoftmax(WIDTH, COUNTS, label_smoothing=0.1), "needs the probabilities of all words"),
        (lambda: SelfOrganizedSoftmax(WIDTH, COUNTS, label_smoothing=0.1), "needs the probabilities of all words"),
    ],
)
def test_losses_that_cannot_be_are_refused(make: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


def test_a_call_without_targets_says_what_to_call() -> None:
    with pytest.raises(TypeError, match=r"call layer\.log_prob\(hidden\)"):
        FullSoftmax(WIDTH, COUNTS)(contexts(2))


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: SememeSoftmax(WIDTH, SENSES, weight=WEIGHT, **o),
        lambda **o: SelfOrganizedSoftmax(WIDTH, COUNTS, **o),
        lambda **o: MogrifierLSTM(WIDTH, 4, **o),
    ],
)
def test_a_module_goes_where_it_is_asked_to(make: Any) -> None:
    assert {part.dtype for part in make(dtype=torch.float64).parameters()} == {torch.float64}
    assert all(part.is_meta for part in make(device="meta").parameters())


class Tokenizer:
    """A tokenizer with the interface of ``transformers``."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(self.tokens)

    def convert_ids_to_tokens(self, number: int) -> str:
        return self.tokens[number]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["<s>", "Ġdog", "dog", "Ġ", "Ġä½łå¥½"], ["<s>", "dog", None, None, "你好"]),
        (["<unk>", "▁dog", "ing", "▁"], ["<unk>", "dog", None, None]),
        (["[CLS]", "dog", "##ing", "##"], ["[CLS]", "dog", None, "##"]),
        (["<s>", "Ġdog", "dog", "ä½łå¥½", "å¥½", "Ġä½ł", "å¥"], ["<s>", "dog", None, "你好", "好", "你", None]),
        (["▁dog", "ing", "今天", "天", "▁我"], ["dog", None, "今天", "天", "我"]),
        (["dog</w>", "do", "<pad>"], ["dog", None, "<pad>"]),
        (["dog", "工人"], ["dog", "工人"]),
        (["▁工人", "▁学生", "工", "人", "学", "▁"], ["工人", "学生", None, None, None, None]),  # blanks in the text: 工 goes on
        (["工人", "学生", "工", "▁人", "▁学生们"], ["工人", "学生", "工", "人", "学生们"]),
    ],
)
def test_marks_are_stripped_and_pieces_are_no_words(tokens: list[str], words: list[str | None]) -> None:
    assert whole_words(tokens) == words


def test_where_blanks_stood_can_be_told() -> None:
    tokens = ["▁工人", "工", "人"]
    assert whole_words(tokens, "never") == ["工人", "工", "人"]
    assert whole_words(["工人", "▁工"], "always") == [None, "工"]
    assert Senses.of_tokenizer(Tokenizer(tokens), "open", blanks="never").graph.annotated.all()
    with pytest.raises(ConfigError, match="blanks='no': allowed are auto, always, never"):
        whole_words(tokens, "no")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("raw", [False, True])
def test_pieces_of_chinese_text_with_blanks_and_without(raw: bool, kind: Any) -> None:
    folder = Path(os.environ.get("SEMEMEKIT_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
    file = folder / "peoples-daily-sdlm" / "renmin_hownet" / "train.txt"
    if not file.is_file():
        pytest.skip(f"no People's Daily in {folder}")
    lines = file.read_text(encoding="utf-8").splitlines()[:700]
    model = train_sentencepieces(["".join(line.split()) if raw else line for line in lines], 2200, 1, kind)
    processor = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=model)
    tokens = [processor.id_to_piece(number) for number in range(len(processor))]
    inside = sum(word is None for word in whole_words(tokens))
    assert inside < 100 if raw else inside > 1500


def test_the_vocabulary_of_a_tokenizer_gets_senses(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = ["<unk>", "▁工人", "人", "▁学生", "▁Xyzzy", "▁"]
    senses = Senses.of_tokenizer(Tokenizer(tokens), "open")
    assert senses.num_words == len(tokens)
    assert senses.graph.annotated[[1, 2, 3, 4]].tolist() == [True, False, True, False], "人 continues a word here"
    assert "whole words have senses" in capsys.readouterr().out
    alone = Senses.of_words(["工人"], "open")
    assert senses.graph.entry(1).senses == alone.graph.entry(0).senses
    with pytest.raises(ConfigError, match=r"given list; Senses\.of_words takes a list of words"):
        Senses.of_tokenizer(tokens)


def test_case_and_lemmas_of_a_tokenizer(tmp_path: Any) -> None:
    table, lemmas = tmp_path / "l.tsv", tmp_path / "forms.txt"
    table.write_text("dog\tanimal\n", encoding="utf-8")
    lemmas.write_text("dog\tdogs\n", encoding="utf-8")
    tokens = Tokenizer(["Dog", "dogs", "cat"])
    assert Senses.of_tokenizer(tokens, f"table:{table}").graph.annotated.tolist() == [True, False, False]
    found = Senses.of_tokenizer(tokens, f"table:{table}", lemmas=str(lemmas))
    assert found.graph.annotated.tolist() == [True, True, False]


assert len(WEIGHT) == WORDS
