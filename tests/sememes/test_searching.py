"""Words by sememes: the reverse look-up, similarity, differences, and one file of several lexicons."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.sememes import open_lexicon
from sememekit.sememes.searching import diff_lexicons, dump_lexicons, similar_words, words_with

runner = CliRunner()
FIRST = "苹果\t食品|food 水果|fruit\t品牌|brand\n梨\t水果|fruit 食品|food\n米饭\t食品|food\n电脑\t品牌|brand 机器|machine\n"
SECOND = "苹果\t水果|fruit\n面包\t食品|food\n梨\t食品|food 水果|fruit\n"


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    for name, text in (("first", FIRST), ("second", SECOND)):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    return [f"table:{tmp_path / 'first.txt'}", f"table:{tmp_path / 'second.txt'}"]


def test_the_words_of_a_sememe(tables: list[str]) -> None:
    report = words_with(["水果"], tables[:1])
    assert [(sense.word, sense.sememes) for sense in report.senses] == [
        ("苹果", ("水果|fruit", "食品|food")),
        ("梨", ("水果|fruit", "食品|food")),
    ]
    assert report.num_words == 2
    assert [sense.word for sense in words_with(["food", "水果|fruit"], tables[:1]).senses] == ["苹果", "梨"]
    assert words_with(["品牌", "food"], tables[:1]).senses == (), "both must be in one sense"
    assert [sense.word for sense in words_with(["food"], tables).senses] == ["苹果", "梨", "米饭", "面包"]
    cut = words_with(["food"], tables, top=1)
    assert (cut.num_words, [sense.word for sense in cut.senses]) == (4, ["苹果"])


def test_a_sememe_of_hownet_has_both_names(tmp_path: Path) -> None:
    glossary = tmp_path / "glossary.dat"
    glossary.write_text("放款\tV\tlend|借出,possession=money|货币\n租\tV\tborrow|借入\n", encoding="utf-8")
    for name in ("lend", "借出", "lend|借出"):
        assert [sense.word for sense in words_with([name], [f"hownet2000:{glossary}"]).senses] == ["放款"], name
    with pytest.raises(ConfigError, match=r"no sememe 'lent'.*near: lend"):
        words_with(["lent"], [f"hownet2000:{glossary}"])


def test_a_word_is_that_of_the_first_lexicon_that_knows_it(tables: list[str]) -> None:
    assert words_with(["水果"], tables[::-1]).senses[0].sememes == ("水果|fruit",)


def test_an_unknown_sememe_gets_its_neighbours(tables: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"no sememe '水果类'.*near: 水果"):
        words_with(["水果类"], tables)


def test_similarity_is_that_of_lin_over_the_best_senses(tables: list[str]) -> None:
    report = similar_words("苹果", tables[:1])
    # Five senses: food in 3, fruit in 2, brand in 2, machine in 1.
    food, fruit, brand, machine = (math.log(5 / count) for count in (3, 2, 2, 1))
    expected = {
        "梨": (1.0, ("水果|fruit", "食品|food")),
        "电脑": (2 * brand / (brand + brand + machine), ("品牌|brand",)),
        "米饭": (2 * food / (food + fruit + food), ("食品|food",)),
    }
    assert [sense.word for sense in report.senses] == ["梨", "电脑", "米饭"]
    for sense in report.senses:
        assert sense.similarity == pytest.approx(expected[sense.word][0])
        assert sense.shared == expected[sense.word][1]
    assert [sense.word for sense in similar_words("苹果", tables[:1], top=1).senses] == ["梨"]
    with pytest.raises(ConfigError, match=r"no sense of '萍果'.*near: 苹果"):
        similar_words("萍果", tables)


def test_what_differs_between_two_lexicons(tables: list[str]) -> None:
    report = diff_lexicons(*tables)
    assert (report.words, report.senses, report.sememes) == ((4, 3), (5, 3), (4, 2))
    assert (report.num_same, report.first_only, report.second_only) == (1, ("米饭", "电脑"), ("面包",))
    (changed,) = report.changed
    assert (changed.word, changed.first_only, changed.second_only) == (
        "苹果", ("品牌|brand", "水果|fruit 食品|food"), ("水果|fruit",)
    )  # fmt: skip
    assert (report.sememes_first_only, report.sememes_second_only) == (("品牌|brand", "机器|machine"), ())
    same = diff_lexicons(tables[0], tables[0])
    assert (same.num_same, same.num_changed, same.first_only) == (4, 0, ())


def test_one_file_of_several_lexicons_is_a_lexicon_again(tables: list[str], tmp_path: Path) -> None:
    out = tmp_path / "merged.tsv"
    report = dump_lexicons(out, tables)
    assert (report.words, report.senses, report.renamed) == (5, 6, 0)
    again = open_lexicon(f"table:{out}")
    assert set(again.words) == {"苹果", "梨", "米饭", "电脑", "面包"}
    assert len(again.senses("苹果")) == 2
    assert diff_lexicons(tables[0], f"table:{out}").num_changed == 0
    dump_lexicons(out, tables[:1])  # a file of its own kind is replaced
    (tmp_path / "other.txt").write_text("mine\n")
    with pytest.raises(ConfigError, match=r"not a lexicon as 'lookup --dump' writes it"):
        dump_lexicons(tmp_path / "other.txt", tables)
    with pytest.raises(ConfigError, match="absent does not exist; type: mkdir -p"):
        dump_lexicons(tmp_path / "absent" / "out.tsv", tables)


def test_names_with_blanks_and_tabs_stay_one_name_in_a_column(tmp_path: Path) -> None:
    path = tmp_path / "hownet.txt"
    path.write_text("NO.=1\nW_C=车\nW_E=car\nDEF={land vehicle|车:modifier={big|大}}\n", encoding="utf-8")
    report = dump_lexicons(tmp_path / "out.tsv", [f"hownet:{path}"], side="english")
    (sense,) = open_lexicon(f"table:{tmp_path / 'out.tsv'}").senses("car")
    assert all(" " not in sememe for sememe in sense.sememes)
    assert report.renamed == sum("_" in sememe for sememe in sense.sememes)
    assert sense.definition == "{land vehicle|车:modifier={big|大}}"


def test_a_lexicon_without_sememes_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("词\t\n", encoding="utf-8")
    with pytest.raises(DataError, match="nothing was written"), pytest.warns(RunWarning, match="'词' has no sememes here"):
        dump_lexicons(tmp_path / "out.tsv", [f"table:{tmp_path / 'empty.txt'}"])
    assert not (tmp_path / "out.tsv").exists()


def test_the_command_prints_each(tables: list[str], tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        result = runner.invoke(app, ["lookup", *arguments])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    assert "苹果" in run("--sememe", "水果", "--source", tables[0])
    shown = run("苹果", "--similar", "--source", tables[0])
    assert "[水果|fruit] [食品|food]" in shown
    assert "0.53" in shown
    assert "5 words, 6 senses" in run(
        *[part for table in tables for part in ("--source", table)], "--dump", str(tmp_path / "m")
    )
    shown = run("--source", tables[0], "--diff", tables[1])
    assert "words in both: 1 with the same sememes, 1 with others" in shown
    assert json.loads(run("--source", tables[0], "--diff", tables[1], "--json"))["first_only"] == ["米饭", "电脑"]
    assert json.loads(run("苹果", "--similar", "--source", tables[0], "--json"))["num_words"] == 3
