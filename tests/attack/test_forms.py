"""Words that ``standard`` leaves out by their form: opposites by prefix, kin and days, names, abbreviations, inflection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sememekit.attack import AttackResources, Document, build_constraints, read_attack_plan
from sememekit.attack.constraints.pairs import are_opposites_by_form
from sememekit.attack.space import Space

LEXICON = """word\tpos\tsememes
wear\tn\tclothes
stays\tn\tclothes
stay\tv\tremain
always\tr\ttime
longest\tr\ttime
forever\tr\ttime
long\ta\tlength
building\tn\thouse
edifice\tn\thouse
build\tv\tmake
studies\tn\tresearch
study\tn\tresearch
inquiries\tn\tresearch
inquiry\tn\tresearch
strange\ta\todd
outlandish\ta\todd
weird\ta\todd
"""


def narrowed(text: str, table: dict[str, tuple[str, ...]], name: str, tmp_path: Path, cut: Any = None) -> dict[str, Any]:
    (tmp_path / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    sources = [f"table:{tmp_path / 'lexicon.tsv'}"]
    plan = read_attack_plan({"candidates": {"name": "sememe", "sources": sources}}, "a test")
    assert name in [part.name for part in plan.constraints], "the preset standard has it"
    resources = AttackResources(None, (), ("text",))
    space = Space.open(Document.read((text,), cut), table)
    for part, constraint in zip(plan.constraints, build_constraints(plan, resources), strict=True):
        space = constraint.narrow(space) if part.name == name else space
    return {word.text: found for word, found in zip(space.document.words, space.substitutes, strict=True) if found}


@pytest.mark.parametrize(
    "pair",
    [
        *("perfect imperfect", "happy unhappy", "correct incorrect", "legal illegal", "regular irregular", "honest dishonest"),
        *("fiction nonfiction", "fiction non-fiction", "fortune misfortune", "hopeful hopeless", "use useless"),
        *("carefully carelessly", "perfectly imperfectly", "完美 不完美", "有效 无效", "正式 非正式", "成年 未成年", "限 无限"),
    ],
)
def test_a_prefix_or_suffix_makes_an_opposite(pair: str) -> None:
    word, other = pair.split()
    assert are_opposites_by_form(word, other)
    assert are_opposites_by_form(other, word)


@pytest.mark.parametrize(
    "pair",
    [
        "flammable inflammable",
        "valuable invaluable",
        "blessing sing",
        "it unit",
        "good fine",
        "bless less",
        "电影 影片",
        "不 好",
    ],
)
def test_other_words_are_none(pair: str) -> None:
    word, other = pair.split()
    assert not are_opposites_by_form(word, other)


def test_opposites_kin_and_days_are_left_out(tmp_path: Path) -> None:
    table = {"perfect": ("imperfect", "flawless"), "father": ("dad", "nephew", "priest"), "midnight": ("even",)}
    found = narrowed("perfect father midnight", table, "opposites", tmp_path)
    assert found == {"perfect": ("flawless",), "father": ("dad",)}
    table = {"父亲": ("丈夫", "侄儿", "爸爸"), "昨天": ("前天", "昨日"), "上午": ("凌晨",), "电影": ("影片", "姐姐")}
    found = narrowed("父亲 昨天 上午 电影", table, "opposites", tmp_path)
    assert found == {"父亲": ("爸爸",), "昨天": ("昨日",), "电影": ("影片",)}


def test_names_and_abbreviations_stay_in_lower_case_text(tmp_path: Path) -> None:
    assert [word.text for word in Document.read(("the u.s. is big. a j.k. book",)).words] == [
        *("the", "u.s.", "is", "big", ".", "a", "j.k.", "book")
    ]
    table = {
        "john": ("toilet",),
        "malkovich": ("x",),
        "u.s.": ("al",),
        "u": ("al",),
        "being": ("entity", "john"),
        "paris": ("y",),
    }
    assert narrowed("being john malkovich in u.s. paris", table, "names", tmp_path) == {"being": ("entity",)}


def test_articles_and_inflection_agree(tmp_path: Path) -> None:
    table = {"strange": ("outlandish", "weird"), "wear": ("stays", "clothes"), "always": ("longest", "forever")}
    table |= {"building": ("edifice",), "studies": ("inquiries", "inquiry"), "hour": ("unit", "era", "honor")}
    found = narrowed("a strange wear always building studies an hour", table, "agreement", tmp_path)
    assert found["strange"] == ("weird",)
    assert found["wear"] == ("clothes",)
    assert found["always"] == ("forever",)
    assert found["building"] == ("edifice",), "a noun in -ing is no inflected form"
    assert found["studies"] == ("inquiries",)
    assert found["hour"] == ("era", "honor"), "by sound, not by letter"
    assert narrowed("the strange", table, "agreement", tmp_path) == {"strange": ("outlandish", "weird")}
