"""The lookup of words, and the checker of the open lexicon."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.config import resources_folder
from sememekit.errors import DataError
from sememekit.files import typed
from sememekit.sememes.lookup import check_open_lexicon, lookup
from sememekit.sememes.searching import DumpReport
from sememekit.sememes.special_tokens import UNKNOWN
from tests.small_run import Place


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    teaching = "教学\tV\tteach|教\n"
    glossary = f"教师\tN\thuman|人,#occupation|职位,*teach|教\n{teaching}{teaching}坏\tN\tbad|坏,,\nAB\tN\tsymbol|符号\n"
    (tmp_path / "glossary.tsv").write_text(glossary, encoding="utf-8")
    (tmp_path / "list.txt").write_text("教师\n人 教育\n大学教师\n人\n", encoding="utf-8")
    return [f"hownet2000:{tmp_path / 'glossary.tsv'}", f"list:{tmp_path / 'list.txt'}"]


def test_senses_of_all_sources_with_their_trees(sources: list[str]) -> None:
    report = lookup(" 教师 ", sources)
    first, second = report.senses
    assert (first.source, first.part_of_speech, first.sememes) == ("hownet2000:glossary.tsv", "N", ("人", "教", "职位"))
    assert [(node.relation, node.sememe) for node in first.tree] == [
        ("", "human|人"),
        ("#", "occupation|职位"),
        ("*", "teach|教"),
    ]
    assert (second.source, second.sememes, second.tree) == ("list:list.txt", ("人", "教育"), ())
    assert report.nearest == ()


def test_a_nested_tree(tmp_path: Path) -> None:
    path = tmp_path / "hownet.txt"
    path.write_text("NO.=1\nW_C=教师\nDEF={human|人:{teach|教:agent={~}},modifier={neg|否,past|昔}}\n", encoding="utf-8")
    (sense,) = lookup("教师", [f"hownet:{path}"]).senses
    (human,) = sense.tree
    teach, modifier = human.children
    assert [(node.relation, node.sememe) for node in teach.children] == [("agent", "~")]
    assert (modifier.relation, modifier.sememe, [node.sememe for node in modifier.children]) == (
        "modifier",
        "",
        ["neg|否", "past|昔"],
    )


def test_a_definition_that_is_no_tree_is_shown_with_its_fault(sources: list[str]) -> None:
    (sense,) = lookup("坏", sources).senses
    assert sense.sememes == ("坏",)
    assert sense.tree == ()
    assert "definition, character 7: expected a sememe, found ','" in sense.definition_fault


def test_full_width_and_special_tokens(sources: list[str]) -> None:
    assert lookup("ＡＢ", sources).senses[0].word == "AB"
    (sense,) = lookup("<N>", sources).senses
    assert (sense.source, sense.sememes) == ("special token", ("基数",))
    assert lookup(UNKNOWN, sources).senses[0].sememes == (UNKNOWN,)


def test_a_repeated_entry_is_shown_once(sources: list[str]) -> None:
    assert len(lookup("教学", sources).senses) == 1


def test_an_unknown_word_gets_its_neighbours(sources: list[str]) -> None:
    report = lookup("女教师", sources)
    assert report.senses == ()
    assert report.nearest == ("教师", "大学教师", "教学")[: len(report.nearest)]
    assert report.nearest[0] == "教师"
    assert lookup("毫无关系", sources).nearest == ()


GOOD = {
    "inventory.tsv": "eat|吃\tto eat\nfruit|水果\tfruits\nmark|标点\tmarks\n",
    "words.tsv": "吃\tv\teat\teat|吃\n苹果\tn\tapple\tfruit|水果\n",
}


def write(folder: Path, **changes: str) -> Path:
    for name, text in {**GOOD, **{f"{name}.tsv": text for name, text in changes.items()}}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_good_open_lexicon(tmp_path: Path) -> None:
    report = check_open_lexicon(write(tmp_path, more="吃\tv\tto suffer\teat|吃 fruit|水果\n"))
    assert report.ok
    assert report.faults == ()
    assert (report.entries, report.words, report.senses, report.sememes) == (3, 2, 3, 3)
    assert report.unused_sememes == ("mark|标点",)
    assert report.entries_by_part_of_speech == {"n": 1, "v": 2}
    assert report.files == ("more.tsv", "words.tsv")


@pytest.mark.parametrize(
    ("changes", "place", "message", "fatal"),
    [
        ({"words": "吃\tv\teat\n"}, "words.tsv:1", "expected 4 columns", True),
        ({"words": "# c\n吃\tv\teat\teat|喝\n"}, "words.tsv:2", "'eat|喝' of '吃' is not in inventory.tsv", True),
        ({"words": "吃\tx\teat\teat|吃\n"}, "words.tsv:1", "POS 'x'", True),
        ({"words": "\tv\teat\teat|吃\n"}, "words.tsv:1", "the word of this entry is empty", True),
        ({"words": "吃\tv\teat\t \n"}, "words.tsv:1", "the sememes of this entry is empty", True),
        ({"words": "吃\tv\t eat\teat|吃\n"}, "words.tsv:1", "blanks around the gloss", False),
        ({"words": "吃\tv\teat\teat|吃 eat|吃\n"}, "words.tsv:1", "stands twice", False),
        ({"words": "苹果\tn\tapple\tfruit|水果\n吃\tv\teat\teat|吃\n"}, "words.tsv:2", "comes after '苹果'", False),
        ({"more": "吃\tv\tdine\teat|吃\n"}, "words.tsv:1", "same sememes in ", False),
        (
            {"inventory": "eat|吃\tx\nfruit|水果\tx\nfruit|果\tx\n"},
            "inventory.tsv:3",
            "name 'fruit' of sememe 'fruit|果'",
            True,
        ),
        ({"inventory": "eat|吃\tx\nfruit|水果\tx\ndine|吃\tx\n"}, "inventory.tsv:3", "name '吃' of sememe 'dine|吃'", True),
        ({"inventory": "eat|吃\tx\nfruit|水果\tx\nbad\tx\n"}, "inventory.tsv:3", "not written english|中文", True),
        ({"inventory": "eat|吃\tx\nfruit|水果\tx\na|甲\n"}, "inventory.tsv:3", "expected 2 or 3 columns", True),
        ({"inventory": "eat|吃\tdo\tx\nfruit|水果\t\tx\n"}, "inventory.tsv:1", "parent 'do' of 'eat|吃' is not in", False),
        ({"inventory": "eat|吃\teat\tx\nfruit|水果\t\tx\n"}, "inventory.tsv:1", "form a circle", False),
        ({"words": "吃\tv\teat\teat|吃\t吃\n"}, "words.tsv:1", "or 6 with Chinese gloss and example, found 5", False),
        ({"words": "吃\tv\teat\teat|吃\t吃\t他 喝 水\n"}, "words.tsv:1", "does not have the word", False),
        ({"words": "吃\tv\te\u200bat\teat|吃\n"}, "words.tsv:1", "a character that is not allowed", False),
    ],
)
def test_each_fault_is_found_alone(tmp_path: Path, changes: dict[str, str], place: str, message: str, fatal: bool) -> None:
    report = check_open_lexicon(write(tmp_path, **changes))
    assert not report.ok
    (fault,) = report.faults
    assert fault.place == str(tmp_path / place)
    assert message in fault.message
    assert fault.fatal is fatal


def test_too_many_sememes(tmp_path: Path) -> None:
    many = "".join(f"s{i}|义{i}\tx\n" for i in range(899))
    assert check_open_lexicon(write(tmp_path, inventory="eat|吃\tx\n" + many, words="吃\tv\teat\teat|吃\n")).ok
    report = check_open_lexicon(write(tmp_path, inventory="eat|吃\tx\nfruit|水果\tx\n" + many))
    assert [fault.message for fault in report.faults] == ["901 sememes, and at most 900 are allowed"]


def test_levels_of_the_inventory(tmp_path: Path) -> None:
    chain = "s0|义0\t\tx\n" + "".join(f"s{i}|义{i}\ts{i - 1}\tx\n" for i in range(1, 6))
    report = check_open_lexicon(write(tmp_path, inventory="eat|吃\tx\nfruit|水果\tx\n" + chain))
    assert [fault.message for fault in report.faults] == ["'s5|义5' is on level 6, and 5 are allowed"]


ENGLISH = "apple\tn\tround fruit\tfruit|水果\t苹果\tthe red apples\neat\tv\ttake food\teat|吃\t吃\tshe ate it\n"


def by_field(folder: Path, **files: str) -> Path:
    """A lexicon with English words in files by field."""
    write(folder)
    (folder / "en").mkdir()
    for name, text in {"food": ENGLISH, **files}.items():
        (folder / "en" / f"{name}.tsv").write_text(text, encoding="utf-8")
    return folder / "en"


def test_english_words_share_the_inventory(tmp_path: Path) -> None:
    folder = by_field(tmp_path)
    report = check_open_lexicon(folder)
    assert report.faults == ()
    assert (report.words, report.incomplete, report.unused_sememes) == (2, 0, ("mark|标点",))
    assert check_open_lexicon(tmp_path).incomplete == 2, "the Chinese words of four columns"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pear\tn\tfruit\tfruit|水果\n", "expected 6 columns"),
        ("Pear\tn\tfruit\tfruit|水果\t梨\ta big Pear\n", "must be written in lower case"),
        ("pear\tn\t梨\tfruit|水果\t梨\ta big pear\n", "the English gloss '梨' has Chinese"),
        ("pear\tn\tfruit\tfruit|水果\tpear\ta big pear\n", "the Chinese gloss 'pear' has no Chinese"),
        ("pear\tn\tfruit\tfruit|水果\t梨\tpear\n", "has 1 words, and 2 to 6 are allowed"),
        ("pear\tn\tfruit\tfruit|水果\t梨\ta big pear.\n", "must have no punctuation marks"),
        ("pear\tn\tfruit\tfruit|水果\t梨\ta big apple\n", "does not have the word"),
        ("apple\tn\tcompany\tmark|标点\t公司\tan apple computer\n", "'apple' stands in food.tsv"),
        ("pear\tn\tfruit\tfruit|水果\t梨\ta pear\npear\tv\tx\tfruit|水果\t梨\ta pear\n", "a sense with the same sememes"),
    ],
)
def test_a_file_of_a_writer_is_checked_alone(tmp_path: Path, text: str, message: str) -> None:
    folder = by_field(tmp_path, pears=text, other="(\n")
    report = check_open_lexicon(folder / "pears.tsv")
    assert any(message in fault.message for fault in report.faults)
    assert {Path(fault.place.rpartition(":")[0]).name for fault in report.faults} == {"pears.tsv"}


def test_a_file_may_say_that_it_has_four_columns(tmp_path: Path) -> None:
    report = check_open_lexicon(by_field(tmp_path, short="# short\npear\tn\tfruit\tfruit|水果\n"))
    assert report.ok
    assert report.incomplete == 1


def test_no_lexicon_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        check_open_lexicon(tmp_path / "absent")
    with pytest.raises(DataError, match=r"at least one other \.tsv file"):
        check_open_lexicon(tmp_path)


def test_the_lexicon_that_ships_is_consistent() -> None:
    folder = resources_folder() / "lexicon"
    if {path.name for path in folder.glob("*.tsv")} <= {"inventory.tsv"}:
        pytest.skip("this tree has no entries of the open lexicon yet")
    report = check_open_lexicon()
    assert report.faults == ()
    assert report.entries >= 2_500
    assert report.sememes <= 900


def test_the_example_of_the_help_page_is_a_word_of_the_open_lexicon() -> None:
    page = CliRunner().invoke(app, ["lookup", "--help"]).stdout
    word = next(line.split()[2] for line in page.splitlines() if line.strip().startswith("sememekit lookup "))
    assert lookup(word).senses


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a b c", r"give one WORD, or two for their similarity, and not 3; --suggest takes any number"),
        ("a b c --similar", r"give one WORD, or two for their similarity, and not 3"),
        ("a b --similar", r"give one WORD, or two for their similarity, and not 2"),
        ("--check --sememe a", r"give one of WORD, --sememe, .*, and not --sememe with --check"),
        ("a --graph g --source open", r"give --graph or --source, not both"),
        ("a --graph g --side english", r"--side is of lexicons, and a graph has its words; leave it out with --graph"),
        ("a --top 3", r"--top needs --sememe, --similar, --suggest or --diff; leave it out"),
        ("--sememe a --graph g", r"--graph needs WORD, two words, --similar, --pairs, --suggest or --change; leave it out"),
        ("a --vectors v", r"--vectors needs --suggest; leave it out"),
        ("--check --source open", r"--check is of the open lexicon alone; leave --source out"),
        ("--change a --graph", r"--change takes two values, and --graph was taken for one"),
        ("--diff open --source open --source open", r"--diff compares one --source with another lexicon; merge several"),
        ("--suggest", r"--suggest needs WORD..., or --unannotated-of DATA"),
        ("--suggest a --unannotated-of d", r"--suggest needs WORD..., or --unannotated-of DATA"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(given: str, message: str) -> None:
    result = CliRunner().invoke(app, ["lookup", *given.split()])
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.search(message, " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())), result.stderr


@pytest.mark.parametrize(
    ("given", "shown", "after"),
    [
        ("教师", "human|人", ""),
        ("教师 教学", "similarity", ""),
        ("教师 --similar", "教学", "shared sememes stand in brackets"),
        ("--sememe 教", "教师", "next: sememekit lookup WORD --similar"),
        ("--suggest 女教师 --top 1", "教", "next: --dump FILE writes them as a table"),
    ],
)
def test_each_question_has_its_answer_and_what_to_type_next(
    sources: list[str], given: str, shown: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints: list[tuple[str, bool]] = []
    monkeypatch.setattr("sememekit.commands.lookup.hint", lambda text, quiet: hints.append((text, quiet)))
    arguments = ["lookup", *given.split(), "--source", sources[0]]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, shown in result.stdout) == (0, True), result.stdout + result.stderr
    assert hints == ([(after, False)] if after else [])
    quiet = CliRunner().invoke(app, [*arguments, "--quiet"])
    assert (quiet.stdout, quiet.stderr, hints[1:]) == (result.stdout, "", [(after, True)] if after else [])
    assert json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)


@pytest.mark.parametrize(("word", "named"), [("苹果", "苹果#1"), ("梨", "梨")])
def test_a_word_of_a_graph_can_be_changed_next(place: Place, word: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sense has a number where there are several."""
    hints: list[str] = []
    monkeypatch.setattr("sememekit.commands.lookup.hint", lambda text, quiet: hints.append(text))
    assert CliRunner().invoke(app, ["lookup", word, "--graph", str(place.graph)]).exit_code == 0
    assert hints == [f"next: {typed('sememekit', 'lookup', '--change', named, '+SEMEME -SEMEME', '--graph', place.graph)}"]


def test_renamed_sememes_are_told_beside_a_table_and_not_beside_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = DumpReport(file="all.tsv", sources=("open",), words=3, senses=4, renamed=2)
    monkeypatch.setattr("sememekit.sememes.searching.dump_lexicons", lambda *given, side: report)
    told = "blanks in the names of 2 sememes are written as _\n"
    for more, expected in ((["--json"], ""), ([], told), (["--quiet"], "")):
        result = CliRunner().invoke(app, ["lookup", "--dump", str(tmp_path / "all.tsv"), *more])
        assert (result.exit_code, result.stderr) == (0, expected)
