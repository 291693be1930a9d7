"""Chinese without blanks, the loss of streams of several lengths, and how a model of pairs reads and searches a line."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.runs import stream_nats as streaming
from sememekit.runs.stream_nats import stream_nats, with_context
from sememekit.runs.uncut import CUT_FIRST, cuts, how_to_cut, refuse_uncut, refuse_unknown, segmenter_of_raw, uncut, warn_uncut
from sememekit.runs.writing import Writer, describe_search, search_of, told_of_cut, words_read
from sememekit.search import BeamSettings
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Characters, WhiteSpace
from sememekit.text.vocabulary import Vocabulary

RAW = "我们今天去看电影"
KNOWN = ("<unk>", "我", "吃", "▁我", "ab")


def model(by: str = WhiteSpace.description, name: str = "none", words: tuple[str, ...] = KNOWN) -> Any:
    """Parts of a run that are read alone: its words, and the segmenter of its data."""
    signature = SimpleNamespace(segmenter=by, options={"segmenter": name})
    vocabulary, folder = Vocabulary.from_counts(dict.fromkeys(words, 1)), SimpleNamespace(file=Path)
    return SimpleNamespace(
        signature=signature,
        vocabulary=vocabulary,
        folder=folder,
        form=lambda: TextForm(lower=True),
        segmenter=lambda: "its own",
    )


APART, CUT, PIECES = model(), model("jieba", "jieba"), model("pieces", "sentencepiece")


def test_advice_depends_on_who_cut_the_data() -> None:
    assert (cuts(APART), cuts(CUT)) == (False, True)
    advice = [how_to_cut(run, apart=apart) for run in (APART, CUT) for apart in (False, True)]
    assert advice == [CUT_FIRST, CUT_FIRST, CUT_FIRST, "leave out --apart"]


@pytest.mark.parametrize(
    ("run", "words", "found"),
    [
        (APART, ["我", RAW], RAW),
        (APART, ["我", "飞船"], ""),
        (APART, ["我飞船去"], "我飞船去"),
        (APART, ["飞船去"], ""),
        (CUT, ["飞船"], "飞船"),
        (CUT, ["飞"], ""),
        (CUT, ["飞船", "我"], ""),
        (CUT, ["飞船", "飞船"], ""),
        (CUT, ["我"], ""),
        (CUT, ["AB"], ""),
        (CUT, ["spaceship"], ""),
        (CUT, [], ""),
    ],
)
def test_unsegmented_text_is_too_long_for_a_word_or_all_that_there_is(run: Any, words: list[str], found: str) -> None:
    assert uncut(run, words) == found


@pytest.mark.parametrize(
    ("run", "texts", "segmenter"),
    [
        (CUT, [[RAW], *[["我"]] * 4], "its own"),
        (CUT, [[RAW], *[["我"]] * 5], None),
        (CUT, [["我"]], None),
        (CUT, [], None),
        (APART, [[RAW], *[["我"]] * 5], None),
        (PIECES, [["我"], ["吃"]], "its own"),
        (PIECES, [["我"], ["吃", "▁我"]], None),
        (PIECES, [["我"], ["▁无"]], "its own"),
    ],
)
def test_raw_texts_are_cut_from_a_fifth(run: Any, texts: list[list[str]], segmenter: str | None) -> None:
    assert segmenter_of_raw(run, texts, "f") == segmenter


@pytest.mark.parametrize(("run", "may_cut"), [(APART, True), (CUT, False)])
def test_raw_texts_are_refused_where_nothing_cuts_them(run: Any, may_cut: bool) -> None:
    with pytest.raises(DataError) as caught:
        segmenter_of_raw(run, [[RAW], *[["我"]] * 4], "f", may_cut=may_cut)
    told = f"Chinese without blanks, such as '{RAW}', which would be read as one <unk>; {CUT_FIRST}"
    assert str(caught.value) == f"f: 1 of the first 5 texts hold {told}"
    assert segmenter_of_raw(run, [[RAW], *[["我"]] * 5], "f", may_cut=may_cut) is None
    with pytest.raises(DataError) as caught:
        refuse_uncut([RAW], "f", CUT_FIRST)
    assert str(caught.value) == f"f: {told}"
    refuse_uncut(["", ""], "f", CUT_FIRST)


def test_a_text_without_a_known_word_is_refused() -> None:
    for run, words in ((APART, []), (APART, ["x", "吃"]), (model(words=("我",)), ["x"])):
        refuse_unknown(run, words, "f")
    with pytest.raises(DataError) as caught:
        refuse_unknown(APART, iter(["one", "two", "three", "four", "five", "six"]), "f")
    assert str(caught.value).startswith(
        "f: the model knows none of the words, such as 'one two three four five'; give text of "
    )
    with pytest.raises(DataError, match=r"without blanks, such as '飞船', .*; leave out --apart$"):
        refuse_unknown(CUT, ["飞船"], "f", apart=True)
    with pytest.raises(DataError, match=rf"without blanks, such as '飞船', .*; {CUT_FIRST}$"):
        refuse_unknown(CUT, ["飞船"], "f")


def test_rare_unsegmented_text_is_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    assert warn_uncut(["飞船", "x"], "cut it") is False
    assert len(recwarn) == 0
    with pytest.warns(
        RunWarning, match="^Chinese without blanks was read as one <unk>, such as '我们今天去看电影我们今天'; cut it$"
    ):
        assert warn_uncut(["x", RAW * 2], "cut it") is True


class Sums:
    """A model whose state is the sum of the words before, and whose loss of a word is that sum, times 100, plus the word."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.encoder, self.decoder = self, self
        self.sizes: list[tuple[int, ...]] = []
        self.scored = 0

    def start(self, rows: int) -> tuple[torch.Tensor]:
        return (torch.zeros(rows, 1),)

    def contexts(self, ids: torch.Tensor, state: tuple[torch.Tensor]) -> tuple[torch.Tensor, tuple[torch.Tensor]]:
        self.sizes.append(tuple(ids.shape))
        sums = state[0][None] + ids[..., None].cumsum(dim=0)
        return sums, (sums[-1],)

    def nll(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        self.scored += targets.numel()
        return 100 * hidden[..., 0] + targets


@pytest.mark.parametrize(("rows", "sizes"), [(256, [(5, 3)]), (2, [(2, 3), (2, 2), (1, 1)])])
def test_streams_of_several_lengths_are_read_together(
    rows: int, sizes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_ROWS_AT_ONCE", rows)
    task: Any = Sums()
    nats, state = stream_nats(task, [[1, 2, 3, 4, 5, 6], [7, 8, 9, 1], [2, 3, 4]])
    assert nats == [[102, 303, 604, 1005, 1506], [708, 1509, 2401], [203, 504]]
    assert (task.sizes, task.scored) == (sizes, 10), "padding is not scored"
    carried, then = stream_nats(task, [[1, 2]], (torch.tensor([[5.0]]),))
    assert (carried, then[0].tolist()) == ([[602]], [[6.0]])
    if rows == 256:
        assert state[0][0].tolist() == [15.0]
    assert (with_context([1], None), with_context([1], 0)) == ([1], [0, 1])


def test_marks_of_the_vocabulary_stay_whole() -> None:
    run, task = model(words=("<unk>", "<n>", "a")), SimpleNamespace()
    writer = Writer(run, task, Characters())  # type: ignore[arg-type]
    assert writer.words("A<N>b<M>") == ["a", "<n>", "b", "<", "m", ">"]
    assert writer.words("<n><n>") == ["<n>", "<n>"]
    assert Writer(run, task, None).words("A b<N>") == ["a", "b<n>"]  # type: ignore[arg-type]


def test_sources_that_are_cut_are_told() -> None:
    def reads(**task: int) -> Any:
        return SimpleNamespace(plan=SimpleNamespace(table=lambda: {"task": task}))

    assert [words_read(reads(read_words=3), words) for words in (2, 3, 9)] == [2, 3, 3]
    assert [words_read(run, 9) for run in (reads(read_words=0), reads())] == [9, 9]
    assert told_of_cut(1, 1, 400) == "1 of 1 source was cut to its first 400 words (task.read_words)"
    assert told_of_cut(2, 3000, 1400) == "2 of 3,000 sources were cut to their first 1,400 words (task.read_words)"


def test_a_search_has_the_settings_of_the_run_the_data_and_the_user_in_this_order() -> None:
    task: Any = SimpleNamespace(search=BeamSettings(beam_size=4, num_best=3, max_length=20))
    found = search_of(task, ["task.search.max_length=9"], {"beam_size": 3, "max_length": 12})
    assert found == BeamSettings(beam_size=3, num_best=3, max_length=9)
    assert search_of(task) == task.search
    shown = "beam_size:4|num_best:3|length_penalty:1.0|min_length:1|max_length:20|no_repeat:0|unknown:keep"
    assert describe_search(task.search) == shown
    for other, told in (("task.read_words=3", "--set task.read_words: "), ("run.seed=3", "--set run.seed: ")):
        with pytest.raises(ConfigError, match=f"^{told}of a trained model only task.search.KEY can be changed"):
            search_of(task, [other])
