"""Charts for pages, with a value at every point, and as files for papers, by matplotlib."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from markupsafe import Markup

from sememekit.errors import ConfigError
from sememekit.figures import formatted
from sememekit.files import FIGURE, check_output, write_output
from sememekit.reports import pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS: Final = {"first": "#0b62c4", "second": "#b1490b", "ink": "#1c2024", "faint": "#5b636b", "line": "#d8dce0"}
"""Colours of the light theme; the stylesheet of a page sets variables of these names for light and dark."""

_STROKES: Final = ((_COLOURS["first"], "-"), (_COLOURS["second"], "--"), (_COLOURS["ink"], ":"), (_COLOURS["faint"], "-."))
_DASHES: Final = {"-": "\N{EM DASH}", "--": "--", ":": "\N{HORIZONTAL ELLIPSIS}", "-.": "-\N{MIDDLE DOT}"}
"""Dash patterns as characters, before a name that is away from its line."""
_LABEL, _CELL, _MOST_MARKS = 17, 22, 400  # height of a label, size of a square, in points; points with a value in a line

_FONTS: Final = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC"),
    *("Source Han Sans SC", "WenQuanYi Micro Hei", "PingFang SC"),
)
_STYLE: Final = Path(__file__).parent / "templates" / "chart.mplstyle"


@dataclass(frozen=True)
class Line:
    """A named line through (x, y) points; a single point is a dot. ``band``: the limits of an interval at each point."""

    name: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Mark:
    """A value with a tooltip: its corner, from the left and the top of the chart, and its text."""

    left: float
    top: float
    size: float
    said: str


@dataclass(frozen=True)
class Curves:
    """One to four lines, with a colour, a dash pattern and a name each."""

    title: str  # alternative text of the chart
    x: str
    y: str
    lines: tuple[Line, ...]  # each with at least one finite point; positive on a logarithmic axis
    scale: Literal["log", "percent"] = "log"  # of the y axis: logarithmic, or percent from 0 for shares of 0 to 1
    x_scale: Literal["linear", "log"] = "linear"
    show: str = ",.1f"  # format of y values
    show_x: str = ",.0f"  # format of x values
    steps: bool = False  # whether a line keeps a value until the next point
    end_values: bool = True  # whether a line's name is followed by its last value
    narrow: bool = False  # version for phones, with names above the lines

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in points."""
        return (360, 290 + _LABEL * len(self.lines)) if self.narrow else (720, 340)

    def draw(self, figure: Figure, bottom: float) -> list[Mark]:
        """Draw into a figure, ``bottom`` points above its bottom."""
        from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, PercentFormatter

        axes = _add_axes(figure, 66, bottom + 50, *((270, 226) if self.narrow else (438, 274)))
        for line, (colour, dash) in zip(self.lines, _STROKES, strict=False):
            across, up = zip(*line.points, strict=True)
            style = "steps-post" if self.steps else "default"
            axes.plot(across, up, color=colour, linestyle=dash, linewidth=2.2, drawstyle=style)
            axes.plot(across[-1:], up[-1:], color=colour, marker="o", markersize=6)
            if line.band:
                low, high = zip(*line.band, strict=True)
                step: Literal["post"] | None = "post" if self.steps else None
                axes.fill_between(across, low, high, step=step, color=colour, alpha=0.15, linewidth=0)
        values = [value for line in self.lines for _, value in (*line.points, *line.band)]
        if self.scale == "percent":
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
            axes.set_ylim(0.0, 1.05 * max(values) or 1.0)
        else:
            axes.set_yscale("log")
            close, log = max(values) < 8 * min(values), LogLocator(subs=(1.0, 2.0, 5.0), numticks=12)
            axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]) if close else log)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))
        axes.set_xscale(self.x_scale)
        if self.show_x == ",.0f":
            reach = [x for line in self.lines for x, _ in line.points]
            decades = max(reach) > (50 if self.narrow else 500) * min(reach)
            log = LogLocator(subs=(1.0,) if decades else (1.0, 2.0, 5.0), numticks=12)
            axes.xaxis.set_major_locator(log if self.x_scale == "log" else MaxNLocator(4 if self.narrow else 8, integer=True))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        elif self.x_scale == "log":
            axes.xaxis.set_major_locator(LogLocator(numticks=6))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}"))
        axes.minorticks_off()
        axes.grid(axis="y")
        axes.set_xlabel(self.x)
        axes.set_ylabel(self.y)
        ends = [float(axes.transData.transform(line.points[-1])[1]) for line in self.lines]
        top = bottom + self.size[1]
        places = [(8.0, top - _LABEL * (number + 0.5)) for number in range(len(self.lines))]
        if not self.narrow:
            places = [(514.0, -height) for height in spread([-end for end in ends], _LABEL)]
        for line, place, (colour, dash) in zip(self.lines, places, _STROKES, strict=False):
            name = f"{line.name} {formatted(line.points[-1][1], self.show)}" if self.end_values else line.name
            name = f"{_DASHES[dash]} {name}" if self.narrow else name
            axes.annotate(name, place, xycoords="figure points", color=colour, va="center", annotation_clip=False)
        return [mark for line in self.lines for mark in self._marks(axes, line, figure.bbox.height)]

    def _marks(self, axes: Axes, line: Line, top: float) -> Iterator[Mark]:
        for x, y in [*line.points[: -1 : -(-len(line.points) // _MOST_MARKS)], line.points[-1]]:
            across, up = (float(value) for value in axes.transData.transform((x, y)))
            said = f"{line.name}: {formatted(y, self.show)} ({self.x} {formatted(x, self.show_x)})"
            yield Mark(across - 5, top - up - 5, 10, said)


@dataclass(frozen=True)
class Heatmap:
    """Weights of at least 0 as squares, a row of ``values`` for each of ``rows``; the darkest square is the largest weight.

    ``title`` is the alternative text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    @property
    def size(self) -> tuple[int, int]:
        left, top = _wide(self.rows), _wide(self.columns)
        return max(left + _CELL * len(self.columns) + 8, 300), top + _CELL * len(self.rows) + 30

    def draw(self, figure: Figure, bottom: float) -> list[Mark]:
        from matplotlib.colors import to_rgba

        left, largest = _wide(self.rows), max(map(max, self.values)) or 1.0
        axes = _add_axes(figure, left, bottom + 30, _CELL * len(self.columns), _CELL * len(self.rows))
        corner = figure.bbox.height - bottom - 30 - _CELL * len(self.rows)
        marks = []
        for row, (name, weights) in enumerate(zip(self.rows, self.values, strict=True)):
            for column, (word, weight) in enumerate(zip(self.columns, weights, strict=True)):
                said = f"{name} \N{RIGHTWARDS ARROW} {word}: {weight:.2f}"
                marks.append(Mark(left + _CELL * column, corner + _CELL * row, _CELL, said))
        colours = [[to_rgba(_COLOURS["first"], max(weight / largest, 0.02)) for weight in row] for row in self.values]
        axes.pcolormesh(colours)
        axes.invert_yaxis()
        axes.set_xticks([place + 0.5 for place in range(len(self.columns))], list(self.columns), rotation=90)
        axes.set_yticks([place + 0.5 for place in range(len(self.rows))], list(self.rows))
        axes.tick_params(length=0, labeltop=True, labelbottom=False, labelcolor=_COLOURS["ink"])
        axes.spines[:].set_visible(False)
        legend = f"The darkest square is a weight of {largest:.2f}."
        axes.annotate(legend, (8, bottom + 8), xycoords="figure points", color=_COLOURS["faint"], annotation_clip=False)
        return marks


Chart = Curves | Heatmap


def chart(shown: Chart) -> Markup:
    """Return a chart for a page: a picture in the page's colours with values as tooltips, for curves also one for phones.

    The script of ``layout.html.j2`` shows the nearest value; without scripts the browser's tooltip does."""
    if isinstance(shown, Heatmap):
        return _picture(shown, "squares", "")
    return _picture(shown, "marks", "wide") + _picture(replace(shown, narrow=True), "marks", "slim")


def _picture(shown: Chart, kind: str, width_class: str) -> Markup:
    with _style(f"{shown.title} {width_class}"):
        figure, marks = _draw([shown])
        figure.patch.set_visible(False)
        svg = _save(figure, "svg", {"Date": None, "Creator": None, "Format": None, "Type": None}).decode()
    svg = svg[svg.index("<g id=") : svg.rindex("</svg>")]
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL).replace("xlink:href", "href")
    referred = set(re.findall(r'(?:href="|url\()#([\w-]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in referred else "", svg)
    svg = re.sub(r"\s+", " ", re.sub(r">\s+<", "><", svg))
    svg = re.sub(r" font-family: [^;]*;", "", svg)  # that of the page
    for name, colour in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    width, height = shown.size
    drawn = {"width": width, "height": height, "title": shown.title, "drawing": Markup(svg), "marks": marks}
    return Markup(pages.render("chart", kind=kind, width_class=width_class, **drawn))


def check_figure(path: Path) -> None:
    """Raise ConfigError if the suffix is not .png, .svg or .pdf, or the figure would replace a file of another kind."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--figure {path}: its name must end in .png, .svg or .pdf")
    check_output(path, FIGURE)


def write_figure(charts: Sequence[Chart], path: Path) -> None:
    """Write charts below one another as a figure for a paper; text stays text, except in a PNG (200 dpi). Raises ConfigError:
    as :func:`check_figure`; no chart, or no font for a character of a PNG."""
    check_figure(path)
    if not charts:
        raise ConfigError(f"--figure {path}: there is nothing to draw here; leave it out")
    write_output(path, figure_file(lambda: _draw(charts)[0], path.suffix.lower()[1:], f"--figure {path}"), FIGURE)


def figure_file(draw: Callable[[], Figure], kind: str, name: str) -> bytes:
    """Return a figure for a paper as bytes; errors mention ``name``. Raises ConfigError: no font here has a character."""
    date: dict[str, str | None] = {"CreationDate" if kind == "pdf" else "Date": None}
    creator: dict[str, str | None] = {"Software": "sememekit"} if kind == "png" else {**date, "Creator": "sememekit"}

    def drawn() -> tuple[bytes, list[str]]:
        with _style(), warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", "Glyph")
            content = _save(draw(), kind, creator)
        return content, [found[1] for one in caught if (found := re.search(r"Glyph (\d+)", str(one.message)))]

    content, missing = drawn()
    if missing and kind != "svg" and _added_fonts():
        content, missing = drawn()
    if missing and kind != "svg":
        raise ConfigError(
            f"{name}: no font here has {chr(int(missing[0]))!r}; install one with Chinese characters (on Debian: apt "
            "install fonts-noto-cjk), or write an .svg, whose text is drawn where it is shown"
        )
    return content


def _added_fonts() -> bool:
    """Add the fonts that were installed after matplotlib made its list; return whether there is any."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    new = {*findSystemFonts()} - {one.fname for one in fontManager.ttflist}
    for path in sorted(new):
        with suppress(OSError, RuntimeError):  # no font that matplotlib reads
            fontManager.addfont(path)
    return bool(new)


def spread(heights: Sequence[float], distance: float) -> list[float]:
    """Move heights down as little as possible so that they are ``distance`` apart, in the same order."""
    moved, floor = list(heights), float("-inf")
    for index in sorted(range(len(heights)), key=lambda index: heights[index]):
        moved[index] = max(heights[index], floor)
        floor = moved[index] + distance
    return moved


@contextmanager
def _style(salt: str = "sememekit") -> Iterator[None]:
    """Use our options of matplotlib inside the block, not the user's. ``salt`` keeps ids in the SVGs of one page distinct."""
    from matplotlib import style
    from matplotlib.font_manager import fontManager

    there = set(fontManager.get_font_names())
    fonts = {"font.family": ["DejaVu Sans", *(name for name in _FONTS if name in there)]}
    with style.context(["default", str(_STYLE), {**fonts, "svg.hashsalt": salt}]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        yield


def _draw(charts: Sequence[Chart]) -> tuple[Figure, list[Mark]]:
    from matplotlib.figure import Figure

    sizes = [one.size for one in charts]
    width, height = max(size[0] for size in sizes), sum(size[1] for size in sizes)
    figure, marks, below = Figure(figsize=(width / 72, height / 72), dpi=72), [], float(height)
    for one, (_, its_height) in zip(charts, sizes, strict=True):
        below -= its_height
        marks += one.draw(figure, below)
    return figure, marks


def _save(figure: Figure, kind: str, metadata: dict[str, str | None]) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=200 if kind == "png" else 72, metadata=metadata)
    return stream.getvalue()


def _add_axes(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    across, up = figure.bbox.width, figure.bbox.height
    axes = figure.add_axes((left / across, bottom / up, width / across, height / up))
    axes.patch.set_visible(False)
    return axes


def _wide(names: Sequence[str]) -> int:
    """Return the width of the longest name in points; narrow letters count half."""
    return 16 + max(round(sum(13 if ord(letter) > 0x2E7F else 7.8 for letter in name)) for name in names)
