"""A page as a browser sees it: what it shows, and that it fetches nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from markupsafe import Markup

from sememekit.reports.charts import Curves
from sememekit.reports.pages import render

VOID = {"meta", "br"}
FETCHING = {"link", "img", "iframe", "object", "embed", "audio", "video", "base", "form"}


class Page(HTMLParser):
    """Text, headings, charts and marks of a page. Fails on a tag that is closed out of turn."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[str] = []
        self.refers: list[str] = []
        self.headings: list[str] = []
        self.charts: list[str] = []
        self.ids: list[str] = []
        self.marks = 0
        self.slim = False  # inside the second picture of curves, which stands in for the first on a narrow screen
        self.text = ""
        self.scripts = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.seen.append(tag)
        self.refers += [str(found[name]) for name in ("src", "href", "srcset", "xlink:href", "action") if name in found]
        self.slim = "slim" in (found.get("class") or "") if tag == "figure" else self.slim
        self.charts += [found["aria-label"] or ""] if tag == "svg" and not self.slim else []
        self.ids += [str(found["id"])] if "id" in found else []
        self.marks += found.get("class") == "mark" and not self.slim
        assert not any(name.startswith("on") for name in found), "no script in an attribute"
        if tag in {"h1", "h2", "h3"}:
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts += data
            return
        self.text += data
        if self.headings and {"h1", "h2", "h3"} & set(self.open):
            self.headings[-1] += data


def empty_frames(shown: Curves) -> Markup:
    """Stand in for ``charts.chart`` where no test looks at the drawing: return both pictures with their title alone."""
    drawn = {"width": shown.size[0], "height": shown.size[1], "title": shown.title, "drawing": "", "marks": ()}
    return Markup("").join(Markup(render("chart", kind="marks", width_class=name, **drawn)) for name in ("wide", "slim"))


def check_page(html: str) -> Page:
    """The page, after everything that would make a browser ask somebody was looked for."""
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == [], "every element is closed"
    sisters = re.compile(r"[\w-]+/report\.html")  # of the same folder
    assert all(sisters.fullmatch(found) or (found.startswith("#") and found[1:] in page.ids) for found in page.refers)
    assert not FETCHING & set(page.seen)
    assert page.seen.count("script") <= 2, "of charts, and of contents and files"
    assert not re.search(r"fetch|XMLHttp|import|WebSocket|sendBeacon|eval|innerHTML|src", page.scripts)
    assert not re.search(r"https?:|@import|url\((?!#)", html)
    return page
