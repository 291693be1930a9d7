"""The words that are predicted in a split, and the words that each is predicted from."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.analysis.contexts import PredictedText
from sememekit.runs.run import Run
from tests.small_pairs import PairPlace
from tests.small_run import Place


def predicted(run: Path, place: Place) -> PredictedText:
    task = Run.open(run, device="cpu").task
    return PredictedText(task, place.data, "test")  # type: ignore[arg-type]


def words_of_lines(place: Place) -> list[list[str]]:
    return [line.split() for line in (place.text / "test.txt").read_text(encoding="utf-8").splitlines()]


def test_without_marks_of_ends_a_context_has_forty_words_at_most(place: Place, softmax: Path) -> None:
    text = predicted(softmax, place)
    tokens = [word for line in words_of_lines(place) for word in line]
    assert place.data.vocabulary.decode(text.words) == tokens[1:]
    assert (text.is_pairs, text.columns) == (False, 3)
    assert [text.context(position) for position in (0, 1)] == [tuple(tokens[:1]), tuple(tokens[:2])]
    assert [text.context(position) for position in (38, 39)] == [tuple(tokens[:39]), tuple(tokens[:40])]
    assert [text.context(position) for position in (40, 75)] == [tuple(tokens[1:41]), tuple(tokens[36:76])]


def test_a_context_has_the_sentence_before_and_its_own(sentences: Place, ending: Path) -> None:
    text = predicted(ending, sentences)
    lines = [[*line, "<eos>"] for line in words_of_lines(sentences)]
    assert sentences.data.vocabulary.decode(text.words) == [word for line in lines for word in line][1:]
    position = -1  # the first word is predicted by nothing
    for before, line in zip([[], *lines], lines, strict=False):
        for place in range(len(line)):
            if position >= 0:
                assert text.context(position) == (*before, *line[:place])
            position += 1
    assert position == len(text.words)


@pytest.mark.parametrize(("most", "cut"), [(9, ()), (8, ()), (7, ("...",)), (1, ("...",))])
def test_a_context_of_a_pair_has_its_source_and_the_target_so_far(
    pairs: PairPlace, most: int, cut: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sememekit.analysis.contexts.CONTEXT_WORDS", most)
    text, position = PredictedText(pairs.model(), pairs.pairs, "test"), 0
    assert (text.is_pairs, text.columns) == (True, 1)
    decode, examples = pairs.pairs.vocabulary.decode, pairs.pairs.examples("test")
    for number in range(len(examples)):
        source, target = (decode(examples.text(number, side).tolist()) for side in (0, 1))
        shown = (*source[:most], *cut, "->")
        for place in range(len(target) + 1):
            assert text.context(position) == (*shown, *target[:place])
            position += 1
    assert position == len(text.words)
