"""A linter of our prose: habits that made readers read a sentence twice, in guides, docstrings and helps.

A guide may have none of them but those that ``EXCUSED`` counts, and no long sentence. Docstrings have none.
Pages of results have short sentences with few figures; their appendices are records.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAUSES = {
    "begins with Of, What, That, Where there": re.compile(
        r"^(?:Of (?!course)|What |That (?=\w+ .* (?:is|are|was) )|Where there )"
    ),
    "that of, those of": re.compile(r"\b(?:that|those) of\b"),
    "unless given": re.compile(r"\bunless (?:given|said|told|named)\b"),
    "is told, is gone on with": re.compile(r"\b(?:is|are) (?:told|said|gone on)\b|\b(?:goes|gone) on (?:with|where|in)\b"),
    "a word of our own": re.compile(
        r"\brunning words?\b|\bnot seen\b|\bin turns\b|\bhomeless\b|\bby (?:itself|themselves)\b|\barms\b"
    ),
}
INDIRECT = re.compile(r"^(?:(?:How|What|Where|Which|Who)(?:ever)?|Of|That|Those|When|Whether|Whose|Why)\b")
"""Beginnings of a docstring that ask a question or lean on a name, in place of naming the thing."""
FRAGMENT = re.compile(r"^(?:And|As|Else|It|Its|Nor|Not|So|Their|They)\b")
"""Beginnings that leave the subject to the name of the function. Fields and properties may have them."""
LONGEST = 32
"""Words of a sentence."""
EXCUSED = {"docs/clusters.md": 1}  # "That was not tried here."
MEDIAN, FIGURES = 22, 2
"""Limits of a page of results: words of the middle sentence, and figures of a sentence, intervals in brackets aside."""
FIGURE = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.\d+|(?:\.\d+)? %)")
RESULTS = [*sorted((ROOT / "docs" / "results").glob("*.md")), ROOT / "docs" / "negative-results.md"]
GUIDES = [
    path
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    if "results" not in path.parts and path.name != "negative-results.md"
]


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, code and addresses taken out."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "X", text))
    return [one for one in re.split(r"(?:(?<=[.!?:;])|(?<=[.!?:;]\*\*))\s+(?=[A-Z*X])", " ".join(plain.split())) if one]


def paragraphs(page: str) -> Iterator[str]:
    """The paragraphs and items of lists of a page; no tables, headings and code."""
    page = re.sub(r"```.*?```|<!--.*?-->", "", page, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*] |\s*\d+\. |\|)", page):
        text = block.strip()
        if text and not text.startswith(("#", "|", "!", "<")):
            yield re.sub(r"^(?:[-*]|\d+\.) ", "", text)


def found_in(sentence: str) -> list[str]:
    return [name for name, cause in CAUSES.items() if cause.search(sentence)]


def figures_of(sentence: str) -> int:
    """The decimal fractions and per cents of a sentence, but for those in brackets."""
    return len(FIGURE.findall(re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", sentence)))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_page_of_results_has_short_sentences_with_few_figures(path: Path) -> None:
    written = path.read_text(encoding="utf-8").partition("<!-- ledger:")[0]
    read = [one for text in paragraphs(written) for one in sentences(text)]
    assert median(len(one.split()) for one in read) <= MEDIAN
    found = [one for one in read if figures_of(one) > FIGURES or len(one.split()) > LONGEST or found_in(one)]
    assert not found, "\n".join(found)


APPENDICES = sorted((ROOT / "docs" / "results" / "appendix").glob("*.md"))


@pytest.mark.parametrize("path", APPENDICES, ids=lambda path: path.name)
def test_the_middle_sentence_of_an_appendix_is_short(path: Path) -> None:
    read = [one for text in paragraphs(path.read_text(encoding="utf-8")) for one in sentences(text)]
    assert median(len(one.split()) for one in read) <= MEDIAN


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_guide_can_be_read_once(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    found = [f"{name}: {one}" for text in paragraphs(page) for one in sentences(text) for name in found_in(one)]
    assert len(found) <= EXCUSED.get(path.relative_to(ROOT).as_posix(), 0), "\n".join(found)


def test_sentences_of_guides_are_short() -> None:
    texts = (text for path in GUIDES for text in paragraphs(path.read_text(encoding="utf-8")))
    long = [one for text in texts for one in sentences(text) if len(one.split()) > LONGEST]
    assert not long, "\n".join(long)


Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def texts_of(node: Documented) -> Iterator[str]:
    """The docstring of a module, class or function, and the docstrings below its fields."""
    for one in node.body:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) and isinstance(one.value.value, str):
            yield inspect.cleandoc(one.value.value)


FOLDERS = ("sememekit", "benchmarks", "docs/examples", "tests", "website")
NODES = [
    (folder, path, node)
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    if isinstance(node, Documented)
]
DOCSTRINGS = [(path.name, text) for _, path, node in NODES for text in texts_of(node)]


def items(docstring: str) -> list[str]:
    """The paragraphs of a docstring and the members of its lists, without the names that these begin with."""
    parts = re.split(r"\n\s*\n|\n(?= *[-*] )|(?:^|\n) *(?:\w+(?:, \w+)*|``[^`\n]+``): +", docstring)
    return [part for part in parts if part and not part.lstrip().startswith((">>>", "..."))]


def test_docstrings_can_be_read_once() -> None:
    """All paragraphs: of modules, classes, functions, constants and settings, which commands and the site print."""
    assert len(DOCSTRINGS) > 5500
    read = [(name, one) for name, text in DOCSTRINGS for item in items(text) for one in sentences(item)]
    found = [f"{name}: {cause}: {one}" for name, one in read for cause in found_in(one)]
    assert not found, "\n".join(found)


def begins_badly(node: Documented) -> list[str]:
    """Return the docstrings of a node that begin with a question, and its own if it begins as a fragment."""
    found = [text for text in texts_of(node) if INDIRECT.match(text)]
    own = ast.get_docstring(node) or ""
    is_property = any("property" in ast.unparse(one) for one in getattr(node, "decorator_list", ()))
    return found + [own] * (bool(FRAGMENT.match(own)) and not is_property)


def test_docstrings_begin_with_the_thing() -> None:
    """All folders with code, and so the docstrings of tests, too."""
    assert {folder for folder, _, node in NODES if any(texts_of(node))} == set(FOLDERS)
    found = [f"{path.relative_to(ROOT)}: {text}" for _, path, node in NODES for text in begins_badly(node)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("docstring", "number", "asked"),
    [
        ("What the encoder reads.", 1, 1),
        ("Of the bytes of files.", 1, 1),
        ("However few lines it has.", 1, 1),
        ("Its two maps.", 1, 0),
        ("Not the texts, but the references.", 1, 0),
        ("Return what the encoder reads.", 0, 0),
        ("Notebooks of a task.", 0, 0),
    ],
)
def test_beginnings_of_docstrings_are_seen(docstring: str, number: int, asked: int) -> None:
    """A property and a field may lean on their names."""
    for code, bad in (
        ('def f():\n    """{}"""', number),
        ('@property\ndef f():\n    """{}"""', asked),
        ('class C:\n    x = 1\n    """{}"""', asked),
    ):
        (node,) = ast.parse(code.format(docstring)).body
        assert isinstance(node, Documented)
        assert len(begins_badly(node)) == bad, code


def test_helps_of_options_can_be_read_once() -> None:
    found = []
    for path in (ROOT / "sememekit" / "commands").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                texts = [one.value for one in node.keywords if one.arg == "help"]
                texts += node.args[1:2] if isinstance(node.func, ast.Name) and node.func.id == "option" else []
                words = [one.value for one in texts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                found += [f"{path.name}: {name}: {one}" for text in words for one in sentences(text) for name in found_in(one)]
    assert not found, "\n".join(found)


def written(node: ast.AST) -> str:
    """The text of a string or an f-string, values as X; empty for any other node."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = (part.value if isinstance(part, ast.Constant) else "X" if node is not part else "" for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def test_messages_can_be_read_once() -> None:
    """All strings of the package with three words or more, docstrings aside."""
    found, number = [], 0
    for path in (ROOT / "sememekit").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        aside = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        aside |= {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        texts = [text for node in ast.walk(tree) if node not in aside and len((text := written(node)).split()) >= 3]
        number += len(texts)
        found += [f"{path.name}: {cause}: {one}" for text in texts for one in sentences(text) for cause in found_in(one)]
    assert number > 2000
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("Of several references the first one is predicted.", 1),
        ("The loss is that of one draw, unless given.", 2),
        ("Without a path the run is gone on with, in turns.", 2),
        ("The first of several references is predicted.", 0),
        ("Of course it is.", 0),
    ],
)
def test_the_linter_sees_what_it_is_for(sentence: str, number: int) -> None:
    assert len(found_in(sentence)) == number


def test_figures_in_brackets_are_not_counted() -> None:
    assert figures_of("It is 4.3 % below 100.5 (95.1, -5.2 to -3.4), after 12 epochs of 1,000 words.") == 2
