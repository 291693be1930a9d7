"""Pages on a phone and on paper, measured in headless Chromium: nothing overflows, nothing is hidden without a hint, text is
large enough to read. Without Chromium these tests are skipped."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser import BROWSER, MISSING, browse, frames
from tests.reports.samples import pages

PHONE, DESKTOP, PAPER = 400, 1280, 680
"""Widths in pixels; an A4 page between margins of 15 mm is 680 wide."""
PRINTED = {"@media print": "@media all", "@media screen": "@media not all"}
"""Replacements with which a browser shows on a screen what it would print."""
MEASURE = """
const measured = frame => {
  const page = frame.contentDocument, root = page.documentElement, shown = element => element.getBoundingClientRect().width > 0;
  const all = what => [...page.querySelectorAll(what)].filter(shown);
  const named = element => `${element.tagName} ${element.textContent.trim().slice(0, 40)}`;
  const scrolled = all(".scroll, pre").filter(box => box.scrollWidth > box.clientWidth + 1);
  const scale = text => Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b);
  const size = text => parseFloat(getComputedStyle(text).fontSize) * scale(text);
  const beyond = element => element.getBoundingClientRect().right > root.clientWidth + 1;
  return {
    width: root.scrollWidth,
    room: root.clientWidth,
    outside: all("main *").filter(element => !element.closest(".scroll *, pre *") && beyond(element)).map(named),
    scrolled: scrolled.map(named),
    without_hint: scrolled.filter(box => getComputedStyle(box).backgroundImage === "none").map(named),
    smallest: Math.min(99, ...all("svg text").map(size)),
    charts: all("figure.chart svg").length,
    unnamed: all("table.stacked td").filter(cell => cell.textContent.trim() && getComputedStyle(cell).display === "block" &&
      getComputedStyle(cell, "::before").content === "none").map(named),
  };
};
addEventListener("load", () => {
  const found = Object.fromEntries([...document.querySelectorAll("iframe")].map(frame => [frame.name, measured(frame)]));
  document.body.innerHTML = "";
  document.body.append(Object.assign(document.createElement("pre"), { id: "found", textContent: JSON.stringify(found) }));
});
"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason=MISSING)


def measured(shown: dict[str, str], width: int, folder: Path) -> dict[str, Any]:
    """Return a browser's measurements of each page in a frame of this width, which its style sheets see as the window's."""
    (folder / "all.html").write_text(f"{frames(shown, width)}<script>{MEASURE}</script>", encoding="utf-8")
    printed = browse(folder / "all.html", folder / "profile", "--dump-dom")
    found = re.search(r'<pre id="found">(.*?)</pre>', printed, re.DOTALL)
    assert found, printed[-1000:]
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert set(result) == set(shown)
    return result


@pytest.fixture(scope="module")
def on_a_phone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return measured(pages(), PHONE, tmp_path_factory.mktemp("phone"))


def test_there_is_a_page_of_every_template() -> None:
    folder = Path(__file__).resolve().parents[2] / "sememekit" / "reports" / "templates"
    whole = {path.name.removesuffix(".html.j2") for path in folder.glob("*.j2") if "block body" in path.read_text("utf-8")}
    assert whole - {"layout"} == set(pages())


def test_no_page_is_wider_than_a_phone(on_a_phone: dict[str, Any]) -> None:
    assert {name: found["width"] for name, found in on_a_phone.items() if found["width"] > found["room"]} == {}
    assert {name: found["outside"] for name, found in on_a_phone.items() if found["outside"]} == {}


def test_what_is_scrolled_on_a_phone_shows_that_there_is_more(on_a_phone: dict[str, Any]) -> None:
    assert sum(len(found["scrolled"]) for found in on_a_phone.values()) > 5, "the samples are wide enough to scroll"
    assert {name: found["without_hint"] for name, found in on_a_phone.items() if found["without_hint"]} == {}


def test_cells_below_each_other_say_what_they_are(on_a_phone: dict[str, Any]) -> None:
    assert {name: found["unnamed"] for name, found in on_a_phone.items() if found["unnamed"]} == {}


def test_text_of_charts_can_be_read_on_a_phone(on_a_phone: dict[str, Any]) -> None:
    assert {name: found["smallest"] for name, found in on_a_phone.items() if found["smallest"] < 11} == {}
    assert {name: found["charts"] for name, found in on_a_phone.items()} | {"run": 4, "quickstart": 1} == {
        name: found["charts"] for name, found in on_a_phone.items()
    }, "each chart once, in its slim form"


def test_pages_on_a_desktop(tmp_path: Path) -> None:
    for name, found in measured(pages(), DESKTOP, tmp_path).items():
        assert found["width"] <= found["room"], name
        assert (found["outside"], found["without_hint"]) == ([], []), name
        assert found["smallest"] >= 11, name


def test_pages_on_paper_are_whole(tmp_path: Path) -> None:
    printed = {}
    for name, page in pages().items():
        for old, new in PRINTED.items():
            assert old in page
            page = page.replace(old, new)
        printed[name] = page
    for name, found in measured(printed, PAPER, tmp_path).items():
        assert found["width"] <= found["room"], name
        assert found["outside"] == [], name
