"""One reader of tables and one of lists: every file that a person writes, in the forms that editors and spreadsheets save."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from typer.testing import CliRunner

from sememekit.analysis.segmentation import read_words
from sememekit.analysis.senses.gold import read_gold
from sememekit.analysis.word_groups import read_labels
from sememekit.analysis.written_texts import compare_texts, read_texts_file
from sememekit.attack.constraints.pairs import read_pairs as read_word_pairs
from sememekit.attack.examples import ExampleResult
from sememekit.attack.ratings import COLUMNS, items_of, read_ratings, sheet
from sememekit.commands._program import app
from sememekit.corpora.examples.labelled import read_labelled
from sememekit.errors import DataError, SememekitError
from sememekit.files import TABLE, RunWarning
from sememekit.files.tables import csv_text, guarded, split_lines, table_rows, tsv_text, unguarded
from sememekit.reports.table import Table
from sememekit.sememes import build_graph, open_lemmas, open_lexicon, words_of_lexicons
from sememekit.sememes.lookup import annotation
from sememekit.sememes.new_words import read_new_words
from sememekit.sememes.overlay import read_overlay
from sememekit.sememes.searching import dump_lexicons, read_pairs, similarity
from sememekit.sememes.suggesting import SuggestReport, WordSuggestions, write_suggestions
from sememekit.text.form import TextForm
from sememekit.text.vectors import read_vectors
from sememekit.text.vocabulary import Vocabulary
from sememekit.word_classes.file import read_clusters

WORDS = Vocabulary.from_counts({"苹果": 3, "水果": 2, "吃": 1, "<unk>": 1})
SEPARATOR = "\u2028"


def lexicon(form: str) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        found = open_lexicon(f"{form}:{path}")
        return {word: [sense.sememes or sense.gloss for sense in found.senses(word)] for word in found.words}

    return read


def new_words(path: Path) -> Any:
    (path.parent / "known.tsv").write_text("水果\t植物\n", encoding="utf-8")
    graph = build_graph(Vocabulary.from_counts({"水果": 1, "<unk>": 1}), [open_lexicon(f"table:{path.parent / 'known.tsv'}")])
    found = read_new_words(path, graph)
    return [(entry.word, [sense.sememes for sense in entry.senses]) for entry in found.entries], found.counts


def labels(path: Path) -> Any:
    data = SimpleNamespace(sentence_labels=lambda split: (), folder="data")
    return read_labels(path, ["labels"], cast(Any, data), "test", cast(Any, SimpleNamespace(num_units=2, unit="lines")))


def vectors(path: Path) -> Any:
    found = read_vectors(path)
    return found.words, found.matrix.tolist()


class Reader(NamedTuple):
    """A file as a plain editor writes it, its reader, and its forms."""

    text: str
    read: Callable[[Path], Any]
    is_table: bool = False  # whether cells may have quotes
    header: frozenset[str] = frozenset()  # known columns, with which commas are read without the name .csv
    separator_in: str = "苹果"  # a word in which U+2028 is a character like others; "" where the text is cut at white space


READERS = {
    "lexicon table, header": Reader(
        "word\tpos\tsememes\n苹果\tn\t植物 食物\n梨\tn\t植物\n", lexicon("table"), True, frozenset({"word", "sememes"})
    ),
    "lexicon table": Reader("苹果\t植物 食物\t电脑\n梨\t植物\n", lexicon("table"), True),
    "lexicon list": Reader("苹果\n植物 食物\n梨\n植物\n", lexicon("list")),
    "se-wrl": Reader("苹果 1 2 植物 食物\n梨 1 1 植物\n", lexicon("se-wrl"), separator_in=""),
    "hownet2000": Reader("苹果\tN\tfruit|水果,edible|食物\n梨\tN\tfruit|水果,edible|食物\n", lexicon("hownet2000"), True),
    "hownet": Reader("NO.=1\nW_C=苹果\nG_C=N\nDEF={fruit|水果}\n", lexicon("hownet")),
    "dictionary": Reader("苹果\ta round fruit\n梨\ta sweet fruit\n", lexicon("dictionary"), True),
    "lemmas": Reader("be\twas\n苹果\t苹果们\n", lambda path: dict(open_lemmas(str(path)).of_form), True),  # type: ignore[union-attr]
    "pairs": Reader("苹果\t水果\t8.5\n吃\t喝\t3\n", read_pairs, True),
    "new words, header": Reader(
        "word\tsememes\tcount\n苹果\t植物\t3\n梨\t\t1\n", new_words, True, frozenset({"word", "sememes"})
    ),
    "new words, list": Reader("苹果\n梨\n", new_words),
    "overlay": Reader("# sememekit overlay 1\n苹果#1\t+水果 -植物\t植物\n# a remark\n梨\t+水果\n", lambda path: [
        (one.sense, one.add, one.remove, one.was) for one in read_overlay(path)]),
    "labels": Reader("苹果 news\nsport\n", labels),
    "gold table": Reader(
        "sentence\tword\tposition\tsense\n我 吃 苹果 。\t苹果\t3\t1\n我 吃 。\t吃\t2\t受\n", read_gold, True,
        frozenset({"word", "sense"}), "",
    ),
    "gold CoNLL-U": Reader("# a\n1\t吃" + "\t_" * 7 + "\tSense=1\n2\t苹果" + "\t_" * 7 + "\tSememes=水果\n\n", read_gold),
    "gold segmentation": Reader("我 吃 苹果\n你 喝 水\n", read_words, separator_in=""),
    "opposites": Reader("苹果\t梨\n大\t小\n", lambda path: sorted(map(sorted, read_word_pairs(path, "opposites")[0])), True),
    "clusters": Reader(
        "苹果\ta\n水果\ta\n吃\tb\n<unk>\tc\n", lambda path: read_clusters(path, WORDS).tolist(), True, separator_in=""
    ),
    "vectors": Reader("苹果 0.5 1\n梨 1 2\n", vectors),
    "labelled texts": Reader("text\tlabel\n苹果 好\t1\n梨 坏\t0\n", lambda path: [
        (row.texts, row.label) for row in read_labelled(path).rows], True, separator_in=""),
    "written texts": Reader('{"source": "苹果", "texts": ["a"], "references": ["b"]}\n' * 2, read_texts_file, separator_in=""),
}  # fmt: skip

STREAMED = {"gold segmentation"}  # running text, where LF alone ends a line


def as_csv(text: str, mark: str = ",") -> str:
    stream = StringIO()
    csv.writer(stream, delimiter=mark).writerows(line.split("\t") for line in text.splitlines())
    return stream.getvalue()


def quoted(text: str) -> str:
    return "".join("\t".join(f'"{cell}"' if cell else "" for cell in line.split("\t")) + "\n" for line in text.splitlines())


FORMS: dict[str, tuple[Callable[[str], str], Callable[[str, Reader], bool], str]] = {
    "CR LF": (lambda text: text.replace("\n", "\r\n"), lambda name, reader: True, ".tsv"),
    "CR": (lambda text: text.replace("\n", "\r"), lambda name, reader: name not in STREAMED, ".tsv"),
    "byte-order mark": (lambda text: "\ufeff" + text, lambda name, reader: True, ".tsv"),
    "concatenated": (lambda text: re.sub("\n(.)", "\n\ufeff\\1", text), lambda name, reader: name != "vectors", ".tsv"),
    "no last line end": (lambda text: text.rstrip("\n"), lambda name, reader: True, ".tsv"),
    "blanks": (lambda text: text.replace("\n", " \n"), lambda name, reader: name not in ("clusters", "gold CoNLL-U"), ".tsv"),
    "quotes": (quoted, lambda name, reader: reader.is_table, ".tsv"),
    "commas": (as_csv, lambda name, reader: reader.is_table, ".csv"),
    "semicolons": (lambda text: as_csv(text, ";"), lambda name, reader: reader.is_table and name != "hownet2000", ".csv"),
    "commas, no name": (as_csv, lambda name, reader: bool(reader.header), ".txt"),
}
"""Form -> how it changes a text, the readers that have it, and the ending of the name."""

CASES = [(name, form) for name, reader in READERS.items() for form, (_, has, _) in FORMS.items() if has(name, reader)]


def stored(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.mark.filterwarnings("ignore::sememekit.files.RunWarning")
@pytest.mark.parametrize(("name", "form"), CASES, ids=[f"{name}: {form}" for name, form in CASES])
def test_every_file_says_the_same_in_every_form(tmp_path: Path, name: str, form: str) -> None:
    reader, (change, _, ending) = READERS[name], FORMS[form]
    plain = reader.read(stored(tmp_path / "a.tsv", reader.text))
    assert reader.read(stored(tmp_path / f"b{ending}", change(reader.text))) == plain


@pytest.mark.filterwarnings("ignore::sememekit.files.RunWarning")
@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.separator_in])
@pytest.mark.parametrize("separator", [SEPARATOR, "\x85", "\x0c"], ids=["U+2028", "U+0085", "form feed"])
def test_other_separators_are_characters_of_a_word(tmp_path: Path, name: str, separator: str) -> None:
    reader = READERS[name]
    plain = reader.read(stored(tmp_path / "a.tsv", reader.text))
    other = stored(tmp_path / "b.tsv", reader.text.replace("苹果", f"苹{separator}果"))
    if name.startswith("new words"):
        with pytest.raises(DataError, match="since words have no blank inside"):
            reader.read(other)
        return
    found = reader.read(other)
    assert repr(found).replace(repr(f"苹{separator}果")[1:-1], "苹果") == repr(plain)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    ("encoding", "command"), [("utf-16", "iconv -f UTF-16 -t UTF-8"), ("gb18030", "iconv -f GB18030 -t UTF-8")]
)
def test_another_encoding_is_named_with_the_line_to_type(tmp_path: Path, name: str, encoding: str, command: str) -> None:
    reader = READERS[name]
    path = tmp_path / "a.tsv"
    path.write_bytes((reader.text * 3).encode(encoding))
    if encoding == "gb18030" and name in ("hownet", "hownet2000"):
        return  # read as GB18030
    with pytest.raises(SememekitError, match=re.escape(f"{command} {path}")):
        reader.read(path)


def test_quotes_and_line_ends_inside_of_cells() -> None:
    def read(text: str, name: str) -> list[tuple[int, list[str]]]:
        return [(row.line, row.cells) for row in table_rows(split_lines(text), name)]

    assert read('\n"a ""b"" c"\t"d\n"\te"\n', "t.tsv") == [(2, ['a "b" c', '"d']), (3, ['"', 'e"'])]
    assert read('\r\n"a, ""b""",c\r\n"d\r\ne",f\r\n,\r\ng,"h"\r\n', "t.csv") == [
        (2, ['a, "b"', "c"]),
        (3, ["d\ne", "f"]),
        (6, ["g", "h"]),
    ]
    with pytest.raises(DataError, match=r"^t\.csv\.xz:2: not CSV"):
        read('a,b\n"c,d\n', "t.csv.xz")
    assert read("", "t.tsv") == read(" \n,\n", "t.csv") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("苹果\t水果\tNaN\n", r"pairs\.tsv:1: .*'NaN' is no number such as 8\.5"),
        ("苹果\t水果\t8\n吃\t喝\t-inf\n", r"pairs\.tsv:2: .*'-inf' is no number"),
        ("苹果\t水果\t8\n吃\t喝\t1e400\n", r"pairs\.tsv:2: .*'1e400' is no number"),
        ("苹果\t水果\t\n苹果\t水果\t8,5\n", r"pairs\.tsv:2: .*'8,5' is no number"),
        ("苹果\t水果\tNA\n苹果\t水果\t8\n", r"pairs\.tsv:1: .*'NA' is no number"),
        ("one\ttwo\tgold\none\ttwo\tgold\n", r"pairs\.tsv:2: .*'gold' is no number"),
        ("1\t苹果\t水果\t8.5\n", r"pairs\.tsv:1: .*'水果' is no number"),
        ("苹果\n", r"pairs\.tsv:1: expected two words"),
        ("\n", r"no pairs; write two words"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*read as a header")
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, text: str, told: str) -> None:
    if text.startswith("1\t"):  # an identifier in front: no header is guessed
        text = f"7\t5\t1\n{text}"
        told = told.replace(":1:", ":2:")
    with pytest.raises(DataError, match=told):
        read_pairs(stored(tmp_path / "pairs.tsv", text))


def test_full_width_ratings_blanks_around_words_and_a_missing_rho(tmp_path: Path) -> None:
    full = read_pairs(stored(tmp_path / "pairs.tsv", "苹果\t水果\t８．５\n老师 学生 3\n工人\t农民\t2\t\n记者\t作者\t4\n"))
    assert full == [("苹果", "水果", 8.5), ("老师", "学生", 3.0), ("工人", "农民", 2.0), ("记者", "作者", 4.0)]
    assert similarity([(" 苹果 ", "苹果", None)]).pairs[0].similarity == 1.0
    for text, told in (
        ("苹果 水果 8\n老师 学生 3\n", "no Spearman's rho over 2 pairs: that is fewer than three"),
        ("苹果 水果 8\n老师 学生 8\n工人 农民 8\n", "no Spearman's rho over 3 pairs: their judgements or"),
    ):
        shown = CliRunner().invoke(app, ["lookup", "--pairs", str(stored(tmp_path / "few.tsv", text))])
        assert (shown.exit_code, told in " ".join(shown.stdout.split())) == (0, True)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["學生", "老師"], "學生 is in traditional characters"),
        (["--suggest", "記者"], "記者 is in traditional characters"),
        (["--pairs", "pairs.tsv"], "學生 is in traditional characters"),
        (["--similar", "學生"], "學生 is in traditional characters"),
    ],
)
def test_every_lookup_names_traditional_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "pairs.tsv", "學生\t老師\t3\n苹果\t水果\t8\n")
    assert told in CliRunner().invoke(app, ["lookup", *asked]).stderr


TAGGED = "".join(f"词{letter}\tn\n" for letter in "甲乙丙丁戊己庚辛壬癸")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Word\tCount\tPerMillion\n苹果\t28\t2.8\n梨\t5\t0.5\n", r"4 of its 6 sememes are numbers, such as '28'"),
        (TAGGED, r"all its 10 words have the one sememe 'n'"),
        ("".join(f"词{letter}\t义{letter}\n" for letter in "甲乙丙丁戊己庚辛壬癸"), "no two of its 10 words share a sememe"),
    ],
)
def test_what_is_hardly_a_sememe_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.warns(RunWarning, match=rf"counts\.tsv: {told}; is this a list of counts"):
        open_lexicon(f"table:{stored(tmp_path / 'counts.tsv', text)}")


@pytest.mark.parametrize("text", ["word,sememes,count\n香蕉,水果,30\n", "香蕉,水果\n梨,水果\n", "fruit|水果\n"])
def test_a_table_is_no_list(tmp_path: Path, text: str) -> None:
    path = stored(tmp_path / "new.txt", text)
    with pytest.raises(DataError, match=r"new\.txt(:1)?: (.* is no word of a list|seems to be a table; use table:)"):
        words_of_lexicons([f"words:{path}"])
    if not text.startswith("word"):
        with pytest.raises(DataError, match=r"new\.txt:1: .* is no word of a list, and all .* word TAB sememes"):
            new_words(path)


def test_words_that_the_run_reads_as_others_are_not_added(tmp_path: Path) -> None:
    graph = build_graph(Vocabulary.from_counts({"水果": 1, "<N>": 1, "<unk>": 1}), [open_lexicon("open")])
    form = TextForm(lower=True, half_width=True, classes=True)
    assert [entry.word for entry in read_new_words(stored(tmp_path / "new.txt", "香蕉\n"), graph, form=form).entries] == [
        "香蕉"
    ]
    for word in ("亿万", "ＡＢＣ", "Apple"):
        with pytest.raises(DataError, match=rf"new.txt:2: no text has the word '{word}'"):
            read_new_words(stored(tmp_path / "new.txt", f"香蕉\n{word}\n"), graph, form=form)
    graph.save(tmp_path / "graph")
    assert annotation("＜Ｎ＞ ", tmp_path / "graph").word == "<N>"


def test_vectors_without_a_word_are_counted(tmp_path: Path) -> None:
    with pytest.warns(RunWarning, match=r"v\.txt:2: the vector has no word, so it is left out; 2 in this file"):
        found = read_vectors(stored(tmp_path / "v.txt", "\ufeff梨 1 2\n 3 4\n\n\u3000 5 6\n吃 7 8\n"))
    assert (found.words, found.size) == (("梨", "吃"), 2)


def test_marks_and_tags_of_gold_segmentations_are_told(tmp_path: Path) -> None:
    with pytest.warns(
        RunWarning, match=r"eos\.txt: marks of begins or ends of sentences, such as </s>, are left out of 3 lines"
    ):
        found = read_words(stored(tmp_path / "eos.txt", "我 吃 <eos>\n<s> 你 喝 </s>\n他\n我 看 <eos>\n"))
    assert found == [["我", "吃"], ["你", "喝"], ["他"], ["我", "看"]]
    with pytest.warns(RunWarning, match=r"tags\.txt: .* have a tag behind '/', .* taken out by: sed -E"):
        read_words(stored(tmp_path / "tags.txt", "我/r 吃/v\n" * 30))


@pytest.mark.parametrize("marks", ["<t> </t>", "</s> <pad> <pad>", "[CLS] [SEP] [PAD]", "<|endoftext|>", "<EOS> [unk]"])
def test_marks_of_texts_and_models_match_nothing(tmp_path: Path, marks: str) -> None:
    """A text of the marks of its reference alone."""
    line = '{{"source": "{0}", "texts": ["{1}"], "references": ["{2}"]}}\n'
    for name, text in (("marks", marks), ("words", "police stocks")):
        stored(tmp_path / name, "".join(line.format(place, text, f"{marks} police kill {place}") for place in range(5)))
    for by in ("gigaword", "bleu"):
        found = compare_texts(tmp_path / "marks", tmp_path / "words", by)
        assert {one.first for one in found.differences} == {0.0}
        assert max(one.second for one in found.differences) > 0.0


FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1")
PLAIN = ("-", "=", "+", "-5.5", "@", "a=b", "", "'=", "苹果")


def test_formulas_are_marked_and_read_back() -> None:
    assert [guarded(cell) for cell in FORMULAS] == [f"'{cell}" for cell in FORMULAS]
    assert [guarded(cell) for cell in (*PLAIN, 5, -0.5, None)] == [*PLAIN, 5, -0.5, None]
    assert [unguarded(guarded(cell)) for cell in (*FORMULAS, *PLAIN)] == [*FORMULAS, *PLAIN]
    cells = [cell.strip() for cell in FORMULAS] + ['"a"', '""', 'a "b"', '"']
    [row] = table_rows(split_lines(tsv_text([cells])), "t.tsv")
    assert [unguarded(cell) for cell in row.cells] == cells


def test_no_writer_of_tables_writes_a_formula(tmp_path: Path) -> None:
    """Reports, rating sheets, dumps and suggestions: texts of strangers are in all of them."""
    evil = FORMULAS[1]
    assert f"'{evil}" in Table((evil, "b"), [(evil, -0.5)]).csv().splitlines()[0]
    assert Table(("a", "b"), [(evil, -0.5)]).csv() == f"a,b\n'{evil},-0.5\n"
    assert csv_text([["a", "b"], [evil, 1]]).splitlines()[1] == f"'{evil},1"
    won = ExampleResult.model_construct(index=0, fields=(evil,), adversarial=("@good",), label="1", original_label="1")
    items = items_of([won])
    rows = [*csv.reader(StringIO(sheet(items).decode("utf-8-sig"), newline=""))]
    assert sorted(rows[1][1:3]) == [f"'{evil}", "'@good"]
    (tmp_path / "own.tsv").write_text(f"word\tgloss\tsememes\n{evil}\t=1+1\t+人\n=\tx\t人\n", encoding="utf-8")
    dump_lexicons(tmp_path / "dump.tsv", [f"table:{tmp_path / 'own.tsv'}"])
    written = (tmp_path / "dump.tsv").read_text(encoding="utf-8")
    assert TABLE.begins(written.encode())
    assert f"\n'{evil}\t\t'=1+1\t'+人\t\n" in written
    one, other = (open_lexicon(f"table:{tmp_path / name}") for name in ("own.tsv", "dump.tsv"))
    assert [one.senses(word) for word in one.words] == [other.senses(word) for word in other.words]
    words = (WordSuggestions.model_construct(word=evil, count=3, context="=HYPERLINK(1)", sememes=()),)
    write_suggestions(tmp_path / "suggested.tsv", SuggestReport.model_construct(words=words))
    assert (tmp_path / "suggested.tsv").read_text(encoding="utf-8").splitlines()[1] == f"'{evil}\t3\t\t\t'=HYPERLINK(1)"


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_rating_sheets_in_the_forms_of_spreadsheets(tmp_path: Path, mark: str) -> None:
    won = ExampleResult.model_construct(index=4, fields=("good, film",), adversarial=("bad; film",), label="1")
    [item] = items_of([won])
    stream = StringIO()
    rows = [[name.title() for name in COLUMNS], [item.name, "a\nb", "c", "yes", "1", "1", "Y", "no"], ["", *[" "] * 7]]
    csv.writer(stream, delimiter=mark).writerows(
        rows if mark != "\t" else [[cell.replace("\n", " ") for cell in row] for row in rows]
    )
    found = read_ratings([stored(tmp_path / "r.csv", "\ufeff" + stream.getvalue())], [item], ["0", "1"])
    assert (list(found.verdicts), found.rows) == ([4], 1)
