"""The results of a quickstart, and the page that shows them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import Field

from sememekit.analysis.explanations.evaluation import ExplanationScores
from sememekit.analysis.explanations.lattice import LatticeSentence
from sememekit.analysis.explanations.scores import FREQUENCY, RANDOM
from sememekit.analysis.explanations.words import Explanation
from sememekit.analysis.segmentation import MODEL, SegmentationRow
from sememekit.config import Record
from sememekit.figures import percent
from sememekit.reports import pages
from sememekit.reports.charts import Curves, Line, chart
from sememekit.reports.metrics import shown_name, tables

NAMES: Final = {"softmax": "plain softmax", "sdlm": "sememes (SDLM)"}


class TextSummary(Record):
    """The text of a quickstart.

    Attributes:
        month: name of the file it comes from.
        paragraphs, paragraphs_of_month: how many were chosen, of how many; lines of an own text.
        tokens: of each split.
        vocabulary: words of it.
        unknown_rate: share of tokens that are ``<unk>``.
        annotated: share of the tokens that have sememes.
        segmenter: how an own text was cut into words; empty for the newspaper, whose words are given.
    """

    month: str
    paragraphs: int
    paragraphs_of_month: int
    tokens: dict[str, int]
    vocabulary: int
    unknown_rate: float
    annotated: float
    segmenter: str = ""


class ModelRow(Record):
    """One model of the comparison.

    Attributes:
        name: of its recipe in ``quickstart/``.
        parameters: numbers learned, shared ones once.
        epochs, best_epoch: trained, and the one whose weights were measured.
        valid_by_epoch, best_valid: perplexity on the validation split.
        test_perplexity, per_character, bits_per_byte, tokens, signature: as ``evaluate-ppl --split test`` has them.
        training_seconds: wall time in training steps, validation apart; both models were trained at the same time.
        tokens_per_second: training tokens over that time.
    """

    name: str
    run: str
    parameters: int
    epochs: int
    best_epoch: int
    ended_because: str
    valid_by_epoch: tuple[float, ...]
    best_valid: float
    test_perplexity: float
    per_character: float | None
    bits_per_byte: float | None
    tokens: int
    training_seconds: float
    tokens_per_second: float
    signature: str


class LatticeFound(Record):
    """The words that a lattice model found in raw characters.

    Attributes:
        characters: in its training text.
        epochs, training_seconds: as in ``ModelRow``.
        sentences: lattices of some short texts; the first is drawn.
        rows: its words and those of ways without a model against the words of held-out sentences; empty without such words.
    """

    run: str
    characters: int
    epochs: int
    training_seconds: float
    sentences: tuple[LatticeSentence, ...]
    rows: tuple[SegmentationRow, ...] = ()


class QuickstartReport(Record):
    """The report of a quickstart.

    Attributes:
        stopped: whether a signal ended it in training; the same command goes on. The rest is empty then.
        already_done: whether it was finished before, and nothing was done.
        senses, sememes: of the sememe graph.
        models: the softmax model first.
        explanations: of the sememe model.
        softmax_guesses: the softmax model on the same contexts.
        scores: how often the sememes that an explanation lists are those of the next word; None where no word has any.
        lattice: the model of characters; None without one.
        no_lattice: why there is none.
        seconds: wall time of the call that finished it.
        cpu_seconds: user and system time of the same call by step: ``text and graph``, each model by its name, ``results``.
    """

    out: str
    stopped: bool = False
    already_done: bool = False
    text: TextSummary | None = None
    senses: int = 0
    sememes: int = 0
    models: tuple[ModelRow, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    softmax_guesses: tuple[Explanation, ...] = ()
    scores: ExplanationScores | None = None
    lattice: LatticeFound | None = None
    no_lattice: str = ""
    page: str = ""
    seconds: float
    cpu_seconds: dict[str, float] = Field(default_factory=dict)
    next_commands: tuple[str, ...] = ()


def columns(models: Sequence[ModelRow]) -> tuple[str, ...]:
    """Headings for ``rows``."""
    return ("", *(NAMES.get(model.name, model.name) for model in models))


def rows(models: Sequence[ModelRow]) -> list[tuple[str, ...]]:
    """The comparison as texts: a line for each figure, a column for each model."""

    def line(name: str, show: Callable[[ModelRow], str]) -> tuple[str, ...]:
        return (name, *(show(model) for model in models))

    return [
        line("test perplexity", lambda model: f"{model.test_perplexity:.1f}"),
        line("per character", lambda model: "–" if model.per_character is None else f"{model.per_character:.2f}"),
        line("bits per byte", lambda model: "–" if model.bits_per_byte is None else f"{model.bits_per_byte:.3f}"),
        line("best validation perplexity", lambda model: f"{model.best_valid:.1f}"),
        line("epochs", lambda model: f"{model.epochs} (best {model.best_epoch})"),
        line("parameters", lambda model: f"{model.parameters:,}"),
        line("training", lambda model: f"{model.training_seconds:,.0f} s"),
        line("training tokens a second", lambda model: f"{model.tokens_per_second:,.0f}"),
    ]


def verdict(models: Sequence[ModelRow]) -> str:
    """The comparison in words, whichever way it went."""
    softmax, sememes = models
    slower = softmax.tokens_per_second / sememes.tokens_per_second
    larger = percent(sememes.parameters / softmax.parameters - 1, 0, sign="+")
    on_test = _change(softmax.test_perplexity, sememes.test_perplexity)
    return (
        f"On the test text the sememe model has a {on_test} perplexity than the softmax model "
        f"({sememes.test_perplexity:.1f} against {softmax.test_perplexity:.1f}), on the validation text a "
        f"{_change(softmax.best_valid, sememes.best_valid)} one, with {larger} "
        f"parameters and {slower:.1f} times the training time a token. "
        "One run of each, on a small text: docs/results/sdlm.md of the repository has larger ones with several seeds."
    )


def _change(before: float, after: float) -> str:
    change = after / before - 1
    return f"{percent(abs(change))} {'lower' if change < 0 else 'higher'}"


def how_it_was_made(report: QuickstartReport) -> list[str]:
    """The conditions of the comparison, a sentence each."""
    lines = []
    if report.text is not None:
        text = report.text
        tokens = ", ".join(f"{name} {count:,}" for name, count in text.tokens.items())
        kind = f"lines of {text.month}, cut into words by {text.segmenter}" if text.segmenter else f"paragraphs of {text.month}"
        lines.append(
            f"Text: {text.paragraphs:,} of the {text.paragraphs_of_month:,} {kind}, chosen at random; "
            f"{tokens} tokens; {text.vocabulary:,} words, {percent(text.unknown_rate)} of the tokens unknown."
        )
    annotated = "" if report.text is None else f"; {percent(report.text.annotated)} of the text has any"
    lines.append(f"Sememe graph: {report.senses:,} senses and {report.sememes:,} sememes{annotated}.")
    lines.append(
        "Both models have equal data, size, dropout, optimiser, rate, schedule and seed, and are trained with sampled words "
        "and measured with all; they differ in the output layer alone. Of two rates that were tried for each, the same was "
        "better for both. One seed, and a draw of words in training: a difference of a few per cent says little."
    )
    lines += [f"Training of {NAMES.get(row.name, row.name)} ended: {row.ended_because}." for row in report.models]
    if report.cpu_seconds:
        steps = ", ".join(f"{NAMES.get(name, name)} {seconds:,.0f}" for name, seconds in report.cpu_seconds.items())
        lines.append(f"CPU seconds of this call: {steps}; {report.seconds:,.0f} s by the clock.")
    if report.no_lattice:
        lines.append(f"No lattice model of characters: {report.no_lattice}.")
    return lines


def words_of_lattice(found: LatticeFound) -> list[str]:
    """Return the segmentation of a lattice model as lines: the texts in its words, and how often it is right."""
    lines = [" ".join(sentence.viterbi) for sentence in found.sentences]
    if found.rows:
        ways = [(row.name, row) for row in found.rows]
        own = next(row for name, row in ways if name == MODEL)
        others = "; ".join(f"{name} {row.f1:.2f}" for name, row in ways if name != MODEL)
        limits = "" if own.f1_low is None else f" ({own.f1_low:.2f} to {own.f1_high:.2f}, 95 % bootstrap)"
        lines.append(f"F1 of its words {own.f1:.2f}{limits} in {own.sentences:,} held-out sentences; {others}.")
    return lines


def truth_of_explanations(scores: ExplanationScores) -> str:
    """Say in one sentence how often the sememes listed first are right, against other rankings."""
    found = {score.ranking: score.any.value or 0.0 for score in scores.rankings}
    others = ", ".join(f"{shown_name(name)} {percent(found[name], 0)}" for name in ("gates", FREQUENCY, RANDOM))
    return (
        f"Of the {scores.rankings[0].top} sememes that an explanation lists first, at least one is of the next word in "
        f"{percent(found['rise'], 0)} of {scores.positions:,} positions of the test text; other rankings: {others}."
    )


def report_page(report: QuickstartReport) -> str:
    """The page of a finished quickstart."""
    both = zip(report.explanations, report.softmax_guesses, strict=True)
    shown = {
        "verdict": verdict(report.models),
        "columns": columns(report.models),
        "rows": rows(report.models),
        "how_it_was_made": how_it_was_made(report),
        "charts": [chart(one) for one in charts(report)],
        "explained": [(explanation, pages.remarks("words", explanation), guess) for explanation, guess in both],
        "said_of_explanations": report.scores and truth_of_explanations(report.scores),
        "scores": report.scores and tables(report.scores)[0],
        "lattice": report.lattice and _lattice(report.lattice),
    }
    return pages.render("quickstart", report=report, **shown)


def _lattice(found: LatticeFound) -> dict[str, Any]:
    said = words_of_lattice(found)[len(found.sentences) :]
    return {"found": found, "first": found.sentences[0], "said": said}


def charts(report: QuickstartReport) -> list[Curves]:
    """The learning curves of both models."""
    curves = [(NAMES.get(model.name, model.name), model.valid_by_epoch) for model in report.models]
    told = "; ".join(f"{name} from {values[0]:.0f} to {values[-1]:.0f}" for name, values in curves)
    lines = tuple(Line(name, tuple(enumerate(values, start=1))) for name, values in curves)
    return [Curves(f"Validation perplexity by epoch: {told}", "epoch", "validation perplexity (log scale)", lines)]
