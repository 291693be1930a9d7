"""English words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.text.segmenters import open_segmenter

english = open_segmenter("english")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The boy doesn't kick the soccer ball.", "the boy does n't kick the soccer ball ."),
        ("He can't; she won't, they'll", "he ca n't ; she wo n't , they 'll"),
        ("children's game at 10:30, 1,000.5 people", "children 's game at 10:30 , 1,000.5 people"),
        ("“Yes”, he said... really?!", '" yes " , he said ... really ? !'),
        ("On Mt. Washington in the U.S. today.", "on mt. washington in the u.s. today ."),
        ("a state-of-the-art jack-o'-lantern", "a state-of-the-art jack-o'-lantern"),
        ("-lrb- sci-fi -rrb- `` HELP ME ''", '( sci-fi ) " help me "'),
        ("watching t.v . It costs $5, or 50%", "watching t.v . it costs $ 5 , or 50 %"),
        ("good--really good", "good -- really good"),
        ("   ", ""),
    ],
)
def test_words(text: str, words: str) -> None:
    assert english.segment(text) == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Cafe\u0301's na\u0131ve, nai\u0308ve", "caf\u00e9 's na\u0131ve , na\u00efve"),
        ("co\u00adoperate, zero\u200bwidth \u200d a\u2060b \ufeffc", "cooperate , zerowidth ab c"),
        ("2 \u212b \u2126 \u01c6", "2 \u212b \u2126 \u01c6"),  # NFC would change the first two, and no mark stands there
    ],
)
def test_marks_and_characters_of_no_width_cut_no_word(text: str, words: str) -> None:
    for name in ("english-cased", "gigaword"):
        assert [word.lower().replace("#", "2") for word in open_segmenter(name).segment(text)] == words.lower().split()
    assert english.segment(text) == words.lower().split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The U.S.-led force can't; J. Smith, St. Louis, x ave.", "the u.s.-led force ca n't ; j. smith , st. louis , x ave."),
        ("He said \"no\" to us$ 5 ``anti- war''", "he said `` no '' to us$ # `` anti- war ''"),
        (
            "1,000.5 (in 1999) [x] {y} -LRB- '80s .5 #",
            "#,###.# -lrb- in #### -rrb- -lsb- x -rsb- -lcb- y -rcb- -lrb- '##s .# #",
        ),
        ("at&amp;t a\\/b \\/ &amp; UNK <unk> ‘it’s’ …", "at&amp;t a\\/b \\/ &amp; <unk> <unk> ' it 's ' ..."),
    ],
)
def test_headlines_are_cut_as_gigaword_was(text: str, words: str) -> None:
    assert open_segmenter("gigaword").segment(text) == words.split()


def test_case_is_kept_where_asked() -> None:
    assert open_segmenter("english-cased").segment("The U.S. doesn't") == ["The", "U.S.", "does", "n't"]


@given(st.text(alphabet=st.sampled_from("abnst'`.,:-/@&!?0 \n’“…éXRLB$_"), max_size=40))
def test_text_that_is_cut_already_stays_as_it_is(text: str) -> None:
    once = english.segment(text)
    assert english.segment(" ".join(once)) == once
    assert all(word and not any(map(str.isspace, word)) for word in once)


@given(st.text(max_size=40))
def test_nothing_breaks_it(text: str) -> None:
    assert all(word and not any(map(str.isspace, word)) for word in english.segment(text))
