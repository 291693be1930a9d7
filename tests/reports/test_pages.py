"""Templates: each is whole, escapes what it is given, and asks nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import UndefinedError

from sememekit.analysis.analyze import Analysis, RunAnalysis
from sememekit.errors import ConfigError
from sememekit.reports import pages
from sememekit.reports.analysis import analysis_page
from sememekit.reports.pages import render, word, write_page
from tests.pages import check_page
from tests.reports.samples import filled

TEMPLATES = sorted((Path(pages.__file__).parent / "templates").glob("*.html.j2"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_trust_no_text_and_fetch_nothing(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert "http" not in source
    assert "autoescape" not in source
    trusted = [line for line in source.splitlines() if "|safe" in line]
    assert all("'th scope=\"row\"'|safe" in line for line in trusted), "only what stands here"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_every_filter_of_a_template_is_there(path: Path) -> None:
    """jinja refuses an unknown filter when it compiles; the environment is made anew, since one is kept in a process."""
    assert pages._environment.__wrapped__().get_template(path.name)


def test_plain_text_is_escaped_and_chinese_is_marked() -> None:
    assert word("<b>") == "&lt;b&gt;"
    assert word("吃 & 喝") == '<span lang="zh-Hans">吃 &amp; 喝</span>'
    assert word("ate", "unknown") == '<span class="unknown">ate</span>'


def test_what_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("attack_comparison")


def test_a_page_of_two_runs_says_which_expected_a_word_and_which_did_not() -> None:
    runs = (filled(RunAnalysis, decoder="softmax"), filled(RunAnalysis, decoder="sdlm"))
    page = check_page(analysis_page(filled(Analysis, runs=runs))).text
    assert "Where softmax expected the word and sdlm less" in page
    assert "Where sdlm expected the word and softmax less" in page


def test_pages_replace_pages_only(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", render("layout", title="<one>"))
    page = check_page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "<one>" in page.text
    write_page(tmp_path / "page.html", render("layout", title="two"))
    (tmp_path / "mine.html").write_text("<p>mine</p>", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a page that sememekit wrote"):
        write_page(tmp_path / "mine.html", render("layout", title="two"))


@pytest.mark.parametrize(
    "html", ['<img src="a.png">', '<a href="https://x">y</a>', "<p onclick='x()'>y</p>", "<script>fetch('x')</script>", "<p>"]
)
def test_the_checker_sees_what_would_ask_somebody(html: str) -> None:
    with pytest.raises(AssertionError):
        check_page(html)
