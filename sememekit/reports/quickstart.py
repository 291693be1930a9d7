"""The results of a quickstart, and the page that shows them."""

from typing import Final

from pydantic import Field

from sememekit.analysis.explanations.evaluation import ExplanationScores
from sememekit.analysis.explanations.lattice import LatticeSentence
from sememekit.analysis.explanations.scores import RANDOM
from sememekit.analysis.explanations.words import Explanation
from sememekit.analysis.segmentation import MODEL, SegmentationRow
from sememekit.config import Record
from sememekit.reports import metrics, pages
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.table import Parts, Table, Views

NAMES: Final = {"softmax": "plain softmax", "sdlm": "sememes (SDLM)"}
_ROWS: Final = (
    *("test perplexity", "per character", "bits per byte", "best validation perplexity"),
    *("epochs", "parameters", "training", "training tokens a second"),
)


class TextSummary(Record):
    """The text of a quickstart."""

    month: str
    """Name of the source file."""
    paragraphs: int
    paragraphs_of_month: int
    """paragraphs, paragraphs_of_month: number of chosen and of all paragraphs (lines of a user's text)."""
    tokens: dict[str, int]
    """The tokens of each split."""
    vocabulary: int
    unknown_rate: float
    """Share of tokens that are ``<unk>``."""
    annotated: float
    """Share of the tokens that have sememes."""
    segmenter: str = ""
    """Segmenter of a user's text; empty for the newspaper, whose words are given."""


class ModelRow(Record):
    """One model of the comparison."""

    name: str
    """The name of its recipe in ``quickstart/``."""
    run: str
    parameters: int
    epochs: int
    best_epoch: int
    ended_because: str
    valid_by_epoch: tuple[float, ...]
    best_valid: float
    """valid_by_epoch, best_valid: perplexity on the validation split."""
    test_perplexity: float
    per_character: float | None
    bits_per_byte: float | None
    tokens: int
    """test_perplexity, per_character, bits_per_byte, tokens, signature: as in ``evaluate-ppl --split test``."""
    training_seconds: float
    """Wall time of training steps, without validation; both models were trained at the same time."""
    tokens_per_second: float
    """Training tokens over that time."""
    signature: str


class LatticeFound(Record):
    """The words that a lattice model found in raw characters."""

    run: str
    characters: int
    """The characters in its training text."""
    epochs: int
    training_seconds: float
    sentences: tuple[LatticeSentence, ...]
    """Lattices of some short texts; the first is drawn."""
    rows: tuple[SegmentationRow, ...] = ()
    """Scores of its words and of baselines against the gold words of held-out sentences; empty without gold words."""


class QuickstartReport(Record):
    """The report of a quickstart."""

    out: str
    stopped: bool = False
    """True if a signal ended it in training; the same command continues. Other fields are then empty."""
    already_done: bool = False
    """True if it was finished before, and nothing was done."""
    text: TextSummary | None = None
    senses: int = 0
    sememes: int = 0
    models: tuple[ModelRow, ...] = ()
    """The softmax model first."""
    explanations: tuple[Explanation, ...] = ()
    """The explanations of the sememe model; ``softmax_guesses`` has the other model on the same contexts."""
    softmax_guesses: tuple[Explanation, ...] = ()
    scores: ExplanationScores | None = None
    """Rates at which the next word has the sememes of an explanation; None if no word has sememes."""
    lattice: LatticeFound | None = None
    """The model of characters; None without one, and ``no_lattice`` says why."""
    no_lattice: str = ""
    page: str = ""
    seconds: float
    """Wall time of the call that finished it."""
    cpu_seconds: dict[str, float] = Field(default_factory=dict)
    """User and system time of the same call by step: ``text and graph``, each model by its name, ``results``."""
    next_commands: tuple[str, ...] = ()


def comparison(report: QuickstartReport) -> Table:
    """Return a row for each figure, a column for each model."""

    def figures(it: ModelRow) -> list[str]:
        character = "–" if it.per_character is None else f"{it.per_character:.2f}"
        byte = "–" if it.bits_per_byte is None else f"{it.bits_per_byte:.3f}"
        epochs = f"{it.epochs} (best {it.best_epoch})"
        speed = [f"{it.training_seconds:,.0f} s", f"{it.tokens_per_second:,.0f}"]
        return [f"{it.test_perplexity:.1f}", character, byte, f"{it.best_valid:.1f}", epochs, f"{it.parameters:,}", *speed]

    names, rows = (NAMES[model.name] for model in report.models), zip(_ROWS, *map(figures, report.models), strict=True)
    return Table(("", *names), rows, "Test perplexity with and without sememes", numbers=1)


def _said(report: QuickstartReport) -> dict[str, list[str]]:
    """Return the sentences for page and terminal on the comparison, the explanations, and the words of the lattice."""
    others = {name: metrics.shown_name(name) for name in ("gates", RANDOM)}
    said = {"models": pages.remarks("quickstart", report, NAMES), "scores": [], "lattice": []}
    if report.scores is not None:
        said["scores"] = pages.remarks("next_words", report.scores, others)
    if report.lattice is not None:
        said["lattice"] = pages.remarks("words_found", report.lattice.rows, MODEL)
    return said


def parts(report: QuickstartReport) -> Parts:
    """Yield the parts for a terminal."""
    said = _said(report)
    yield comparison(report)
    yield from (*said["models"], *said["scores"])
    if (found := report.lattice) is not None:
        yield f"\nWords that a lattice model found in {found.characters:,} characters without blanks:\n"
        yield from (f"  {line}" for line in (*(" ".join(one.viterbi) for one in found.sentences), *said["lattice"]))
    yield f"\nSee {report.page} for learning curves and predictions explained. Type next:\n"
    yield from (f"  {command}" for command in report.next_commands)


def report_page(report: QuickstartReport) -> str:
    """The page of a finished quickstart."""
    both = zip(report.explanations, report.softmax_guesses, strict=True)
    return pages.render(
        "quickstart",
        report=report,
        said=_said(report),
        comparison=comparison(report),
        charts=[chart(one) for one in charts(report)],
        explained=[(explanation, pages.remarks("words", explanation), guess) for explanation, guess in both],
        scores=report.scores and metrics.tables(report.scores)[0],
    )


def charts(report: QuickstartReport) -> list[Curves]:
    """The learning curves of both models."""
    lines = tuple(Line(NAMES[one.name], tuple(enumerate(one.valid_by_epoch, start=1))) for one in report.models)
    told = "; ".join(f"{line.name} from {line.points[0][1]:.0f} to {line.points[-1][1]:.0f}" for line in lines)
    return [Curves(f"Validation perplexity by epoch: {told}", "epoch", "validation perplexity (log scale)", lines)]


VIEWS: Final = Views(report_page, parts, charts)
