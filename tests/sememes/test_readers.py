"""Every lexicon format, and HowNet above all: what is read from a small file of our own, and what broken files get."""

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
from sememekit.sememes import (
    LEXICON_FORMATS,
    LexiconReader,
    build_graph,
    lexicon_reader,
    open_lemmas,
    open_lexicon,
    open_lexicons,
    words_of_lexicons,
)
from sememekit.text.vocabulary import Vocabulary
from tests.small_lexicons import HOWNET2000, TABLE, write

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


@pytest.mark.parametrize("spec", ["list:~nobody-of-this-name/x", "dictionary:~nobody-of-this-name/x"])
def test_the_home_of_nobody_is_a_path_that_does_not_exist(spec: str) -> None:
    with pytest.raises((ConfigError, DataError), match="~nobody-of-this-name/x"):
        open_lexicon(spec)
    with pytest.raises((ConfigError, DataError), match="~nobody-of-this-name/x"):
        open_lemmas("~nobody-of-this-name/x")


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


@pytest.mark.parametrize("name", sorted(LEXICON_FORMATS.keys() - {"words"}))
def test_absent_empty_binary_and_folder(name: str, tmp_path: Path) -> None:
    bad = [tmp_path / "absent", write(tmp_path / "empty", ""), write(tmp_path / "zeros", b"a\tb\tc\n\0\0"), tmp_path]
    for path in bad:
        with pytest.raises(DataError, match=r"absent|empty|zeros|open lexicon|openhownet|cannot be read"):
            open_lexicon(f"{name}:table:{path}" if name in ("bare", "random", "single", "shuffled") else f"{name}:{path}")


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
    assert (report.records, report.words, report.senses, report.empty_bags) == (6, 2, 3, 1)
    assert report.skipped == {
        "record without a word on the chinese side": 1,
        "record without a DEF": 1,
        "further DEF of a record": 1,
    }
    assert any(one.endswith("HowNet.txt:11: record without a word on the chinese side") for one in report.examples)


def test_options_that_no_source_has_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"--side english: this is for hownet, openhownet, random, single, bare, shuffled, not for open;"
    ):
        open_lexicons(["open"], side="english")
    fitting = "dictionary, random, single, bare, shuffled"
    with pytest.raises(ConfigError, match=rf"--defining-words 7: this is for {fitting}, not for open, function-words; leave"):
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
    with pytest.raises(DataError, match=r"HowNet.txt:1: found .* 'NO.='|HowNet.txt: seems to be a list of words"):
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


@pytest.mark.parametrize("name", ["table", "list"])
@pytest.mark.parametrize("text", [HOWNET2000, HOWNET2000 + "为了\tPREP\t{purpose}\n"])
def test_hownet2000_under_another_name(name: str, text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "glossary.tsv", text)
    with pytest.raises(DataError, match=rf"glossary.tsv: seems to be HowNet 2000 .*; use hownet2000:{path}"):
        open_lexicon(f"{name}:{path}")
    assert list(open_lexicon(f"hownet2000:{path}").words)[:2] == ["教师", "吃"]


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


WORDS = "今天\n老师\n吃\n苹果\n学生\n电脑\n看\n电影\n"
COUNTED = "今天 12 t\n老师 3 n\n吃 9\n苹果 2 n\n"
SENSES = "苹果 2 2 水果 吃 1 电脑\n老师 1 3 人 教 教育\n吃 1 1 吃\n"
CILIN = "Aa01A01= 人 士 人物\nAa01A02= 人类 生人\nAa01A03@ 人手\n"


def test_a_list_of_words_is_no_list_of_words_and_sememes(tmp_path: Path) -> None:
    """Every second word was lost, and read as a sememe of the one before."""
    many = "".join(f"词{number}\n" for number in range(40))
    for text in (many, COUNTED):
        path = write(tmp_path / "words.txt", text)
        told = rf"words.txt: seems to be a list of words without sememes; for --lexicon use words:{path}"
        with pytest.raises(DataError, match=told):
            open_lexicon(f"list:{path}")
        assert words_of_lexicons(f"words:{path}") == {line.split()[0] for line in text.splitlines()}
        with pytest.raises(
            ConfigError, match=r"a list of words has no sememes; use it for a segmenter: --segmenter fmm --lexicon"
        ):
            open_lexicon(f"words:{path}")
        with pytest.raises(ConfigError, match=rf"say its format, as in words:{path}"):
            lexicon_reader(str(path))


def test_a_short_list_that_shares_no_sememe_is_read_with_a_remark(tmp_path: Path) -> None:
    path = write(tmp_path / "list.txt", "今天\n时间\n老师\n教\n苹果\n水果\n电脑\n机器\n学生\n学\n")
    with pytest.warns(RunWarning, match=r"seems to be a list of words .*; if every second line is a sememe, write word TAB"):
        lexicon = open_lexicon(f"list:{path}")
    assert [lexicon.senses(word)[0].sememes for word in lexicon.words] == [("时间",), ("教",), ("水果",), ("机器",), ("学",)]
    with pytest.warns(RunWarning, match="use words:"):
        open_lexicon(f"list:{write(path, WORDS)}")


def test_the_sense_file_of_se_wrl_is_read_and_recognised(tmp_path: Path) -> None:
    path = write(tmp_path / "senses.txt", SENSES)
    lexicon = open_lexicon(f"se-wrl:{path}")
    assert [sense.sememes for sense in lexicon.senses("苹果")] == [("吃", "水果"), ("电脑",)]
    assert list(lexicon.words) == ["苹果", "老师", "吃"]
    for name in ("list", "table"):
        with pytest.raises(DataError, match=rf"seems to be a sense file of SE-WRL .*; use se-wrl:{path}"):
            open_lexicon(f"{name}:{path}")
    write(path, SENSES + "电影 2 1 看 3 人\n")
    with pytest.raises(DataError, match=r"senses.txt:4: expected a word, its number of senses.*found '电影 2 1 看 3 人'"):
        open_lexicon(f"se-wrl:{path}")


def test_cilin_is_told_what_to_type(tmp_path: Path) -> None:
    path = write(tmp_path / "cilin.txt", CILIN)
    with pytest.raises(DataError, match=r"seems to be Cilin .*table:cilin.tsv"):
        open_lexicon(f"list:{path}")


def test_a_definition_goes_on_in_the_next_line(tmp_path: Path) -> None:
    whole = "NO.=1\nW_C=老师\nG_C=N\nW_E=teacher\nG_E=N\nDEF={human|人:domain={education|教育},{teach|教:agent={~}}}\n\n"
    broken = whole.replace(":domain", ":\ndomain")
    expected = open_lexicon(f"hownet:{write(tmp_path / 'whole', whole)}").senses("老师")
    assert open_lexicon(f"hownet:{write(tmp_path / 'broken', broken)}").senses("老师") == expected
    assert expected[0].sememes == ("人", "教", "教育")
    with pytest.raises(DataError, match="the brackets of the last DEF do not close"):
        open_lexicon(f"hownet:{write(tmp_path / 'open', whole.replace('}}}', '}'))}")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("https://example.org/hownet.txt", "URLs are not read; download it"),
        ("C:\\lexicons\\hownet.txt", "say its format, as in table:C:"),
    ],
)
def test_places_that_are_no_paths_are_told(spec: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        lexicon_reader(spec)
