"""Losses like torch's, where the layer goes, and the vocabularies of tokenizers."""

from __future__ import annotations

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
from sememekit.nn.senses import whole_words
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


def test_words_by_falling_count_are_weighted_by_their_own_ids() -> None:
    layer = AdaptiveSoftmax(WIDTH, COUNTS, cutoffs=(3,), weight=WEIGHT, label_smoothing=0.2)
    expected = nn.CrossEntropyLoss(weight=WEIGHT, label_smoothing=0.2)(layer.log_prob(contexts(9)), targets(9))
    torch.testing.assert_close(layer(contexts(9), targets(9)).loss, expected)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: FullSoftmax(WIDTH, COUNTS, reduction="max"), "reduction 'mean', 'sum' or 'none', given 0.0 and 'max'"),
        (lambda: FullSoftmax(WIDTH, COUNTS, label_smoothing=1.5), "label_smoothing must be 0 to 1"),
        (lambda: FullSoftmax(WIDTH, COUNTS, weight=torch.ones(3)), r"weight must be \(7,\), one for each word, given \(3,\)"),
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
    ],
)
def test_marks_are_stripped_and_pieces_are_no_words(tokens: list[str], words: list[str | None]) -> None:
    assert whole_words(tokens) == words


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
