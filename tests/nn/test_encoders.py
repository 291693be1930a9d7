"""Encoders of ``sememekit.nn``: sememes by word, by number and by weight, and the shapes of torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from sememekit.errors import ConfigError
from sememekit.nn import AWDLSTM, MogrifierLSTM, SememeGRU, SememeLSTM
from tests.nn.cases import SENSES, WIDTH, contexts, targets

SEMEMES = 6
KINDS = (SememeLSTM, SememeGRU, MogrifierLSTM)


def pooled(words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The sememes of words (T, B) as weights (T, B, K) and as padded numbers (T, B, M)."""
    weights, lists = torch.zeros(*words.shape, SEMEMES), torch.full((*words.shape, 4), -1)
    for place in torch.cartesian_prod(*map(torch.arange, words.shape)).tolist():
        own = sorted({sememe for sense in SENSES[int(words[tuple(place)])] for sememe in sense})
        weights[(*place, own)] = 1.0
        lists[(*place, slice(len(own)))] = torch.tensor(own, dtype=torch.int64)
    return weights, lists


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_three_ways_to_give_sememes(kind: Any, bidirectional: bool) -> None:
    if bidirectional and kind is MogrifierLSTM:
        pytest.skip("reads in one direction")
    encoder = kind(5, WIDTH, SENSES, num_layers=2, **({"bidirectional": True} if bidirectional else {}))
    x, words = contexts(4, 3, width=5), targets(4, 3)
    weights, lists = pooled(words)
    assert encoder.sememes == tuple(range(SEMEMES))
    by_word = encoder(x, words)[0]
    for sememes in (weights, weights.bool(), lists, lists.flip(-1)):
        torch.testing.assert_close(encoder(x, sememes=sememes)[0], by_word)
    assert not torch.allclose(encoder(x, words.roll(1, 0))[0], by_word)
    half = encoder(x, sememes=weights * 0.5)[0]
    assert not torch.allclose(half, by_word)


@pytest.mark.parametrize("kind", KINDS)
def test_sememes_alone(kind: Any) -> None:
    """An encoder that knows numbers of sememes and no words has the weights of one that knows both."""
    torch.manual_seed(0)
    encoder, other = kind(5, WIDTH, num_sememes=SEMEMES), kind(5, WIDTH, SENSES)
    assert other.sememes == encoder.sememes
    missing = len(other.encoder.sememes.vectors) - SEMEMES  # <unk>, which stands for words without senses
    state = encoder.state_dict()
    state["encoder.sememes.vectors"] = torch.cat([state["encoder.sememes.vectors"], torch.ones(missing, 5)])
    other.load_state_dict(state)
    x, words = contexts(4, 3, width=5), targets(4, 3)
    torch.testing.assert_close(encoder(x, sememes=pooled(words)[0])[0], other(x, words)[0])
    with pytest.raises(ValueError, match="built without senses"):
        encoder(x, words)


@pytest.mark.parametrize("kind", [*KINDS, AWDLSTM])
@pytest.mark.parametrize("batch_first", [False, True])
def test_halves_with_the_state_carried_are_the_whole(kind: Any, batch_first: bool) -> None:
    torch.manual_seed(0)
    reads = kind is not AWDLSTM
    encoder = kind(5, WIDTH, *([SENSES] if reads else []), num_layers=2, batch_first=batch_first).eval()
    x, words = contexts(4, 3, width=5), targets(4, 3)
    if batch_first:
        x, words = x.transpose(0, 1), words.transpose(0, 1)
    axis = 1 if batch_first else 0
    given = {"words": words} if reads else {}
    whole, end = encoder(x, **given)
    first, state = encoder(x.narrow(axis, 0, 2), **{name: part.narrow(axis, 0, 2) for name, part in given.items()})
    second, after = encoder(
        x.narrow(axis, 2, 2), state=state, **{name: part.narrow(axis, 2, 2) for name, part in given.items()}
    )
    torch.testing.assert_close(torch.cat([first, second], dim=axis), whole)
    torch.testing.assert_close(after, end)
    assert whole.shape[:2] == x.shape[:2]
    if kind is SememeLSTM:
        assert end[0].shape == end[1].shape == (2, 3, WIDTH)
        torch.testing.assert_close(end[0][-1], whole.select(axis, -1))
    if kind is SememeGRU:
        assert end.shape == (2, 3, WIDTH)
    if kind is AWDLSTM:
        assert [h.shape for h, _ in end] == [(1, 3, WIDTH), (1, 3, 5)]


def test_lengths_cut_rows() -> None:
    encoder = SememeLSTM(5, WIDTH, SENSES)
    x, words = contexts(4, 2, width=5), targets(4, 2)
    output, (h, _) = encoder(x, words, lengths=torch.tensor([4, 2]))
    alone, (h_alone, _) = encoder(x[:2, 1:], words[:2, 1:])
    torch.testing.assert_close(output[:2, 1:], alone)
    torch.testing.assert_close(h[:, 1:], h_alone)
    assert (output[2:, 1] == 0).all()


def test_without_sememes_it_is_the_plain_cell() -> None:
    encoder = SememeLSTM(5, WIDTH)
    plain = torch.nn.LSTM(5, WIDTH)
    plain.load_state_dict({name: encoder.encoder.stack[0].state_dict()[name] for name in plain.state_dict()})
    output, (h, c) = encoder(contexts(4, 3, width=5))
    expected, (h_plain, c_plain) = plain(contexts(4, 3, width=5))
    torch.testing.assert_close((output, h, c), (expected, h_plain, c_plain))


def test_a_state_of_another_kind_or_shape_is_refused() -> None:
    """Each of these would be read as something else: broadcast over rows, a cell as the state of another layer, or cut off."""
    x, one, two = contexts(4, 3, width=5), torch.zeros(1, 3, WIDTH), torch.zeros(2, 3, WIDTH)
    lstm, gru = SememeLSTM(5, WIDTH, num_layers=2), SememeGRU(5, WIDTH, num_layers=2)
    narrow = torch.zeros(2, 1, WIDTH)
    wrong: list[tuple[Any, Any, type[Exception], str]] = [
        (gru, (one, one), TypeError, r"SememeGRU: the state must be h \(2, 3, 6\), given 2 of them"),
        (lstm, torch.zeros(4, 3, WIDTH), TypeError, r"h and c, \(2, 3, 6\) each, given one tensor"),
        (lstm, (two, two, two), TypeError, "given 3 of them"),
        (lstm, (narrow, narrow), ValueError, r"given \(2, 1, 6\), \(2, 1, 6\)"),
        (lstm, (torch.zeros(4, 3, WIDTH),) * 2, ValueError, r"given \(4, 3, 6\)"),
        (lstm, (one, one), ValueError, r"given \(1, 3, 6\)"),
        (AWDLSTM(5, WIDTH, num_layers=2), [(one, one)] * 3, ValueError, r"\(h, c\) of 2 layers"),
    ]
    for encoder, state, kind, told in wrong:
        with pytest.raises(kind, match=told):
            encoder(x, state=state)
    both = SememeLSTM(5, WIDTH, num_layers=2, bidirectional=True)
    with pytest.raises(ValueError, match=r"h and c, \(4, 3, 6\) each"):
        both(x, state=(two, two))
    assert both(x, state=both(x)[1])[0].shape == (4, 3, 2 * WIDTH)


def test_wrong_arguments_are_told() -> None:
    x, words = contexts(4, 3, width=5), targets(4, 3)
    with pytest.raises(ConfigError, match="reads in one direction"):
        MogrifierLSTM(5, WIDTH, bidirectional=True)
    with pytest.raises(ConfigError, match="leave output_size out"):
        SememeLSTM(5, WIDTH, SENSES, output_size=3)
    with pytest.raises(ConfigError, match="injection='gate' reads sememes"):
        SememeLSTM(5, WIDTH, injection="gate")
    with pytest.raises(ConfigError, match="num_sememes=3"):
        SememeLSTM(5, WIDTH, SENSES, num_sememes=3)
    with pytest.raises(ConfigError, match="unknown key 'droput'"):
        AWDLSTM(5, WIDTH, droput=0.1)
    encoder = SememeLSTM(5, WIDTH, SENSES)
    with pytest.raises(ValueError, match="give words"):
        encoder(x)
    with pytest.raises(ValueError, match="give words"):
        encoder(x, words, sememes=pooled(words)[0])
    with pytest.raises(ValueError, match="weights of 2 sememes where there are 6"):
        encoder(x, sememes=torch.zeros(4, 3, 2))
    with pytest.raises(ValueError, match="words of shape"):
        encoder(x, words[:2])
    with pytest.raises(ValueError, match="built without sememes"):
        SememeLSTM(5, WIDTH)(x, sememes=torch.zeros(4, 3, 2))
    assert SememeLSTM(5, WIDTH, SENSES, num_sememes=9).sememes == tuple(range(9))
