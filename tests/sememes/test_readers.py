"""Every lexicon format: what is read from a small file of our own, and what broken files get."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.errors import ConfigError, DataError, SememekitError
from sememekit.files import RunWarning
from sememekit.sememes import LEXICON_FORMATS, LexiconReader, build_graph, lexicon_reader, open_lexicon, open_lexicons
from sememekit.text.vocabulary import Vocabulary

HOWNET = """\
NO.=000001
W_C=教师
G_C=N [jiao4 shi1]
E_C=
W_E=teacher
G_E=N
E_E=
DEF={human|人:domain={education|教育},{teach|教:agent={~}}}
DEF={second|第二}

NO.=000002
W_C=
W_E=nobody
DEF={human|人}
NO.=000003
W_C=无义
W_E=blank
NO.=000004
W_C=为了
W_E=for
DEF={purpose}
NO.=000005
W_C=教师
W_E=instructor
G_E=N
DEF={human|人:{teach|教:agent={~}},domain={education|教育}}
"""


def write(path: Path, text: str | bytes, encoding: str = "utf-8") -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def test_the_table_of_formats_is_the_folder() -> None:
    for name in LEXICON_FORMATS:
        reader, _ = lexicon_reader(f"{name}:x")
        assert issubclass(reader, LexiconReader)
        assert reader.format_name == name
    folder = Path(__file__).parents[2] / "sememekit" / "sememes" / "formats"
    modules = {target.partition(":")[0].rpartition(".")[2] for target in LEXICON_FORMATS.values()}
    assert modules == {path.stem for path in folder.glob("*.py")} - {"__init__", "restricted_pickle"}


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("hownet", {}, "give a path, as in hownet:PATH"),
        ("hownett:x", {}, "unknown lexicon format 'hownett' .did you mean 'hownet'"),
        ("list:x", {"side": "english"}, "unknown key 'side'"),
        ("hownet:x", {"side": "klingon"}, "'chinese' or 'english'"),
    ],
)
def test_a_wrong_source(spec: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_lexicon(spec, **options)


def test_a_file_without_its_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "english.tsv", TABLE)
    with pytest.raises(ConfigError, match=r"'english.tsv': say its format, as in table:english.tsv; allowed: open, hownet, "):
        open_lexicon("english.tsv")


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("\ufeff苹果\n水果\n", "list"),
        ("\n水果 食物\n苹果\n水果\n", "list"),
        ("苹果\t水果\n", "table"),
        ("NO.=1\nW_C=苹果\n", "hownet"),
        ("", "table"),
    ],
)
def test_a_lexicon_without_its_format_is_told_the_one_that_it_seems_to_have(tmp_path: Path, text: str, like: str) -> None:
    path = write(tmp_path / "own.txt", text)
    with pytest.raises(ConfigError, match=rf"say its format, as in {like}:\S+own\.txt; allowed"):
        open_lexicon(str(path))


@pytest.mark.parametrize("name", sorted(LEXICON_FORMATS))
def test_absent_empty_binary_and_folder(name: str, tmp_path: Path) -> None:
    bad = [tmp_path / "absent", write(tmp_path / "empty", ""), write(tmp_path / "zeros", b"a\tb\tc\n\0\0"), tmp_path]
    for path in bad:
        with pytest.raises(DataError, match=r"absent|empty|zeros|open lexicon|openhownet|cannot be read"):
            open_lexicon(f"{name}:table:{path}" if name in ("random", "single") else f"{name}:{path}")


@pytest.mark.parametrize("name", ["list", "table"])
def test_not_utf8(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "lexicon", "词\t义\n词\t义\n".encode("gb18030"))
    convert = r"iconv -f GB18030 -t UTF-8 \S*lexicon > \S*lexicon\.utf8"
    with pytest.raises(DataError, match=rf"lexicon:1: byte \d .* is not UTF-8; .*{convert}"):
        open_lexicon(f"{name}:{path}")
    path.write_bytes("词\t义\n".encode("utf-16-le").replace(b"\0", b"\x01") + b"\xff\n")
    with pytest.raises(DataError, match=r"is not UTF-8; convert the file to UTF-8$"):
        open_lexicon(f"{name}:{path}")
    path.write_bytes(b"\0")
    with pytest.raises(DataError, match=r"lexicon:1: holds a NUL byte, so it is no text in UTF-8;"):
        open_lexicon(f"{name}:{path}")


@pytest.mark.filterwarnings("ignore::sememekit.files.RunWarning")  # of sememes that were hardly meant
@pytest.mark.parametrize("name", sorted(set(LEXICON_FORMATS) - {"open"}))
@given(data=st.binary(min_size=1, max_size=200))
def test_random_bytes_give_a_lexicon_or_our_error(name: str, data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.mktemp("random") / "lexicon", data)
    try:
        lexicon = open_lexicon(f"{name}:{path}")
    except SememekitError as error:
        assert str(path) in str(error)  # noqa: PT017 - an error is allowed here, not required
    else:
        assert lexicon.num_senses == sum(len(lexicon.senses(word)) for word in lexicon.words)


def test_hownet_chinese_side(tmp_path: Path) -> None:
    lexicon = open_lexicon(f"hownet:{write(tmp_path / 'HowNet.txt', HOWNET)}")
    assert list(lexicon.words) == ["教师", "为了"]
    first, second = lexicon.senses("教师")
    assert first.sememes == second.sememes == ("人", "教", "教育")
    assert (first.part_of_speech, first.gloss) == ("N", "teacher")
    assert first.definition == "{human|人:domain={education|教育},{teach|教:agent={~}}}"
    assert lexicon.senses("为了")[0].sememes == ()
    assert lexicon.senses("没有") == ()
    report = lexicon.report
    assert (report.records, report.words, report.senses, report.empty_bags) == (5, 2, 3, 1)
    assert report.skipped == {"record without a word on the chinese side": 1, "record without a DEF": 1}
    assert report.examples[0].endswith("HowNet.txt:11: record without a word on the chinese side")


def test_options_that_no_source_has_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"--side english: this is for hownet, openhownet, random, single, not for open;"):
        open_lexicons(["open"], side="english")
    with pytest.raises(
        ConfigError, match=r"--defining-words 7: this is for dictionary, random, single, not for open, function-words; leave"
    ):
        open_lexicons(["open", "function-words"], defining_words=7)


def test_hownet_english_side_and_gb18030(tmp_path: Path) -> None:
    path = write(tmp_path / "HowNet.txt", HOWNET.replace("\n", "\r\n"), "gb18030")
    lexicon = open_lexicon(f"hownet:{path}", side="english")
    assert list(lexicon.words) == ["teacher", "nobody", "for", "instructor"]
    assert lexicon.senses("teacher")[0].sememes == ("education|教育", "human|人", "teach|教")
    assert lexicon.senses("teacher")[0].gloss == "教师"
    assert lexicon.report.notes == ("read as gb18030",)


def test_a_cut_hownet_file(tmp_path: Path) -> None:
    path = write(tmp_path / "HowNet.txt", HOWNET[: HOWNET.rindex("DEF=")])
    with pytest.raises(DataError, match=r"HowNet.txt:22: the last record has no DEF="):
        open_lexicon(f"hownet:{path}")
    with pytest.raises(DataError, match=r"HowNet.txt:1: found .* 'NO.='"):
        open_lexicon(f"hownet:{write(path, HOWNET[11:])}")


def test_hownet2000_padded_with_bom(tmp_path: Path) -> None:
    rows = [
        "\ufeff苹果      \tN    \tfruit|水果,#eat|吃",
        "",
        "的   \tSTRU \t{?}",
        "至\tPREP\t{LocationFin}",
        "苹果\tN\tfruit|水果,#eat|吃",
        "\tN\tx|义",
    ]
    lexicon = open_lexicon(f"hownet2000:{write(tmp_path / 'glossary.dat', chr(10).join(rows))}")
    assert list(lexicon.words) == ["苹果", "的", "至"]
    assert lexicon.senses("至")[0].sememes == ("LocationFin",), "a DEF of role names alone is annotated by them"
    assert [sense.sememes for sense in lexicon.senses("苹果")] == [("吃", "水果")] * 2
    report = lexicon.report
    assert (report.records, report.senses, report.duplicates, report.empty_bags) == (5, 4, 1, 1)
    assert report.skipped == {"entry without a word": 1}


def test_a_mark_before_gb18030_is_no_part_of_the_word(tmp_path: Path) -> None:
    path = write(tmp_path / "glossary.dat", "\ufeff人\tN\thuman|人\n", "gb18030")
    assert list(open_lexicon(f"hownet2000:{path}").words) == ["人"]


@pytest.mark.parametrize(
    ("last", "message"),
    [("b\tN", "has 2 columns, but hownet2000 has 3"), ("b\tN\tx|义\t", "has 4 columns"), ("b\tN\t ", "word 'b' has no DEF")],
)
def test_a_broken_hownet2000(tmp_path: Path, last: str, message: str) -> None:
    path = write(tmp_path / "glossary.dat", f"a\tN\tx|义\n{last}\n")
    with pytest.raises(DataError, match=f"glossary.dat:2: {message}"):
        open_lexicon(f"hownet2000:{path}")


HOWNET2000 = "教师\tN\thuman|人,*teach|教\n吃\tV\teat|吃\n的\tSTRU\t{DeChinese|构助}\n"


@pytest.mark.parametrize("name", ["table", "list"])
@pytest.mark.parametrize("text", [HOWNET2000, HOWNET2000 + "为了\tPREP\t{purpose}\n"])
def test_hownet2000_under_another_name(name: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "glossary.tsv", text)
    with pytest.raises(DataError, match=rf"glossary.tsv:1: seems to be HowNet 2000 .*; use hownet2000:{path}"):
        open_lexicon(f"{name}:{path}")
    assert list(open_lexicon(f"hownet2000:{path}").words)[:2] == ["教师", "吃"]


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


def test_list_with_bom_tabs_and_blanks(tmp_path: Path) -> None:
    path = write(tmp_path / "list.txt", "\ufeff\n丢\n苹果\n水果\t电脑 \n\n\n红 的\n颜色 颜色\n")
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
            r"list.txt:7: what looks like sememes where a word must be, '植物 食物', and so from here on; .*: between lines "
            "2 and 7 one is missing or too many, or word '植物 食物' has no sememe line after it",
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
    """They were read as one sememe of a strange name, or as none."""
    lines = f"红\n颜色\n苹果\n{sememes}\n"
    with pytest.warns(RunWarning, match=rf"list\.txt:3: '苹果' {told}"):
        open_lexicon(f"list:{write(tmp_path / 'list.txt', lines)}")
    with pytest.warns(RunWarning, match=rf"list\.txt:3: '苹果' {told[:-1]}; 2 more in this file$"):
        open_lexicon(f"list:{write(tmp_path / 'list.txt', lines + '桃' + chr(10) + '，' + chr(10) + '梨' + chr(10) * 2)}")
    for header, row in (("", "苹果\t颜色\t{}\t水果\n"), ("word\tpos\tsememes\n", "苹果\tn\t{}\n")):
        with pytest.warns(RunWarning, match=rf"kb\.tsv:{1 + bool(header)}: '苹果' {told}"):
            open_lexicon(f"table:{write(tmp_path / 'kb.tsv', header + row.format(sememes))}")


TABLE = "word\tpos\tdef\tsememes\nbank\tn\t{institution|机构}\tinstitution|机构 money|钱\nbank\tn\t\tland|地 side|边\n"


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


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_several_archives_are_one_text(
    ending: str, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pack(TABLE.encode()) + pack(b"") + b"\0" * 8 + pack("river\tn\t\twaters|水域\n".encode()) + b"\0" * 8
    path = write(tmp_path / f"kb.tsv.{ending}", whole)
    assert list(open_lexicon(f"table:{path}").words) == ["bank", "river"]
    with pytest.raises(DataError, match=rf"kb\.tsv\.{ending}: is cut off"):
        open_lexicon(f"table:{write(path, whole[:-20])}")
    monkeypatch.setattr("sememekit.sememes.reading.MAX_BYTES", len(TABLE.encode()) + 1)
    with pytest.raises(DataError, match=rf"kb\.tsv\.{ending}: holds more than 1 GiB"):
        open_lexicon(f"table:{write(path, whole)}")


def test_broken_xz(tmp_path: Path) -> None:
    packed = lzma.compress(TABLE.encode() * 50)
    with pytest.raises(DataError, match="cut off"):
        open_lexicon(f"table:{write(tmp_path / 'kb.tsv.xz', packed[:-20])}")
    with pytest.raises(DataError, match="not an intact xz file"):
        open_lexicon(f"table:{write(tmp_path / 'kb.tsv.xz', TABLE)}")


def test_open_lexicon_and_specials_share_its_sememes(tmp_path: Path) -> None:
    write(tmp_path / "inventory.tsv", "number|数\tcounting\nmark|标点\tmarks\neat|吃\tto eat\n")
    write(tmp_path / "words.tsv", "# comment\n\n吃\tv\teat\teat|吃\n四\tm\tfour\tnumber|数\n")
    lexicon = open_lexicon(f"open:{tmp_path}")
    assert lexicon.senses("四")[0].gloss == "four"
    graph = build_graph(Vocabulary.from_counts({"<N>": 3, "《": 2, "<year>": 1, "吃": 1, "?": 1}), [lexicon])
    bags = {entry.word: entry.senses[0].sememes for entry in graph.entries()}
    assert bags["<N>"] == ("number|数",)
    assert bags["《"] == bags["?"] == ("mark|标点",)
    assert bags["<year>"] == ("specific|特定", "time|时间", "year|年")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("吃\tv\teat\n", r"words.tsv:1: expected 4 columns"),
        ("吃\tv\t\teat|吃\n", r"words.tsv:1: the gloss of this entry is empty"),
        ("吃\tz\teat\teat|吃\n", r"words.tsv:1: POS 'z' of '吃' is none of n v a"),
        ("吃\tv\teat\teat|喝\nx\n", r"words.tsv:1: sememe 'eat\|喝' of '吃' is not in inventory.tsv \(and 1 more faults\)"),
    ],
)
def test_a_broken_open_lexicon(tmp_path: Path, words: str, message: str) -> None:
    write(tmp_path / "inventory.tsv", "eat|吃\tto eat\n")
    write(tmp_path / "words.tsv", words)
    with pytest.raises(DataError, match=message):
        open_lexicon(f"open:{tmp_path}")


@pytest.mark.parametrize("mark", ["/", "|", "\\", "+"])
@pytest.mark.parametrize("form", ["list", "table"])
def test_a_mark_in_the_place_of_blanks_is_told_where_the_file_shows_it(tmp_path: Path, mark: str, form: str) -> None:
    """Of a file: one name with a slash, a name with two sides, or a slash beside blanks may be meant so."""
    between = "\n" if form == "list" else "\t"
    file = tmp_path / "own.txt"
    joined, alone = f"苹果{between}水果{mark}植物\n梨{between}水果{mark}植物\n", f"人{between}人\n"
    file.write_text(alone + joined, encoding="utf-8")
    told = rf"own.txt:{3 if form == 'list' else 2}: '苹果' has .*, and so in 2 of 3 senses; .*: write '水果 植物'$"
    with pytest.warns(RunWarning, match=told):
        open_lexicon(f"{form}:{file}")
    for other in (joined + 3 * alone, joined + f"人{between}人 家\n", f"人{between}human|人\n"):
        file.write_text(other, encoding="utf-8")
        open_lexicon(f"{form}:{file}")
