"""The page in a real browser: each of its uses, its state in the link, the keyboard, narrow screens, and what axe finds."""

from __future__ import annotations

import csv
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from matplotlib.font_manager import findSystemFonts

from sememekit.serve.answers import scores
from sememekit.serve.questions import GivenChange, ScoreQuestion
from sememekit.serve.runs import Bench
from tests.browser import BROWSER, MISSING
from tests.serve.conftest import serving
from tests.small_pairs import LINES, WRITTEN

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if BROWSER is None:
    pytest.skip(MISSING, allow_module_level=True)

expect = playwright.expect
expect.set_options(timeout=20_000)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
VIEWS = {
    "context": {"context": "我 吃"},
    "text": {"text": "我 吃 苹果 。\n人 买 电脑 。"},
    "annotation": {"word": "苹果", "context": "我 吃", "text": "我 吃 苹果 。"},
    "lattice": {"raw": "我吃苹果。"},
    "classifier": {"example": "今天 工人 喜欢 电影 。"},
    "writing": {"source": LINES[0]},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=QUIET)
        yield browser
        browser.close()


class Window:
    """A window on the workbench; the console must stay silent, and nothing but the server may be asked."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "locale": "en-GB", **options})
        self.page, self.address, self.faults = self.context.new_page(), address, list[str]()
        self.page.set_default_timeout(20_000)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda one: self.faults.append(one.url) if not one.url.startswith(self._allowed) else None)

    def _note(self, one: Any) -> None:
        if one.type in ("error", "warning") and not one.text.startswith("Failed to load resource"):  # a refused request
            self.faults.append(one.text)

    @property
    def _allowed(self) -> tuple[str, ...]:
        return (self.address, "data:", "blob:")

    def open(self, name: str, **state: str) -> Any:
        self.page.goto(f"{self.address}/#{urlencode({'view': name, **VIEWS[name], **state})}")
        self.page.reload()  # another fragment alone loads nothing
        return self.page


@pytest.fixture
def window(browser: Any, address: str) -> Iterator[Window]:
    window = Window(browser, address)
    yield window
    window.context.close()
    assert window.faults == []


def test_next_words_follow_every_keystroke(window: Window) -> None:
    page = window.open("context", context="我 吃")
    first = page.get_by_role("table").first.get_by_role("row")
    first.nth(1).wait_for()
    before = first.nth(1).inner_text()
    assert "%" in before
    page.get_by_label("Context").fill("我 买")
    page.wait_for_function("before => document.querySelector('tbody tr').innerText !== before", arg=before)
    expect(page.get_by_role("heading", name="More probable sememes")).to_be_visible()
    assert "context=%E6%88%91+%E4%B9%B0" in page.url
    page.get_by_label("Context").fill("xyzzy")
    page.get_by_role("alert").filter(has_text="the model knows none of the words").wait_for()
    page.get_by_label("Context").fill("<img src=x onerror=alert(1)> 我")
    page.get_by_role("table").first.wait_for()
    expect(page.locator("main img")).to_have_count(0)


def test_a_text_is_a_heat_map_and_a_word_tells_more(window: Window) -> None:
    page = window.open("text")
    token = page.get_by_role("button", name="苹果,")
    token.wait_for()
    assert "nats" in (token.get_attribute("aria-label") or "")
    assert float(token.evaluate("node => parseFloat(node.style.getPropertyValue('--heat'))")) > 0
    token.click()
    page.get_by_role("heading", name="Expected instead").wait_for()
    expect(page.get_by_role("heading", name="Senses in this sentence")).to_be_visible()
    even = page.locator(".bar b").first
    assert even.evaluate("node => node.style.getPropertyValue('--even')").startswith("33.3")
    token.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "吃"


def test_a_sememe_opens_its_words_and_a_word_its_annotation(window: Window) -> None:
    page = window.open("context")
    chip = page.get_by_role("button", name="水果", exact=True).first
    chip.click()
    panel = page.get_by_role("complementary", name="水果")
    panel.get_by_role("heading", name="Words with this sememe").wait_for()
    expect(panel.get_by_role("button", name="植物"), "a neighbour").to_be_visible()
    panel.get_by_role("button", name="梨").click()
    panel = page.get_by_role("complementary", name="梨")
    panel.get_by_role("heading", name="Senses").wait_for()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert page.evaluate("document.activeElement.textContent") == "水果", "the focus returns"


def test_a_sememe_is_switched_and_a_sense_written(window: Window, bench: Bench) -> None:
    page = window.open("annotation")
    brand = page.get_by_role("button", name="品牌", exact=True)
    expect(brand).to_have_attribute("aria-pressed", "true")
    brand.click()
    page.get_by_role("heading", name="What the changes do").wait_for()
    brand = page.get_by_role("button", name="品牌", exact=True)
    expect(brand).to_have_attribute("aria-pressed", "false")
    question = ScoreQuestion(run="sdlm", text="我 吃 苹果 。", changes=[GivenChange(sense="苹果#2", remove=["品牌"])])
    expected = scores(bench, question)
    assert expected.perplexity_overlay != expected.perplexity
    figures = page.locator(".figures dd")
    expect(figures).to_have_count(2)
    shown = [float(one) for one in figures.all_inner_texts()]
    assert shown == pytest.approx([expected.perplexity, expected.perplexity_overlay], rel=1e-4)
    assert "→" in page.get_by_role("row").last.inner_text()
    page.get_by_label("Word", exact=True).fill("无名")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("A further sense of a word needs training.")).to_be_visible()
    sense = page.get_by_role("group", name="无名#1")
    sense.get_by_label("Add a sememe").fill("机器")
    sense.get_by_role("button", name="Add", exact=True).click()
    page.locator(".tray li").filter(has_text="无名#1").wait_for()
    page.get_by_role("button", name="Save overlay").click()
    told = page.locator(".tray .remark").filter(has_text="Saved in")
    told.wait_for()
    folder = Path(told.inner_text().removeprefix("Saved in ").partition(":")[0])
    assert folder.parent == bench.save
    overlay = (folder / "overlay.txt").read_text(encoding="utf-8")
    assert "苹果#2\t-品牌\t品牌 电脑" in overlay
    assert "无名#1\t+机器" in overlay
    page.get_by_role("button", name="Undo all").click()
    page.get_by_text("No changes yet.").wait_for()


def test_the_last_sememe_of_a_sense_stays(window: Window) -> None:
    page = window.open("annotation", word="人")
    page.get_by_role("button", name="人", exact=True).click()
    page.get_by_text("Add a sememe before you take the last one away.").wait_for()


def test_raw_characters_are_a_lattice_whose_cuts_open(window: Window) -> None:
    page = window.open("lattice")
    cut = page.get_by_role("button", name="Cut after 我")
    cut.wait_for()
    assert page.locator("svg.lattice path").count() >= 5
    cut.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Alternatives at this cut: 我 | 吃").wait_for()
    assert page.get_by_role("row").count() >= 2


def test_a_label_is_explained_attacked_and_its_substitutes_rated(window: Window, bench: Bench) -> None:
    page = window.open("classifier")
    page.get_by_role("rowheader", name="cinema").wait_for()
    word = page.get_by_role("button", name="电影, +").first
    word.click()
    expect(page.locator(".heat .token")).to_have_count(5)
    page.get_by_role("button", name="Attack this text").click()
    page.get_by_role("main").get_by_text("The label changed. cinema → other").wait_for()
    assert page.locator("ins.changed").first.inner_text()
    group = page.get_by_role("group", name="电影 → 影片")
    group.get_by_label("same meaning").check()
    group.get_by_role("button", name="Save rating").click()
    group.get_by_text("ratings in").wait_for()
    assert bench.save is not None
    with (bench.save / "ratings.csv").open(encoding="utf-8", newline="") as stream:
        row = [row for row in csv.DictReader(stream) if row["text"] == "今天 工人 喜欢 电影 。"][-1]
    assert (row["old"], row["same meaning"], row["fluent"]) == ("电影", "yes", "no")


def test_a_text_is_written_for_a_source_with_its_alternatives(window: Window) -> None:
    page = window.open("writing")
    words = page.locator(".heat button.token")
    words.first.wait_for()
    expect(words).to_have_text(WRITTEN[0].split())
    rows = page.get_by_role("table").first.get_by_role("row")
    expect(rows).to_have_count(6)
    assert rows.nth(1).inner_text().startswith(WRITTEN[0])
    words.first.click()
    page.get_by_role("heading", name="Where the attention lay").wait_for()
    expect(page.locator("span.token")).to_have_text(LINES[0].split())
    expect(page.get_by_role("heading", name="More probable sememes")).to_be_visible()
    page.get_by_label("Source text").fill(LINES[1])
    page.wait_for_function("text => document.querySelector('.heat').innerText.includes(text)", arg=WRITTEN[1].split()[1])


def test_two_runs_stand_side_by_side_and_the_link_has_everything(window: Window, browser: Any, address: str) -> None:
    page = window.open("context")
    page.get_by_label("Beside it").select_option("softmax")
    page.get_by_role("heading", name="softmax").wait_for()
    expect(page.get_by_text("it has no senses")).to_be_visible()
    page.get_by_label("Context").fill("人 买")
    page.get_by_label("Language").select_option("zh")
    page.get_by_role("tab", name="意外度").wait_for()
    other = Window(browser, address)
    other.page.goto(page.url)
    other.page.get_by_role("heading", name="softmax").wait_for()
    expect(other.page.get_by_label("上文")).to_have_value("人 买")
    expect(other.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    other.context.close()
    page.go_back()


@pytest.mark.parametrize("view", VIEWS)
def test_tables_and_pictures_are_downloaded(window: Window, view: str, tmp_path: Path) -> None:
    page = window.open(view, **({"changes": '[{"sense":"苹果#2","add":["机器"],"remove":[]}]'} if view == "annotation" else {}))
    for kind, begins in (("SVG", b"<?xml"), ("PDF", b"%PDF-"), ("PNG", b"\x89PNG"), ("CSV", b"\xef\xbb\xbf")):
        button = page.get_by_role("button", name=f"{kind}: ").first
        button.wait_for()
        if kind == "PDF" and view != "classifier" and not re.search("CJK|SourceHan|wqy", " ".join(findSystemFonts())):
            button.click()
            page.get_by_role("alert").filter(has_text="no font here has").wait_for()
            continue
        with page.expect_download() as waiting:
            button.click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert file.read_bytes().startswith(begins), kind
        assert file.suffix == f".{kind.lower()}"
    rows = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
    assert len({len(row) for row in rows}) == 1


def test_the_tabs_are_worked_by_keys(window: Window) -> None:
    page = window.open("context")
    page.get_by_role("tab", name="Next words").focus()
    for name in ("Surprisal", "Annotation", "Characters", "Classifier", "Writing", "Next words"):
        page.keyboard.press("ArrowRight")
        tab = page.get_by_role("tab", name=name)
        expect(tab).to_have_attribute("aria-selected", "true")
        assert page.evaluate("document.activeElement.id") == tab.get_attribute("id")
    page.keyboard.press("End")
    assert "view=writing" in page.url


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_shows_a_view_without_scrolling_sideways(browser: Any, address: str, view: str) -> None:
    phone = Window(browser, address, viewport={"width": 360, "height": 740}, is_mobile=True)
    page = phone.open(view)
    page.locator("section.card").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    phone.context.close()
    assert phone.faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(browser: Any, address: str, view: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    seen = Window(browser, address, color_scheme=scheme, bypass_csp=True)
    page = seen.open(view, **({"changes": '[{"sense":"苹果#2","add":["机器"],"remove":[]}]'} if view == "annotation" else {}))
    page.locator("section.card").first.wait_for()
    if view == "text":
        page.locator(".token").nth(2).click()
        page.get_by_role("heading", name="Expected instead").wait_for()
    elif view == "context":
        page.locator(".chip").first.click()
        page.get_by_role("complementary").wait_for()
    elif view == "lattice":
        page.locator(".cut").first.click()
    elif view == "writing":
        page.locator("button.token").first.click()
    elif view == "classifier":
        page.get_by_role("button", name="Attack this text").click()
        page.get_by_role("main").get_by_text("The label changed.").wait_for()
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
    seen.context.close()


def test_a_stopped_server_is_told(window: Window) -> None:
    page = window.open("context")
    page.get_by_role("table").first.wait_for()
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_label("Context").fill("我")
    page.get_by_role("alert").filter(has_text="The server does not answer.").wait_for()


def test_a_link_that_was_tampered_with_opens(window: Window) -> None:
    changes = json.dumps([{"sense": 7}, "x", {"sense": "<b>", "add": ["<i>"], "remove": []}])
    page = window.open("context", run="absent", beside="<script>", lang="xx", view="absent", changes=changes)
    page.get_by_role("table").first.wait_for()
    page = window.open("annotation", changes=changes)
    page.locator(".problem").filter(has_text="no word '<b>' in the graph").first.wait_for()


def test_the_printed_link_opens_a_server_with_a_token(browser: Any, bench: Bench) -> None:
    with serving(bench, "geheim") as address:
        window = Window(browser, address)
        window.page.goto(address)
        window.page.get_by_role("alert").filter(has_text="This server asks for a token.").wait_for()
        window.page.goto("about:blank")
        window.page.goto(f"{address}/#token=geheim&view=context")
        window.page.get_by_role("table").first.wait_for()
        assert "geheim" not in window.page.url, "a link that is passed on has no token"
        window.page.reload()
        window.page.get_by_role("table").first.wait_for()
        window.context.close()
    assert window.faults == []


def test_the_page_works_below_a_path_of_a_proxy(browser: Any, bench: Bench) -> None:
    """A proxy that hands on what is below a path, as a JupyterHub does, and keeps the Host of the browser."""
    below = "/user/x/proxy/8700"

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(f"{below}/"):
                self.send_error(404, "not below the path")
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            asked = Request(target + self.path.removeprefix(below), body or None, dict(self.headers), method=self.command)
            with urlopen(asked) as answer:
                content = answer.read()
                self.send_response(answer.status)
                for name in ("content-type", "content-security-policy"):
                    self.send_header(name, answer.headers[name])
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with serving(bench) as target, ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        window = Window(browser, f"http://127.0.0.1:{proxy.server_port}{below}")
        window.open("context")
        window.page.get_by_role("table").first.wait_for()
        window.context.close()
        proxy.shutdown()
    assert window.faults == []


def test_a_context_that_is_too_long_is_cut_and_the_page_says_so(window: Window) -> None:
    page = window.open("context")
    page.get_by_label("Context").fill("我 吃 " * 600)
    page.get_by_text(re.compile(r"The context is cut to its last (1,99\d|2,000) characters\.")).wait_for()  # a whole word
    expect(page.get_by_role("table").first).to_be_visible()
    page.get_by_label("Language").select_option("zh")
    page.get_by_text(re.compile(r"只使用上文的最后 (1,99\d|2,000) 个字符。")).wait_for()
