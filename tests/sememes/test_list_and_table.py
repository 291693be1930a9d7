"""Lists and tables that people write themselves: what is read, what broken ones get, and warnings about doubtful sememes."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from sememekit.errors import DataError
from sememekit.files import RunWarning
from sememekit.sememes import open_lexicon
from tests.small_lexicons import HOWNET2000, TABLE, write


@pytest.mark.filterwarnings("ignore::sememekit.files.RunWarning")
@pytest.mark.parametrize(
    "text",
    [
        "bank\tmoney|钱\tland|地,side|边\n",
        "bank\tN\tmoney|钱 house|房\n",
        "bank\tN\tmoney, house\n",
        "bank\tN\tmoney|钱,a|b\tland|地\n",
        HOWNET2000 + "bank\tmoney\tland\n",
    ],
)
def test_a_table_that_is_like_hownet2000(text: str, tmp_path: Path) -> None:
    """Commas, capitals or three columns alone are no HowNet 2000."""
    assert open_lexicon(f"table:{write(tmp_path / 'kb.tsv', text)}").num_senses > 1


def test_list_with_byte_order_marks_tabs_and_blanks(tmp_path: Path) -> None:
    path = write(tmp_path / "list.txt", "\ufeff\n丢\n\ufeff苹果\n水果\t电脑 \n\n\n红 的\n颜色 颜色\n")
    lexicon = open_lexicon(f"list:{path}")
    assert {word: lexicon.senses(word)[0].sememes for word in lexicon.words} == {"苹果": ("水果", "电脑"), "红 的": ("颜色",)}
    assert (lexicon.report.records, lexicon.report.skipped) == (4, {"record without a word": 2})


def test_a_blank_line_at_the_end_of_a_list_is_no_record(tmp_path: Path) -> None:
    path = write(tmp_path / "list.txt", "苹果\n水果\n\n")
    lexicon = open_lexicon(f"list:{path}")
    assert list(lexicon.words) == ["苹果"]
    assert lexicon.report.skipped == {"record without a word": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("词\n义\n词二\n", r"list.txt:3: word '词二' has no sememe line"),
        ("词\t义\n词\t义\n", r"list.txt:1: a tab in the line of a word"),
        ("苹果\n水果\n\n梨\n植物\n\n", r"list.txt:3: a blank line where a word must be, before '梨'"),
        ("苹果\n水果\n\n梨\n植物\n\n桃\n植物\n", r"list.txt:3: a blank line where a word must be, before '梨'"),
        (
            "苹果\n水果 食物\n梨\n植物\n桃\n李\n植物 食物\n杏\n植物 食物\n",
            r"list.txt:9: word '植物 食物' has no sememe line after it; .* one is missing or too many",
        ),
        ("New York\ncity place\nLos Angeles\ncity\napple\n", r"list.txt:5: word 'apple' has no sememe line"),
        ("New York\ncity\napple\n", r"list.txt:3: word 'apple' has no sememe line"),
        ("苹果\n水果\n\n\n梨\n", r"list.txt:5: word '梨' has no sememe line"),
        ("\n苹果\n水果\n\n", r"list.txt:1: a blank line where a word must be, before '苹果'"),
    ],
)
def test_a_broken_list(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_lexicon(f"list:{write(tmp_path / 'list.txt', text)}")


@pytest.mark.parametrize(
    ("sememes", "told"),
    [
        ("水果，食物", "has '水果，食物', which is read as one sememe; blanks stand between sememes: write '水果 食物'$"),
        ("水果 、 食物", "has '、', which is read as one sememe; blanks stand between sememes, and no marks$"),
        ("fruit|水果,food|食物;", r"has 'fruit\|水果,food\|食物;', which .*: write 'fruit\|水果 food\|食物'$"),
        ("食物 fruit|", r"has the sememe 'fruit\|' with an empty side; write a name, or two as in human\|人$"),
        ("", "has no sememes here, so graphs and attacks leave this sense out$"),
    ],
)
def test_sememes_that_were_hardly_meant_are_told(tmp_path: Path, sememes: str, told: str) -> None:
    """The row was read as one sememe of a strange name, or as none."""
    lines = f"红\n颜色\n苹果\n{sememes}\n"
    with pytest.warns(RunWarning, match=rf"list\.txt:3: '苹果' {told}"):
        open_lexicon(f"list:{write(tmp_path / 'list.txt', lines)}")
    with pytest.warns(RunWarning, match=rf"list\.txt:3: '苹果' {told[:-1]}; 2 more in this file$"):
        open_lexicon(f"list:{write(tmp_path / 'list.txt', lines + '桃' + chr(10) + '，' + chr(10) + '梨' + chr(10) * 2)}")
    for header, row in (("", "苹果\t颜色\t{}\t水果\n"), ("word\tpos\tsememes\n", "苹果\tn\t{}\n")):
        with pytest.warns(RunWarning, match=rf"kb\.tsv:{1 + bool(header)}: '苹果' {told}"):
            open_lexicon(f"table:{write(tmp_path / 'kb.tsv', header + row.format(sememes))}")


def test_table_with_header_packed(tmp_path: Path) -> None:
    lexicon = open_lexicon(f"table:{write(tmp_path / 'kb.tsv.xz', lzma.compress(TABLE.encode()))}")
    first, second = lexicon.senses("bank")
    assert first.sememes == ("institution|机构", "money|钱")
    assert first.definition == "{institution|机构}"
    assert second.sememes == ("land|地", "side|边")


@pytest.mark.parametrize("before", ["\n", " \r\n\n"])
@pytest.mark.parametrize("header", ["word\tpos\tsememes", "Word\tPOS\tSememes ", "SEMEMES\tx\tWORD"])
def test_a_header_below_blank_lines_and_in_another_case(header: str, before: str, tmp_path: Path) -> None:
    row = "水果 植物\tn\t苹果" if header.startswith("SEM") else "苹果\tn\t水果 植物"
    lexicon = open_lexicon(f"table:{write(tmp_path / 'kb.tsv', f'{before}{header}{chr(10)}{row}{chr(10)}')}")
    assert list(lexicon.words) == ["苹果"]
    assert [sense.sememes for sense in lexicon.senses("苹果")] == [("植物", "水果")]


def test_plain_table(tmp_path: Path) -> None:
    lexicon = open_lexicon(
        f"table:{write(tmp_path / 'kb.tsv', 'bank{t}money house{t}land{n}{t}x{n}'.format(t=chr(9), n=chr(10)))}"
    )
    assert [sense.sememes for sense in lexicon.senses("bank")] == [("house", "money"), ("land",)]
    assert lexicon.report.skipped == {"line without a word": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TABLE.encode() + b"a\tb\n", r"kb.tsv.*:4: has 2 columns, but the header names 4"),
        (b"bank money\n", r"kb.tsv.*:1: no tab in 'bank money'"),
        (b"word\tsememes\n", "no record with a word"),
        (b"\nWord\tPOS\tsememe\na\tn\tb\n", r"kb.tsv.*:2: seems to be a header \(word, pos, sememe\), .*; rename them, or"),
    ],
)
def test_a_broken_table(tmp_path: Path, content: bytes, message: str) -> None:
    for path in (write(tmp_path / "kb.tsv", content), write(tmp_path / "kb.tsv.xz", lzma.compress(content))):
        with pytest.raises(DataError, match=message):
            open_lexicon(f"table:{path}")
