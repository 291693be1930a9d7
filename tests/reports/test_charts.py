"""Charts: every value is in its place, pages hold no foreign styles or names, figures are whole files of their kind."""

from __future__ import annotations

import html
import re
import struct
import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sememekit.errors import ConfigError
from sememekit.measure.intervals import Interval
from sememekit.reports import charts, metrics, quickstart
from sememekit.reports.charts import Curves, Heatmap, Line, chart, check_figure, spread, write_figure
from tests.reports import samples

CURVES = Curves(
    title="Two <b>lines</b>",
    x="epoch",
    y="perplexity (log scale)",
    lines=(Line("one & only", ((1.0, 300.0), (2.0, 150.0), (3.0, 75.0))), Line("二", ((1.0, 290.0), (3.0, 74.0)))),
)
WEIGHTS = Heatmap("Weights", ("上海", "推"), ("中国", "<b>", "x"), ((0.1, 0.9), (0.5, 0.5), (0.0, 0.3)))


def marks(html: str, picture: str = "wide") -> list[tuple[float, float, str]]:
    """The marks of the one or the other picture of curves, or of the only one of squares."""
    html = html.partition('class="chart slim"')[0 if picture == "wide" else 2]
    found = re.findall(r'class="mark" x="([\d.]+)" y="([\d.]+)"[^>]*><title>(.*?)</title>', html)
    return [(float(x), float(y), said) for x, y, said in found]


def test_a_mark_is_around_its_point_and_a_name_beside_its_squares() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(CURVES.size[0] / 72, CURVES.size[1] / 72), dpi=72)
    first, *_ = CURVES.draw(figure, 0.0)
    [axes] = figure.axes
    across, up = axes.transData.transform(CURVES.lines[0].points[0])
    assert (first.left + first.size / 2, first.top + first.size / 2) == pytest.approx((across, figure.bbox.height - up))
    figure = Figure(figsize=(WEIGHTS.size[0] / 72, WEIGHTS.size[1] / 72), dpi=72)
    WEIGHTS.draw(figure, 0.0)
    [axes] = figure.axes
    assert [*axes.get_xticks()] == [0.5, 1.5]
    assert [*axes.get_yticks()] == [0.5, 1.5, 2.5]


def test_information_is_drawn_as_it_was_measured() -> None:
    report = samples.drawn("explanation_scores")[0]
    known = Interval(value=0.4)
    rankings = [one.model_copy(update={"top": top, "information": known}) for one in report.rankings for top in (1, 5)]
    rankings += [rankings[0].model_copy(update={"ranking": "mass", "information": Interval(value=None)})]
    [shown] = metrics.charts(report.model_copy(update={"rankings": tuple(rankings)}))
    assert {line.name: line.points for line in shown.lines} == {
        metrics.shown_name(name): ((1.0, 0.0),) if name == "mass" else ((1.0, 0.4), (5.0, 0.4)) for name in metrics.DRAWN
    }


def test_the_first_column_of_the_tour_has_names_and_the_others_numbers() -> None:
    table = quickstart.comparison(samples.drawn("quickstart")[0])
    assert table.numbers == frozenset(range(1, len(table.columns)))
    assert not any(row[0][:1].isdigit() for row in table.rows)


def test_labels_keep_their_order_and_their_distance() -> None:
    assert spread([10.0, 12.0, 90.0, 11.0], 17) == [10.0, 44.0, 90.0, 27.0]


def test_values_stand_where_the_scale_puts_them() -> None:
    first, second, third = marks(chart(CURVES))[:3]
    assert [said for *_, said in (first, second, third)] == [
        "one &amp; only: 300.0 (epoch 1)",
        "one &amp; only: 150.0 (epoch 2)",
        "one &amp; only: 75.0 (epoch 3)",
    ]
    assert second[0] - first[0] == pytest.approx(third[0] - second[0], abs=0.2)
    assert second[1] - first[1] == pytest.approx(third[1] - second[1], abs=0.2), "equal ratios are equal heights"
    assert second[1] > first[1], "smaller values stand lower"


@pytest.mark.parametrize(
    ("scale", "values"), [("log", (0.5, 1.0, 3000.0)), ("percent", (0.0, 0.003, 0.9)), ("percent", (0.0,))]
)
def test_charts_have_room_for_every_value(scale: str, values: tuple[float, ...]) -> None:
    points = tuple((float(step), value) for step, value in enumerate(values))
    shown = chart(Curves("t", "x", "y", (Line("one", points),), scale=scale))  # type: ignore[arg-type]
    assert len(marks(shown)) == len(values)
    assert all(61 <= left <= 500 and 10 <= top <= 286 for left, top, _ in marks(shown))


def test_the_picture_of_a_narrow_screen_has_the_same_values_and_the_names_above_its_lines() -> None:
    html = chart(CURVES)
    assert [said for *_, said in marks(html, "slim")] == [said for *_, said in marks(html)]
    assert max(left for left, *_ in marks(html, "slim")) < 345
    assert min(top for _, top, _ in marks(html, "slim")) > 2 * 17, "below two names"
    slim = html.partition('class="chart slim"')[2]
    assert "— one &amp; only 75.0" in slim
    assert "-- 二 74.0" in slim


def ticks(html: str, axis: str) -> list[list[str]]:
    """The numbers at an axis, on a wide screen and on a narrow one."""
    side = {"x": "middle", "y": "end"}[axis]
    return [re.findall(rf"text-anchor: {side}[^>]*>([\d,.e%+ -]*)</text>", one) for one in html.split('class="chart slim"')]


@pytest.mark.parametrize(
    ("values", "scale", "shown"),
    [
        ((50.0, 300.0), "log", "50 100 150 200 250 300"),
        ((100.0, 104.0), "log", "100 101 102 103 104"),
        ((2.0, 3000.0), "log", "2 5 10 20 50 100 200 500 1,000 2,000"),
        ((0.1, 0.9), "percent", "0% 20% 40% 60% 80%"),
    ],
)
def test_numbers_of_a_scale_are_round_and_few(values: tuple[float, float], scale: str, shown: str) -> None:
    line = Line("one", ((1.0, values[0]), (2.0, values[1])))
    for found in ticks(chart(Curves("t", "x", "y", (line,), scale=scale)), "y"):  # type: ignore[arg-type]
        assert [one.replace(" ", "") for one in found] == shown.split()


@pytest.mark.parametrize(
    ("reach", "scale", "wide", "slim"),
    [
        ((1.0, 50.0), "log", "1 2 5 10 20 50", "1 2 5 10 20 50"),
        ((1.0, 51.0), "log", "1 2 5 10 20 50", "1 10"),
        ((1.0, 500.0), "log", "1 2 5 10 20 50 100 200 500", "1 10 100"),
        ((1.0, 501.0), "log", "1 10 100", "1 10 100"),
        ((1.0, 9.0), "linear", "2 4 6 8", "3 6 9"),
    ],
)
def test_a_long_or_narrow_axis_has_fewer_numbers(reach: tuple[float, float], scale: str, wide: str, slim: str) -> None:
    shown = chart(Curves("t", "x", "y", (Line("one", ((reach[0], 2.0), (reach[1], 3.0))),), x_scale=scale))  # type: ignore[arg-type]
    assert ticks(shown, "x") == [wide.split(), slim.split()]


def test_names_are_at_the_ends_of_their_lines_and_apart() -> None:
    """Names stand there on a wide screen; a heatmap is the same on every screen."""
    ends = {"upper": 290.0, "near": 286.0, "lower": 50.0}
    html = chart(Curves("t", "x", "y", tuple(Line(name, ((1.0, 300.0), (2.0, end))) for name, end in ends.items())))
    wide = html.partition('class="chart slim"')[0]
    assert 'class="chart wide"' in wide
    heights = [float(re.findall(rf' y="([\d.]+)"[^>]*>{name} ', wide)[0]) for name in ends]
    tops = [top for _, top, said in marks(html) if said.endswith("(x 2)")]
    assert heights[0] == pytest.approx(tops[0], abs=12)
    assert heights[1] - heights[0] == pytest.approx(17, abs=0.1), "a line of text apart"
    assert heights[2] == pytest.approx(tops[2], abs=12)
    assert 'class="chart wide"' not in chart(WEIGHTS)


def test_a_line_of_many_points_has_values_at_some_and_at_its_end() -> None:
    points = tuple((float(step), 5000.0 - step) for step in range(4000))
    found = marks(chart(Curves("t", "step", "y", (Line("one", points),))))
    assert 200 <= len(found) <= 402
    assert found[-1][2] == "one: 1,001.0 (step 3,999)"


def test_squares_say_their_weights_row_by_row() -> None:
    found = marks(chart(WEIGHTS))
    assert [said for *_, said in found[:3]] == ["中国 → 上海: 0.10", "中国 → 推: 0.90", "&lt;b&gt; → 上海: 0.50"]
    assert found[1][0] > found[0][0]
    assert found[2][1] > found[0][1]


def test_the_darkest_square_is_the_largest_weight() -> None:
    opacities = {float(share) for share in re.findall(r"fill-opacity: ([\d.]+)", chart(WEIGHTS))}
    assert min(opacities) == pytest.approx(0.02)
    (largest,) = re.findall(r'd="M (\d+) (\d+) [^>]*fill: var\(--first\)"', chart(WEIGHTS))
    place = next((left, top) for left, top, said in marks(chart(WEIGHTS)) if said.endswith("0.90"))
    assert tuple(map(float, largest)) == place, "where its value is shown"
    assert "The darkest square is a weight of 0.90." in chart(WEIGHTS)


def test_a_chart_in_a_page_has_the_colours_of_the_page_and_no_names_twice() -> None:
    both = chart(CURVES) + chart(WEIGHTS)
    assert "var(--first)" in both
    assert not re.search(r"#[0-9a-f]{6}", both), "by night they would be lost"
    assert "<b>" not in both
    assert "<style" not in both
    assert "xmlns" not in both
    assert "font-family" not in both
    names = re.findall(r' id="([^"]+)"', both)
    assert len(names) == len(set(names))
    assert all(f"#{name}" in both for name in names)


def test_equal_charts_are_equal_bytes() -> None:
    assert chart(CURVES) == chart(CURVES)


@pytest.mark.parametrize("name", ["$$", "$x_$", "a $5 and $6", r"\\frac{"])
def test_a_name_is_drawn_as_it_is_and_read_as_no_formula(name: str) -> None:
    drawn = chart(replace(CURVES, lines=(replace(CURVES.lines[0], name=name), *CURVES.lines[1:])))
    assert name in html.unescape(str(drawn))


def test_a_style_of_the_user_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    before = chart(CURVES)
    monkeypatch.setitem(matplotlib.rcParams, "lines.linewidth", 9.0)
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    assert chart(CURVES) == before
    assert matplotlib.rcParams["font.size"] == 30.0


def test_figures_are_pictures_of_all_charts_and_replace_only_their_kind(tmp_path: Path) -> None:
    latin = replace(CURVES, lines=(CURVES.lines[0], replace(CURVES.lines[1], name="two")))  # no machine lacks the font of a PNG
    for name in ("one.svg", "one.png", "one.pdf"):
        write_figure([latin, latin], tmp_path / name)
        write_figure([latin, latin], tmp_path / name)
    root = ElementTree.parse(tmp_path / "one.svg").getroot()
    assert root.attrib["viewBox"] == "0 0 720 680"
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("one & only 75.0") == 2
    assert "var(" not in (tmp_path / "one.svg").read_text(encoding="utf-8")
    head = (tmp_path / "one.png").read_bytes()[:24]
    assert struct.unpack(">II", head[16:24]) == (2000, 1888), "200 dots an inch"
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    for name, content in (("mine.svg", b"<svg/>"), ("mine.pdf", b"%PDF-1.4 of another program")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match="not a figure that sememekit drew"):
            write_figure([CURVES], tmp_path / name)
    with pytest.raises(ConfigError, match=r"must end in \.png, \.svg or \.pdf"):
        check_figure(tmp_path / "one.jpg")
    with pytest.raises(ConfigError, match="nothing to draw"):
        write_figure([], tmp_path / "none.png")


def test_a_character_that_no_font_has_is_said_of_a_png_and_no_matter_to_an_svg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "_FONTS", ())
    with pytest.raises(ConfigError, match=r"no font here has '二'.*fonts-noto-cjk.*\.svg"):
        write_figure([CURVES], tmp_path / "one.png")
    assert not (tmp_path / "one.png").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_figure([CURVES], tmp_path / "one.svg")
        assert "二" in chart(CURVES)
    assert "二" in (tmp_path / "one.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("last", "ticks"), [(300.0, {"1", "2", "5", "10", "100", "200"}), (9000.0, {"1", "10", "100", "1,000"})]
)
def test_ticks_of_many_decades_do_not_run_into_each_other(last: float, ticks: set[str]) -> None:
    shown = chart(Curves("t", "queries", "y", (Line("one", ((1.0, 0.0), (last, 0.5))),), "percent", "log"))
    wide, _, slim = shown.partition('class="chart slim"')
    numbers = [set(re.findall(r">([\d,]+)</text>", picture)) for picture in (wide, slim)]
    assert ticks <= numbers[0]
    assert ("2" in numbers[0]) == ("2" in ticks)
    assert {"1", "10", "100"} <= numbers[1]
    assert "2" not in numbers[1], "a phone has less room"


def test_a_band_is_drawn_around_its_line_and_the_axis_holds_it() -> None:
    points = ((1.0, 0.2), (9.0, 0.4))
    plain, banded = (
        chart(Curves("t", "x", "y", (Line("one", points, band),), "percent")) for band in ((), ((0.1, 0.3), (0.3, 0.7)))
    )
    assert "opacity: 0.15" not in plain
    assert banded.count("opacity: 0.15") == 2, "one in each width"
    assert "60 %" not in plain
    assert "60 %" in banded
