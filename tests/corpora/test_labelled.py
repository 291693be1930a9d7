"""One reader of labelled files: preprocess, attack, predict and augment see the same texts and labels in every form."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from sememekit.attack import read_examples
from sememekit.corpora.examples import recorded_set
from sememekit.corpora.examples.labelled import opened, read_labelled, set_of
from sememekit.corpora.examples.rows import Opened, RowReader
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.files import RunWarning
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.augment import _lines
from sememekit.text.reading import FaultCounter

FILMS = (
    ('she said "fine" twice', "positive"),
    ("a  film ,<br />  twice", "negative"),
    ('"all of it in quotes"', "positive"),
    ("dull , and long", "negative"),
) * 6
PAIRS = (
    ("a man sleeps", "he is awake", "contradiction"),
    ("two dogs run", "-", "neutral"),
    ("nobody agreed", "on this", "-"),
    ('the "girl" eats', "she eats", "entailment"),
) * 6


def quoted(field: str) -> str:
    """Return a field as a spreadsheet writes it."""
    return '"' + field.replace('"', '""') + '"' if '"' in field else field


def table(rows: tuple[tuple[str, ...], ...], header: tuple[str, ...] = ()) -> str:
    return "".join("\t".join(map(quoted, row)) + "\n" for row in ((header, *rows) if header else rows))


def commas(rows: tuple[tuple[str, ...], ...], header: tuple[str, ...] = ()) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows((header, *rows) if header else rows)
    return out.getvalue()


def objects(rows: tuple[tuple[str, ...], ...], keys: tuple[str, ...]) -> str:
    return "".join(json.dumps(dict(zip(keys, row, strict=True)) | {"id": 7}) + "\n\n" for row in rows)


SWAPPED = tuple((label, text) for text, label in FILMS)
FORMS = {
    "a.tsv": ("classification", table(FILMS), FILMS),
    "b.tsv": ("classification", table(FILMS, ("text", "label")), FILMS),
    "c.txt": ("imdb", table(SWAPPED, ("Sentiment", "Text")), FILMS),
    "d.csv": ("imdb", commas(FILMS, ("review", "sentiment")), FILMS),
    "e.csv": ("classification", commas(FILMS), FILMS),
    "f.jsonl": ("sst2", objects(FILMS, ("Text", "label")), FILMS),
    "g.tsv": ("snli", table(PAIRS), PAIRS),
    "h.tsv": ("nli", table(PAIRS, ("Sentence1", "sentence2", "gold_label")), PAIRS),
    "i.csv": ("nli", commas(PAIRS, ("premise", "hypothesis", "label")), PAIRS),
    "j.jsonl": ("snli", objects(PAIRS, ("sentence1", "sentence2", "gold_label")), PAIRS),
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("name", FORMS)
def test_every_command_sees_the_same(name: str, packed: str, tmp_path: Path) -> None:
    dataset, content, rows = FORMS[name]
    path = tmp_path / (name + packed)
    path.write_bytes(PACKERS[packed](content.encode()))
    kind = recorded_set(dataset, "here")
    written = [" ".join(text.split()) for row in rows for text in row[:-1]]
    if kind.break_mark:
        written = [" ".join(text.replace("<br />", " ").split()) for text in written]
    wanted = [tuple(written[number : number + len(kind.texts)]) for number in range(0, len(written), len(kind.texts))]
    labelled = [(texts, row[-1]) for texts, row in zip(wanted, rows, strict=True)]
    trained = [pair for pair in labelled if pair[1] != "-"]

    files = {split: [path] for split in ("train", "valid", "test")}
    preprocess(dataset, None, tmp_path / "data", PreprocessSettings(segmenter="none"), files=files)
    data = PreparedData.open(tmp_path / "data")
    examples, summary = data.examples("test"), data.signature.examples
    assert summary is not None
    assert summary.labels is not None
    prepared = [
        (
            tuple(" ".join(data.vocabulary.decode(examples.text(index, text))) for text in range(examples.num_texts)),
            summary.labels[examples.labels[index]],
        )
        for index in range(len(examples))
    ]
    assert prepared == trained

    attacked, file = read_examples(path, kind)
    assert [(example.fields, example.label) for example in attacked] == labelled
    assert [example.index for example in attacked] == list(range(len(rows)))
    assert file.texts == kind.texts
    if not kind.break_mark:
        assert read_labelled(path).rows == file.rows, "without a run the form of the file tells its kind"

    assert [(texts, label) for _, texts, label, _ in _lines(path, kind)] == trained

    faults = FaultCounter("strict")
    with opened(path, kind, faults) as there:
        asked = list(RowReader(there, kind, faults, {"positive", "negative", "neutral", "entailment", "contradiction", "-"}))
    assert [row.texts for row in asked] == wanted
    assert {row.label for row in asked} == {None}
    assert [row.line for row in asked] == [row.line for row in file.rows]


def test_files_side_by_side(tmp_path: Path) -> None:
    for name, column in (("s1.dev", 0), ("s2.dev", 1), ("labels.dev", 2)):
        (tmp_path / name).write_text("".join(f"{row[column]} \n" for row in PAIRS))
    file = read_labelled(tmp_path / "s1.dev")
    assert [(*row.texts, row.label) for row in file.rows] == list(PAIRS)
    (tmp_path / "labels.dev").write_text("neutral\n")
    with pytest.raises(DataError, match=r"labels\.dev: ends after 1 lines"):
        read_labelled(tmp_path / "s1.dev")


def rows_of(path: Path, content: str, dataset: str = "classification", labels: set[str] | None = None) -> list[tuple[str, ...]]:
    path.write_text(content, encoding="utf-8")
    reader = RowReader([Opened(path, path.name)], recorded_set(dataset, "here"), FaultCounter("strict"), labels)
    return [row.texts for row in reader]


def test_texts_to_label(tmp_path: Path) -> None:
    path, labels = tmp_path / "x.tsv", {"positive", "negative"}
    assert rows_of(path, '"Fine." he said\n"All quoted."\n', labels=labels) == [('"Fine." he said',), ('"All quoted."',)]
    assert rows_of(path, "fine\tpositive\ndull\tneither\n", labels=labels) == [("fine",), ("dull",)]
    assert rows_of(path, "id\ttext\n1\tfine\n", labels=labels) == [("fine",)]
    with pytest.raises(DataError, match=r"x\.tsv:1: 2 columns with TAB between, 1 are needed \(text; or a first line"):
        rows_of(path, "fine\tgood\n", labels=labels)
    with pytest.raises(DataError, match=r"x\.tsv:2: 1 column"):
        rows_of(path, "a\tb\nc\n", "nli", labels=labels)


def test_a_column_of_ever_new_labels_is_no_column_of_labels(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("".join(f"text {number}\tid-{number}\n" for number in range(1_200)))
    with pytest.raises(DataError, match=r"x\.tsv:1001: more than 1000 different labels; is the column"):
        preprocess("classification", tmp_path / "x.tsv", tmp_path / "out", PreprocessSettings(segmenter="none"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.tsv", "x\t1\ny\n", r"a\.tsv:2: 1 column with TAB between, 2 are needed"),
        ("b.tsv", "x\n", r"b\.tsv:1: 1 column; a table has text and label"),
        ("c.tsv", "\n", "holds no examples"),
        ("d.jsonl", "{\n", r"d\.jsonl:1: not JSON"),
        ("e.jsonl", '{"text": "x"}\n', r"e\.jsonl:1: has none of the keys 'label'"),
        ("f.csv", 'text,label\nfine,1\n"never closed,1\n', r"f\.csv:3: not CSV"),
        ("g.csv", "text,label\nfine,1,2\n", r"g\.csv:2: 3 columns with commas between"),
        ("h.tsv", "premise\thypothesis\nx\ty\n", r"h\.tsv:1: the header has no column 'gold_label'"),
        (
            "h.csv",
            "review,rating\nfine,1\n",
            r"h\.csv:1: the header has no column 'label' .*; it has 'review', 'rating': rename",
        ),
        (
            "h.csv",
            "opinion,label\nfine,1\n",
            r"h\.csv:1: the header has no column 'text' or 'sentence' or 'review' or .*; it has",
        ),
        ("i.jsonl", '{"text": "\\ud800", "label": "1"}\n', r"i\.jsonl:1: half a surrogate pair .*mend the file$"),
        ("j.tsv", "", "the file is empty"),
    ],
)
def test_what_is_no_example_is_named(name: str, content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_labelled(tmp_path / name)


def test_a_header_of_other_names_is_told_by_a_label_that_it_has_alone(tmp_path: Path) -> None:
    rows = "".join(f"text {number}\t{number % 2}\n" for number in range(20))
    (tmp_path / "a.tsv").write_text("opinion\tstars\n" + rows)
    with pytest.warns(RunWarning, match=r"a\.tsv:1: no other line has its label, 'stars'; .* as these are known: text, label$"):
        assert len(read_labelled(tmp_path / "a.tsv")[0]) == 21
    (tmp_path / "a.tsv").write_text("text 20\t0\n" + rows)
    read_labelled(tmp_path / "a.tsv")
    (tmp_path / "a.tsv").write_text("text\tlabel\nonce\t2\n" + rows)
    read_labelled(tmp_path / "a.tsv")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"fine\t1\nd\xfcll\t0\n")
    with pytest.raises(DataError, match=r"a\.tsv:2: not UTF-8 at byte 8 .*convert the file to UTF-8$"):
        read_labelled(tmp_path / "a.tsv")
    with pytest.raises(DataError, match="no such file"):
        read_labelled(tmp_path / "absent.tsv")


def test_a_row_of_a_csv_may_go_over_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\n"one\ntwo",1\n\nthree,0\n')
    assert [(row.line, row.texts) for row in read_labelled(path).rows] == [(2, ("one two",)), (5, ("three",))]


def test_the_set_of_a_class_of_ones_own_is_known_by_its_texts(tmp_path: Path) -> None:
    for dataset, texts in (
        ("lab.sets:Mine", ("review",)),
        ("lab.sets:Pairs", ("question", "answer")),
        ("lab:T", ("a", "b", "c")),
    ):
        kind = set_of(dataset, texts)
        rows = (tuple(f"{name} one" for name in texts), tuple(f"{name} two" for name in texts))
        for content in (
            table(tuple((*row, "x") for row in rows)),
            table(tuple(("x", *reversed(row)) for row in rows), ("Label", *reversed(texts))),
        ):
            (tmp_path / "t.tsv").write_text(content)
            assert [row.texts for row in read_labelled(tmp_path / "t.tsv", kind).rows] == list(rows)
    assert type(set_of("imdb", ("text",))) is type(recorded_set("imdb", "here"))
