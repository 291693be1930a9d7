"""The site: its navigation is whole, what the program says of itself is on it, and it is built without a warning or the net."""

from __future__ import annotations

import doctest
import html
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sememekit
from sememekit import nn
from sememekit.claims.claims import load_claims
from sememekit.jobs.reproduce import judged
from sememekit.runs.slots import settings_slots, settings_table
from tests.browser import BROWSER, MISSING, browse
from tests.screenshots import SIZES, WORKBENCH

yaml = pytest.importorskip("yaml")
pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FLAGS = (ROOT / "tests" / "commands" / "flags.txt").read_text(encoding="utf-8").splitlines()


WIDTHS = """addEventListener("load", () => {
  const size = frame => [frame.contentDocument.documentElement.scrollWidth, frame.contentDocument.documentElement.clientWidth];
  const found = Object.fromEntries([...document.querySelectorAll("iframe")].map(frame => [frame.name, size(frame)]));
  document.body.innerHTML = "";
  document.body.append(Object.assign(document.createElement("pre"), { id: "found", textContent: JSON.stringify(found) }));
});"""


def hook(name: str) -> ModuleType:
    """A file of website/, as MkDocs loads it."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "website" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def config() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    return loaded


def pages_of(nav: Any) -> Iterator[str]:
    """The pages below a part of the navigation."""
    for entry in nav:
        for below in entry.values():
            yield from [below] if isinstance(below, str) else pages_of(below)


def generated() -> set[str]:
    """Pages that hooks make."""
    notebooks = {f"notebooks/{path.stem}.md" for path in (DOCS / "notebooks").glob("*.ipynb")}
    of_the_program = {"reference/commands.md", "reference/settings.md", *hook("api_pages").PAGES}
    return {*of_the_program, *hook("links").PAGES.values(), *notebooks}


def test_the_navigation_has_every_page_once() -> None:
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"results/claims/README.md"}
    listed = list(pages_of(config()["nav"]))
    assert sorted(listed) == sorted(written | generated()), "mkdocs.yml, nav"


def test_make_docs_counts_warnings() -> None:
    lines = [line for line in (ROOT / "Makefile").read_text(encoding="utf-8").splitlines() if "mkdocs build" in line]
    assert [line.partition("mkdocs ")[2] for line in lines] == ["build --strict"]


def test_hooks_that_exist_are_used() -> None:
    used = {Path(path).name for path in config()["hooks"]} | {"docstrings.py"}
    assert used == {path.name for path in (ROOT / "website").glob("*.py")}


def test_the_page_of_commands_has_every_option() -> None:
    pages = hook("commands_page").pages()
    page = "\n".join(pages.values())
    sections = {part.partition("\n")[0]: part for part in re.split(r"^#{1,2} ", page, flags=re.MULTILINE)[1:]}
    listed = re.findall(r"\]\((commands/[\w-]+\.md)\)", pages["reference/commands.md"])
    assert [f"reference/{uri}" for uri in listed] == list(pages)[1:], "the list has each page once"
    for line in FLAGS:
        words = line.split()
        name = " ".join(word for word in words[1:3] if word[0] not in "-[(" and word.islower() and word in page)
        section = sections.get(name) or sections[words[1]]
        for option in re.findall(r"--[a-z][a-z-]+", line):
            assert option in section, f"{line}: {option}"
    assert "[default: quickstart]" in page.replace("&#91;", "[").replace("&#93;", "]")
    assert "sememekit attack --compare a/1 a/2" in page, "examples"
    table = [line for line in page.splitlines() if line.startswith("| <code>")]
    assert all(line.count("|") == 3 for line in table), "a bar in a cell would end it"


def test_the_page_of_settings_has_every_setting() -> None:
    page = hook("settings_page").page()
    shown = {html.unescape(name) for name in re.findall(r"^\| <code>(.*?)</code>", page, re.MULTILINE)}
    tables = [settings_table(slot.slot, name) for slot in settings_slots() for name in slot.variants or {"": ""}]
    assert shown == {table.prefix + setting.key for table in tables for setting in table.settings}
    assert len(shown) > 150
    assert all(line.count("|") == 5 for line in page.splitlines() if line.startswith("| <code>")), "a bar would end a cell"
    assert "| number, 0 or more, below 1 | 0.0 |" in page


def test_the_pages_of_the_api_have_every_public_name() -> None:
    pages = hook("api_pages").pages()
    one_of = {uri: re.findall(r"^::: [\w.]+\.(\w+)$", text, re.MULTILINE) for uri, text in pages.items()}
    assert all(found == [Path(uri).stem] for uri, found in one_of.items() if found), "a page a name"
    assert {Path(uri).stem for uri in pages if uri.startswith("reference/nn/")} == set(nn.__all__)
    names = {Path(uri).stem for uri in pages if uri.startswith("reference/python/")}
    assert set(sememekit.__all__) - {"nn", "DECODERS", "ENCODERS"} <= names
    for uri in (uri for uri, found in one_of.items() if found):
        section = uri.split("/")[1]
        assert f"({section}/{Path(uri).name})" in pages[f"reference/{section}.md"], "the list leads to it"
    assert "'num_parameters'" not in pages["reference/nn/SememeSoftmax.md"]


def test_every_paper_has_a_page_with_the_verdicts_on_its_claims() -> None:
    verdicts = hook("verdicts")
    marks = {found for path in (DOCS / "papers").glob("*.md") for found in verdicts.MARK.findall(path.read_text("utf-8"))}
    assert marks == {path.stem for path in (ROOT / "resources" / "claims").glob("*.toml")}
    shown = [verdicts.on_page_markdown(f"<!-- verdicts: {mark} -->") for mark in sorted(marks)]
    lines = [line for table in shown for line in table.splitlines()[2:]]
    assert len(lines) == len(load_claims())
    (claim,) = judged(Path("nowhere"), ["sdlm-below-softmax"], False, DOCS / "results" / "claims")
    (line,) = [line for line in lines if claim.statement in line]
    assert claim.effect is not None
    assert f"| {claim.verdict} | {100 * claim.effect[0]:+.1f} % (" in line


def test_what_a_reader_copies_from_the_api_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each use runs alone, in an empty folder and without the names that doctests are given."""
    monkeypatch.chdir(tmp_path)
    pages, docstrings = hook("api_pages"), hook("docstrings")
    named = [
        line.removeprefix("::: ") for text in pages.pages().values() for line in text.splitlines() if line.startswith("::: ")
    ]
    done = []
    for name in named:
        module, _, last = name.rpartition(".")
        value = getattr(importlib.import_module(module), last)
        members = vars(value).values() if isinstance(value, type) else ()
        for text in [value.__doc__, *(getattr(member, "__doc__", None) for member in members)]:
            for block in re.findall(r"```pycon\n(.*?)\n```", docstrings.as_markdown(inspect.cleandoc(text or "")), re.DOTALL):
                example = doctest.DocTestParser().get_doctest(block, {}, name, None, None)
                assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example).failed == 0, name
                done.append(name)
    assert len(done) >= 24


def test_examples_and_roles_of_docstrings_become_markdown() -> None:
    text = "What it is.\n\n>>> f(1)\n2\n\nSee :class:`a.B` and\n\nas follows::\n\n    x = 1"
    assert hook("docstrings").as_markdown(text) == (
        "What it is.\n\n```pycon\n>>> f(1)\n2\n```\n\nSee `a.B` and\n\nas follows:\n\n    x = 1"
    )
    assert hook("docstrings").as_markdown("One line.") == "One line."


def test_a_notebook_becomes_a_page_with_what_it_showed(tmp_path: Path) -> None:
    shown = {"output_type": "execute_result", "data": {"text/plain": ["x"], "text/html": ["<table>\n", "</table>"]}}
    printed = {"output_type": "stream", "text": ["one\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["f()"], "outputs": [printed, shown]},
    ]
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    page = hook("notebook_pages").page(tmp_path / "one.ipynb")
    assert page.startswith('# Title\n\n<a href="one.ipynb" download>one.ipynb</a>\n\n')
    assert "\n```python\nf()\n```\n\n```text\none\n```\n" in page
    assert "<table> </table>" in page


def test_links_between_files_become_links_between_pages() -> None:
    link = hook("links").link
    assert link("../CHANGELOG.md#added", "docs/index.md", "index.md") == "changelog.md#added"
    assert link("docs/testing.md", "CONTRIBUTING.md", "contributing.md") == "testing.md"
    assert link("notebooks/a.ipynb", "docs/python.md", "python.md") == "notebooks/a.md"
    assert link("../explaining.md", "docs/papers/sdlm.md", "papers/sdlm.md") == "../explaining.md"
    assert link("LICENSE", "resources/lexicon/README.md", "reference/open-lexicon.md") == "LICENSE"
    assert link("../resources/recipes/attack", "docs/attacks.md", "attacks.md") == "", "a folder of the project"
    shown = hook("links")._shown("recipes", "../resources/recipes/attack", "docs/attacks.md", "attacks.md")
    assert shown == "recipes (`resources/recipes/attack`)"
    assert link("https://optuna.org", "docs/training.md", "training.md") == "https://optuna.org"


def test_lines_of_chinese_are_joined_outside_of_code() -> None:
    text = "第一行，\n第二行。\n\n- 一\n- 二\n\n```sh\n一\n二\n```\nword\n三"
    assert hook("chinese").on_page_markdown(text) == "第一行，第二行。\n\n- 一\n- 二\n\n```sh\n一\n二\n```\nword\n三"


def build(config_file: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build without ``--quiet``, under which mkdocs counts no warnings and nothing is strict."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config_file), "-d", str(site)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def test_the_citation_is_of_this_version_and_of_the_five_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"title", "message", "authors"} <= set(cited)
    assert cited["version"] == sememekit.__version__
    claims = {file.paper for file, _ in load_claims().values()}
    assert len(cited["references"]) == 5
    for one in cited["references"]:
        name = f"{one['authors'][0]['family-names']} "
        assert any(paper.startswith(name) and str(one["year"]) in paper for paper in claims), name


def test_pictures_of_pages_are_small_and_shown() -> None:
    pictures = {path.name: path.stat().st_size for path in (DOCS / "pictures").glob("*.png")}
    shown = {name for path in DOCS.rglob("*.md") for name in re.findall(r"pictures/([\w-]+\.png)\)", path.read_text("utf-8"))}
    assert shown == set(pictures)
    assert {f"{name}.png" for name in (*SIZES, *WORKBENCH)} == set(pictures), "python -m tests.screenshots"
    assert max(pictures.values()) < 100_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nobody(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 45
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source)[^>]* src="([^"]*)"|<link[^>]* href="([^"]*)"', text)
        assert not [target for targets in fetched for target in targets if "//" in target], page.name
        assert "<!-- verdicts" not in text, page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style.name
    assert "holds in direction" in (site / "papers" / "sdlm.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason=MISSING)
def test_no_page_of_the_site_is_wider_than_a_phone(site: Path, tmp_path: Path) -> None:
    names = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    inside = "".join(f'<iframe name="{name}" src="{name}" style="width:400px;height:800px"></iframe>' for name in names)
    (site / "phone.html").write_text(f'<meta charset="utf-8"><body>{inside}<script>{WIDTHS}</script>', encoding="utf-8")
    options = ("--allow-file-access-from-files", "--virtual-time-budget=30000", "--dump-dom")
    printed = browse(site / "phone.html", tmp_path / "profile", *options)
    found = re.search(r'<pre id="found">(.*?)</pre>', printed, re.DOTALL)
    assert found
    widths = json.loads(html.unescape(found[1]))
    assert set(widths) == set(names)
    assert {name: size for name, size in widths.items() if size[0] > size[1]} == {}


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason=MISSING)
@pytest.mark.parametrize(("asked", "title"), [("perplexity", "Perplexity"), ("%E9%A2%84%E6%B5%8B", "从原始文本")])
def test_search_answers_where_the_site_is_opened_as_files(site: Path, tmp_path: Path, asked: str, title: str) -> None:
    start = tmp_path / "start.html"
    start.write_text(f'<script>location = "{(site / "index.html").as_uri()}?q={asked}"</script>', encoding="utf-8")
    shown = browse(start, tmp_path / "profile", "--virtual-time-budget=30000", "--dump-dom")
    results = re.findall(r'<a href="[^"]*" class="md-search-result__link".*?</a>', shown, re.DOTALL)
    told = [re.sub(r"<[^>]*>|\u200b", "", result) for result in results]  # a mark of no width stands between Chinese words
    assert any(title in one for one in told), told


ASKED = {
    "LaTeX": "evaluation.html",
    "confidence interval": "evaluation.html",
    "REST API": "workbench.html",
    "pretrained model": "huggingface.html",
    "which meaning of a word": "senses.html",
    "licence of HowNet": "lexicons.html",
}
"""Words that people type into the search -> the page with the answer."""


@pytest.mark.slow
def test_a_heading_of_the_index_has_what_people_search(site: Path) -> None:
    """The search ranks headings with all its words first."""
    entries = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    for asked, page in ASKED.items():
        found = {
            entry["location"].partition("#")[0]
            for entry in entries
            if all(re.search(rf"\b{word}", entry["title"], re.IGNORECASE) for word in asked.split())
        }
        assert page in found, f"{asked}: {found}"


@pytest.mark.slow
def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in (("index.md", "[x](other.md#no-such-heading) [y](absent.md)"), ("other.md", "# Other")):
        (tmp_path / "docs" / name).write_text(text, encoding="utf-8")
    plain = "site_name: x\nvalidation:\n" + "".join(f"  {key}: {value}\n" for key, value in config()["validation"].items())
    (tmp_path / "mkdocs.yml").write_text(plain, encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert "absent.md" in done.stderr
    assert "no-such-heading" in done.stderr
    shutil.rmtree(tmp_path / "site", ignore_errors=True)
