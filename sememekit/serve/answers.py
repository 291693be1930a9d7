"""Answers to requests: the same reports as the commands, so that numbers agree."""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sememekit.analysis.explanations.label import LabelExplanation
from sememekit.analysis.explanations.lattice import LatticeExplanation
from sememekit.analysis.explanations.sememes import PredictedWord
from sememekit.analysis.explanations.words import Explanation, OverlayExplanation
from sememekit.analysis.explanations.written_text import WritingExplanation
from sememekit.analysis.predict import LabelPrediction, PredictionReport
from sememekit.analysis.score import OverlaidToken, ScoredToken
from sememekit.analysis.senses.tagging import TaggedToken, header_of, tag
from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.measure import Tally
from sememekit.reports.charts import figure_file
from sememekit.runs.generation import GenerateReport, stream_words
from sememekit.runs.lattices import open_reader, segment_lines
from sememekit.runs.overlay import check_reads_graph
from sememekit.runs.run import OfRun
from sememekit.runs.writing import WrittenText, search_of
from sememekit.serve import questions
from sememekit.serve.runs import Bench, ServedRun
from sememekit.serve.worker import check_wanted
from sememekit.tasks.base import require
from sememekit.tasks.writing import TextWriter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STARTS: Final = ("去年 美国", "the company said")


class RunInfo(Record):
    """A served run."""

    name: str
    """Its name in requests."""
    kinds: tuple[str, ...]
    """The kinds of questions, as in docs/architecture.md."""
    task: str
    """Name of its task."""
    encoder: str
    """Name of its encoder."""
    decoder: str | None
    """The name of its output layer, None for a classifier."""
    words: int
    """Size of its vocabulary."""
    sememes: tuple[str, ...]
    """Names of the sememes of its graph; none without one."""
    labels: tuple[str, ...]
    """Labels of a classifier; none for other runs."""
    texts: tuple[str, ...]
    """Names of the texts of an example; none for runs that read no examples."""
    overlays: bool
    """True if its annotation can be changed."""
    unannotated: int
    """Number of unannotated words."""
    start: str
    """A first context of known words."""


class RunList(Record):
    """The served runs in the given order; ``saves``: whether changes can be saved."""

    runs: tuple[RunInfo, ...]
    """The served runs in the given order."""
    saves: bool
    """True if changes can be saved."""


def info_of(run: ServedRun) -> RunInfo:
    """Return what a client learns of a served run."""
    graph, plan, examples, known = run.graph, run.plan, run.signature.examples, run.vocabulary
    usual = next((one for one in STARTS if all(word in known for word in one.split())), "")
    try:
        check_reads_graph(plan, run.task, run.path)
        overlays = "words" in run.kinds
    except ConfigError:
        overlays = False
    return RunInfo(
        name=run.name,
        kinds=tuple(sorted(run.kinds)),
        task=plan.task.name,
        encoder=plan.encoder.name,
        decoder=plan.decoder.name if plan.decoder else None,
        words=len(known),
        sememes=() if graph is None else tuple(sorted(graph.sememes)),
        labels=run.labels,
        texts=() if examples is None else examples.texts,
        overlays=overlays,
        unannotated=0 if graph is None else int((~graph.annotated).sum()),
        start=usual or " ".join([word for word in known.tokens if word.isalpha()][:3]),
    )


class NextWords(OfRun):
    """The most probable next words; ``context`` is the context as it was read."""

    context: str
    """The context as the model read it."""
    words: tuple[PredictedWord, ...]
    """The most probable next words, by falling probability."""


def next_words(bench: Bench, question: questions.NextWordsQuestion) -> NextWords:
    """The most probable next words of a language model, with the shares of their senses."""
    run = bench.changed(question.run, question.changes, "next-words")
    report = run.explain(question.context, top=question.top).report
    return NextWords(**run.of_run, context=" ".join(word.read_as for word in report.context), words=report.words)


class ScoreAnswer(OfRun):
    """The surprisal (nats) of each word; with changes also with the changed annotation."""

    tokens: tuple[ScoredToken, ...] | tuple[OverlaidToken, ...]
    """The words in order; with changes also with the nats of the changed annotation."""
    perplexity: float
    """Exp of the mean nats of the predicted words."""
    perplexity_overlay: float | None = None
    """The perplexity with the changes; None without changes."""


def scores(bench: Bench, question: questions.ScoreQuestion) -> ScoreAnswer:
    """The surprisal of each word of a text, as ``sememekit score`` gives it."""
    run, overlay = bench.run(question.run, "score"), bench.changed(question.run, question.changes).overlay
    tokens = run._scored("score", question.text, overlay=overlay, carry=question.carry)
    before, after = (_perplexity(getattr(row, name, None) for row in tokens) for name in ("nats", "nats_overlay"))
    if before is None:
        raise DataError("score: the text has no word that could be predicted; give two words at least")
    return ScoreAnswer(**run.of_run, tokens=tuple(tokens), perplexity=before, perplexity_overlay=after)


def _perplexity(nats: Iterable[float | None]) -> float | None:
    known = [value for value in nats if value is not None]
    return Tally(sum(known), len(known)).perplexity if known else None


class TagAnswer(OfRun):
    """The senses of each word; ``header`` has method and accuracy."""

    header: tuple[str, ...]
    """Sentences on the method and its measured accuracy."""
    tokens: tuple[TaggedToken, ...]
    """The tagged words in order."""


def tags(bench: Bench, question: questions.TagQuestion) -> TagAnswer:
    """The senses of words, as ``sememekit tag`` gives them."""
    run, rows = bench.run(question.run, "tag"), []
    for row in tag(run, question.text.split("\n"), method=question.method, words=question.words):
        check_wanted()
        rows.append(row)
    if not rows:
        raise DataError("tag: no words are in the text, so nothing is tagged; give a sentence a line")
    return TagAnswer(**run.of_run, header=tuple(header_of(run, question.method, ()).sentences()), tokens=tuple(rows))


AnyExplanation = OverlayExplanation | Explanation | LabelExplanation | LatticeExplanation | WritingExplanation


def explanation(bench: Bench, question: questions.ExplainQuestion) -> AnyExplanation:
    """Return the explanation of ``sememekit explain`` for the kind of the run."""
    run = bench.run(question.run)
    options: dict[str, Any] = question.model_dump(exclude={"run", "text", "others", "changes"}, exclude_unset=True)
    if (overlay := bench.changed(question.run, question.changes).overlay) is not None:
        options["overlay"] = overlay
    report: AnyExplanation = run.explain(question.text, *question.others, **options).report
    return report


class SegmentAnswer(OfRun):
    """The words of each line."""

    lines: tuple[tuple[str, ...], ...]
    """The words of each line."""


def segmented(bench: Bench, question: questions.SegmentQuestion) -> SegmentAnswer:
    """The words of raw text, as ``sememekit segment --model`` finds them."""
    run, lines = bench.run(question.run, "segment"), []
    if not question.text.strip():
        raise DataError("segment: no words are in the text, so nothing is segmented; give a sentence a line")
    for words in segment_lines(open_reader(run, "segment"), question.text.split("\n"), question.decoding):
        check_wanted()
        lines.append(tuple(words))
    return SegmentAnswer(**run.of_run, lines=tuple(lines))


def predicted(bench: Bench, question: questions.PredictQuestion) -> PredictionReport:
    """The labels of examples, as ``sememekit predict`` gives them."""
    run = bench.run(question.run, "predict")
    rows, labels = run.predict(question.examples).rows, run.labels
    predictions = (
        LabelPrediction(line=line, label=label, probabilities=dict(zip(labels, values, strict=True)))
        for line, (_, label, *values) in enumerate(rows, start=1)
    )
    return PredictionReport(**run.of_run, labels=labels, predictions=tuple(predictions))


class GeneratedPart(Record):
    """A line of the stream: a word, or finally the report of ``sememekit generate``, or an error."""

    word: str | None = None
    """The next word of the text."""
    report: GenerateReport | WrittenText | None = None
    """The whole text, as the command gives it."""
    error: str | None = None
    """The reason for an early end of the stream."""


def generated(bench: Bench, question: questions.GenerateQuestion) -> Iterator[GeneratedPart]:
    """Yield a generated text word by word; models of headlines and dialogue give theirs at once."""
    run, given = bench.run(question.run, "generate"), question.model_dump(exclude={"run", "prompt", "num_best"})
    if "texts" in run.kinds:
        most = min(question.num_best, search_of(require(run.task, TextWriter, "generate")).beam_size)
        overrides = [f"task.search.num_best={most}"] if most > 1 else []
        yield GeneratedPart(report=run.generate(question.prompt, overrides=overrides).report)
        return
    for item in stream_words(run, question.prompt, **given):
        yield GeneratedPart(word=item) if isinstance(item, str) else GeneratedPart(report=item)


def pdf(bench: Bench, question: questions.PdfQuestion) -> str:
    """A drawing of the page as PDF, in base64; its text stays text."""
    return b64encode(figure_file(partial(_drawn, question), "pdf", "PDF")).decode()


def _drawn(question: questions.PdfQuestion) -> "Figure":
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

    width, height = question.width, question.height
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    for one in question.shapes:
        points = [(x / width, 1 - y / height) for x, y in zip(one.points[::2], one.points[1::2], strict=False)]
        if one.text:
            figure.text(*points[0], one.text, color=one.colour, size=one.size or 14, ha=one.anchor, parse_math=False)
            continue
        pen = {"color": one.colour, "linewidth": one.size, "alpha": one.opacity, "transform": figure.transFigure}
        figure.add_artist(Polygon(points, fill=not one.size, closed=not one.size, **pen))
    return figure
