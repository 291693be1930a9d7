"""Substitutes keep the meaning of a text, and the size of their space is reported."""

from __future__ import annotations

import math
import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit.attack import (
    AttackResources,
    Document,
    build_constraints,
    long_run,
    read_attack_plan,
    words_of,
)
from sememekit.attack.constraints import CONSTRAINTS, PRESETS
from sememekit.attack.constraints.pairs import built_in_opposites, read_pairs
from sememekit.attack.constraints.words import is_negation, is_number
from sememekit.attack.space import Space
from sememekit.config import resources_folder
from sememekit.errors import ConfigError, DataError
from sememekit.runs.attacks.remarks import _part_of_speech
from sememekit.sememes.wordnet import read_wordnet
from tests.attack.toys import EXAMPLES, RESOURCES, make_attack

PLAIN = {"candidates": {"name": "table", "path": "x"}}


def narrowed(text: str, table: dict[str, tuple[str, ...]], preset: str = "none", **constraints: Any) -> dict[str, Any]:
    """Word -> what is left of its substitutes."""
    plan = read_attack_plan({**PLAIN, "constraints": constraints, "attack": {"constraints": preset}}, "a test")
    space = Space.open(Document.read((text,)), table)
    for constraint in build_constraints(plan, RESOURCES):
        space = constraint.narrow(space)
    return {space.document.words[number].text: space.substitutes[number] for number in space.positions}


def test_opposites_are_out_by_default() -> None:
    table = {
        "man": ("woman", "person"),
        "up": ("down",),
        "good": ("bad", "fine"),
        "Big": ("Small", "Great"),
        "bike": ("cycle",),
    }
    assert narrowed("A man up on a Big good bike", table, "loose") == {
        "man": ("person",),
        "Big": ("Great",),
        "good": ("fine",),
        "bike": ("cycle",),
    }
    bare = narrowed("A man up on a Big good bike", table)
    assert bare["man"] == ("woman", "person")
    assert bare["up"] == ("down",)
    lines = (resources_folder() / "attack" / "opposites.txt").read_text(encoding="utf-8").splitlines()
    assert all(line.count("|") == 1 for line in lines if not line.startswith("#"))
    pairs = built_in_opposites()
    assert frozenset(("girl", "boy")) in pairs
    assert all(len(pair) == 2 for pair in pairs)


def test_lists_of_pairs_as_counter_fitting_has_them(tmp_path: Path) -> None:
    path = tmp_path / "antonyms.txt"
    path.write_text("# ours\n\nen_bike en_car\nen_route other\nSame\tsame\nFILM\tbook\n", encoding="utf-8")
    pairs, digest = read_pairs(path, "opposites")
    assert pairs == {frozenset(("bike", "car")), frozenset(("en_route", "other")), frozenset(("film", "book"))}
    assert len(digest) == 64
    table = {"bike": ("car", "cycle"), "Film": ("Book", "Movie"), "man": ("woman",)}
    files = {"files": [str(path)]}
    assert narrowed("bike Film man", table, opposites={**files, "built_in": False}) == {
        "bike": ("cycle",),
        "Film": ("Movie",),
        "man": ("woman",),
    }
    assert narrowed("bike Film man", table, paraphrases=files) == {"bike": ("car",), "Film": ("Book",)}
    with pytest.raises(ConfigError, match="--paraphrases FILE"):
        narrowed("bike", table, paraphrases={})
    for content, problem in (
        (b"one two three\n", r"antonyms\.txt:1: 3 words"),
        (b"#\n", "no pair"),
        (b"\xff\xfe\n", "not UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=problem):
            read_pairs(path, "opposites")
    with pytest.raises(DataError, match="cannot be read"):
        read_pairs(tmp_path / "absent", "opposites")


def test_antonyms_of_wordnet(tmp_path: Path) -> None:
    (tmp_path / "data.adj").write_text(
        "  1 a licence\n"
        "00000010 00 a 02 hot 0 warm_up(p) 0 002 ! 00000020 a 0101 & 00000020 a 0000 | of heat\n"
        "00000020 00 s 02 cold 0 tall 0 001 ! 00000010 a 0101 | no heat\n",
        encoding="utf-8",
    )
    (tmp_path / "data.noun").write_text("00000010 00 n 01 night 0 001 ! 00000020 n 0101 | d\n00000020 00 n 01 Day 0 000 | l\n")
    for name in ("data.verb", "data.adv"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert read_wordnet(str(tmp_path)).antonyms() == {frozenset(("hot", "cold")), frozenset(("night", "day"))}
    table = {"hot": ("cold", "spicy")}
    assert narrowed("hot", table, opposites={"wordnet": str(tmp_path), "built_in": False}) == {"hot": ("spicy",)}
    (tmp_path / "data.adv").write_text("00000010 00 r 01 so 0 001 ! 00000099 r 0101 | x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"data\.adv:1: the antonym of 'so' points to synset 00000099"):
        read_wordnet(str(tmp_path)).antonyms()
    (tmp_path / "data.adv").write_text("00000010 00 r zz\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"data\.adv:1: no synset"):
        read_wordnet(str(tmp_path))


def test_marks_numbers_and_negations_stay_by_default() -> None:
    table = dict.fromkeys(
        ["two", "2nd", "nothing", "n't", ",", "film", "the", "，", "三百", "没有", "电影", "twenty-one", "的"],
        ("thing", "three", "never", "!", "the", "不"),
    )
    text = "two 2nd nothing n't , film the ， 三百 没有 电影 twenty-one 的"
    assert narrowed(text, table, "loose") == {"film": ("thing",), "电影": ("thing",)}
    assert set(narrowed(text, table)) == set(table)
    kept = narrowed(text, table, protected={"numbers": False})
    assert "two" in kept
    assert "three" in kept["film"]
    assert [is_number(word) for word in ("one", "half-hour", "B2B", "二十", "一个")] == [True, False, True, True, False]


def test_stems_of_negations_and_dates_stay() -> None:
    words = ["ca", "Wo", "sha", "ai", "无法", "不再", "不得", "尚未", "毫无", "从不", "不必", "没法", "无从", "别无选择"]
    dates = ["Monday", "January", "三月", "周二", "星期三", "正月"]
    open_words = ["film", "日", "月", "周", "may", "march", "电影", "岁月", "周围"]
    table = dict.fromkeys([*words, *dates, *open_words], ("thing", "不必", "周一", "january", "wo"))
    text = " ".join([*words, *dates, *open_words])
    assert set(narrowed(text, table, protected={})) == set(open_words)
    assert narrowed(text, table, protected={})["film"] == ("thing",)
    assert set(narrowed(text, table, protected={"numbers": False})) == {*dates, *open_words}


def test_no_negation_of_hownet_is_open() -> None:
    path = Path(os.environ.get("SEMEMEKIT_DATA", "../shared/data"), "hownet/hownet2000/glossary.dat")
    if not path.is_file():
        pytest.skip(f"no HowNet 2000 at {path}; set SEMEMEKIT_DATA to the folder of data")
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    marked = ("neg|否", "BeUnable|无能", "modality|语气")
    found = {line.split()[0] for line in lines if any(sememe in line for sememe in marked)}
    negations = {word for word in found if len(word) < 4 and set(word) & set("不没无未勿毋莫非别弗甭")}  # idioms are longer
    assert len(negations) > 60
    assert [word for word in sorted(negations) if not is_negation(word)] == []
    assert not [word for word in ("特别", "别人", "非常", "电影", "ago", "没精打采的") if is_negation(word)]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (("noun", "noun"), "part of speech kept by the candidates (sememe)"),
        (("noun", ""), "part of speech kept by the candidates (sememe) for the 50.0 % of senses that have one"),
        (("", ""), "part of speech not checked: none of the 2 senses of the candidates' lexicon has one"),
    ],
)
def test_the_share_of_senses_with_a_part_of_speech_is_told(tmp_path: Path, parts: tuple[str, str], told: str) -> None:
    rows = "".join(f"{word}\t{part}\tanimal\n" for word, part in zip(("cat", "dog"), parts, strict=True))
    (tmp_path / "table.tsv").write_text(f"word\tpos\tsememes\n{rows}", encoding="utf-8")
    candidates = {"name": "sememe", "sources": [f"table:{tmp_path / 'table.tsv'}"]}
    assert _part_of_speech(read_attack_plan({"candidates": candidates}, "a test")) == told


def test_the_preset_is_named_in_the_plan_and_can_be_taken_off() -> None:
    plan = read_attack_plan({**PLAIN, "constraints": {"share": {"most": 0.5}}}, "a test")
    assert [part.name for part in plan.constraints] == [name for name in CONSTRAINTS if name in (*PRESETS["standard"], "share")]
    assert read_attack_plan(plan.table(), "again") == plan
    own = read_attack_plan({**PLAIN, "constraints": {"opposites": {"built_in": False}}}, "a test")
    [part] = [part for part in own.constraints if part.name == "opposites"]
    assert not part.settings.built_in  # type: ignore[attr-defined]
    loose = read_attack_plan({**PLAIN, "attack": {"constraints": "loose"}}, "a test")
    assert {part.name for part in loose.constraints} == set(PRESETS["loose"]) < set(PRESETS["standard"])
    assert read_attack_plan({**PLAIN, "attack": {"constraints": "none"}}, "a test").constraints == ()


def test_expressions_of_several_words_are_no_substitutes(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"film": ["moving_picture", "motion picture", "movie", "a\\u00a0b"]}', encoding="utf-8")
    plan = read_attack_plan({"candidates": {"name": "table", "path": str(tmp_path / "t.json")}}, "a test")
    assert plan.candidates.build(RESOURCES).table(["film"]) == {"film": ("movie",)}
    (tmp_path / "t.json").write_text('{"film": ["\\ud800"]}', encoding="utf-8")
    with pytest.raises(DataError, match="half a surrogate"):
        plan.candidates.build(RESOURCES).table(["film"])
    (tmp_path / "t.json").write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises(DataError, match="not JSON"):
        plan.candidates.build(RESOURCES).table(["film"])


def test_of_equal_sememes_the_frequent_word_comes_first(tmp_path: Path) -> None:
    words = "aardvark movie picture film zebra"
    rows = "".join(f"{word}\tn\tshow\n" for word in words.split())
    (tmp_path / "l.tsv").write_text(f"word\tpos\tsememes\n{rows}", encoding="utf-8")
    settings = {"name": "sememe", "sources": [f"table:{tmp_path}/l.tsv"], "most": 2}
    plan = read_attack_plan({"candidates": settings}, "a test")
    known = AttackResources(None, ("the", "picture", "movie"), ("text",))
    assert plan.candidates.build(known).table(["film"]) == {"film": ("picture", "movie")}
    assert plan.candidates.build(AttackResources(None, (), ("text",))).table(["film"]) == {"film": ("aardvark", "movie")}


def test_text_without_blanks_is_cut_where_it_stands() -> None:
    def cut(text: str) -> list[str]:
        return [text[begin : begin + 2] for begin in range(0, len(text), 2)]

    document = Document.read(("电影很好看", "好。"), cut)
    assert [(word.field, word.begin, word.end, word.text) for word in document.words] == [
        (0, 0, 2, "电影"),
        (0, 2, 4, "很好"),
        (0, 4, 5, "看"),
        (1, 0, 2, "好。"),
    ]
    assert document.replace({0: "影片", 3: "坏"}) == ("影片很好看", "坏")
    assert [word.text for word in Document.read((" a  b ",), str.split).words] == ["a", "b"]
    for wrong, problem in ((str.upper, "where the text has"), (lambda text: text[:1], "left 'b' out")):
        with pytest.raises(DataError, match=problem):
            Document.read(("ab",), wrong)
    result = next(make_attack("greedy").run(EXAMPLES[:1]))
    attack = make_attack("greedy")
    changed = type(attack)(**{**vars(attack), "cut": lambda text: [text.upper()]})
    failed = next(changed.run(EXAMPLES[:1]))
    assert (result.outcome, failed.outcome) == ("success", "error")
    assert "the segmenter gave" in failed.reason
    assert words_of(EXAMPLES[:1], changed.cut) == []


def test_a_stretch_too_long_for_a_word_is_seen() -> None:
    assert long_run(("本科未录取还有",)) == "本科未录取还有"
    assert long_run(("本科 未 录取 还有 这些", "abcdefgh", "1234567")) == ""
    assert long_run(("fine", "好" * 7)) == "好" * 7


def test_the_size_of_a_space() -> None:
    table = {"a": ("b", "c"), "d": ("e",), "f": ("g", "h", "i")}
    space = Space.open(Document.read(("a d f z",)), table)
    for most, points in ((1, 6), (2, 17), (4, 23)):
        limited = space.narrowed(max_changes=most)
        assert limited.num_points() == points
        assert limited.texts_log10() == pytest.approx(math.log10(points), abs=1e-4)
        rows = [row for row in product(range(3), range(2), range(4)) if 0 < np.count_nonzero(row) <= most]
        assert len(rows) == points
    assert space.narrowed(max_changes=0).texts_log10() is None
    long = Space.open(Document.read(("f " * 300,)), table)
    assert long.texts_log10() == pytest.approx(300 * math.log10(4), abs=1e-3)


def test_the_space_is_told_of_every_example_that_was_right() -> None:
    results = list(make_attack("greedy", constraints={"stop_words": {}}).run(EXAMPLES))
    first = results[0].space if results[0].index == 0 else next(r.space for r in results if r.index == 0)
    assert first is not None
    assert (first.words, first.with_candidates, first.changeable) == (8, 4, 3), "very is a stop word; the mark is no word"
    assert first.substitutes == 7
    assert all((result.space is not None) == bool(result.correct) for result in results)


def test_randomness_can_be_given() -> None:
    def run(generator: np.random.Generator | None) -> Any:
        attack = make_attack("random", search__draws=3, search__at_once=3)
        asking = attack.attack_one(EXAMPLES[2], generator)
        found = [list(next(asking))]
        try:
            while True:
                found.append(list(asking.send(attack.victim.ask([found[-1]])[0])))
        except StopIteration:
            return found

    assert run(np.random.default_rng(5)) == run(np.random.default_rng(5)) != run(np.random.default_rng(6))
    assert run(None) == run(np.random.default_rng([1, 2]))
