"""What a request is answered with: the reports of the commands, and so their numbers."""

from collections.abc import Iterator
from typing import Any, Final

from sememekit.analysis.explanations.label import LabelExplanation, explain_label
from sememekit.analysis.explanations.lattice import LatticeExplanation, explain_lattice
from sememekit.analysis.explanations.words import Explanation, OverlayExplanation, explain
from sememekit.analysis.explanations.written_text import WritingExplanation, explain_writing
from sememekit.analysis.predict import LabelPrediction, PredictionReport
from sememekit.analysis.score import OverlaidToken, ScoredToken, score, score_overlay
from sememekit.analysis.senses.tagging import TaggedToken, header_of, tag
from sememekit.config import Record
from sememekit.errors import ConfigError, DataError
from sememekit.measure import Tally
from sememekit.runs.classifier import load_classifier
from sememekit.runs.generation import GenerateReport, stream_words
from sememekit.runs.lattices import open_reader, segment_lines
from sememekit.runs.run import OfRun
from sememekit.runs.writing import WrittenText
from sememekit.serve.questions import (
    ExplainQuestion,
    GenerateQuestion,
    NextWordsQuestion,
    PredictQuestion,
    ScoreQuestion,
    SegmentQuestion,
    TagQuestion,
)
from sememekit.serve.runs import Bench, ServedRun

STARTS: Final = ("去年 美国", "the company said")


class RunInfo(Record):
    """A served run.

    Attributes:
        kinds: of questions, as in docs/architecture.md.
        methods: what it can be asked.
        task, encoder, decoder: names of its parts.
        words, sememes: how many it knows; no sememes for a run without a graph.
        labels, texts: of a classifier: its labels, and what the texts of an example are called.
        overlays: whether its annotation can be changed.
        unannotated: words that no lexicon knows.
        start: a context of words that it knows, to begin with.
    """

    name: str
    kinds: tuple[str, ...]
    methods: tuple[str, ...]
    task: str
    encoder: str
    decoder: str | None
    words: int
    sememes: int
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    overlays: bool
    unannotated: int
    start: str


class RunList(Record):
    """The runs that are served, in the order in which they were given; ``saves`` says whether changes can be saved."""

    version: str
    runs: tuple[RunInfo, ...]
    saves: bool


def info_of(run: ServedRun) -> RunInfo:
    """What a client has to know of a run."""
    from sememekit.runs.overlay import check_reads_graph

    graph, plan, examples = run.graph, run.plan, run.signature.examples
    overlays = graph is not None and "words" in run.kinds
    try:
        check_reads_graph(plan, run.task, run.path)
    except ConfigError:
        overlays = False
    return RunInfo(
        name=run.name,
        kinds=tuple(sorted(run.kinds)),
        methods=tuple(run.methods),
        task=plan.task.name,
        encoder=plan.encoder.name,
        decoder=plan.decoder.name if plan.decoder else None,
        words=len(run.vocabulary),
        sememes=0 if graph is None else graph.num_sememes,
        labels=tuple(run.labels),
        texts=tuple(examples.texts) if examples is not None else (),
        overlays=overlays,
        unannotated=0 if graph is None else int((~graph.annotated).sum()),
        start=_start(run),
    )


def _start(run: ServedRun) -> str:
    known = run.vocabulary
    usual = next((one for one in STARTS if all(word in known for word in one.split())), "")
    return usual or " ".join([word for word in known.tokens if word.isalpha()][:3])


class NextWord(Record):
    """A word that may come next, with the sense of the largest share where the model has senses."""

    word: str
    probability: float
    sense: str | None = None
    sememes: str | None = None
    share: float | None = None


class NextWords(OfRun):
    """The most probable next words, as ``Run.next_words`` gives them; ``context`` is the context as it was read."""

    context: str
    words: tuple[NextWord, ...]


def next_words(bench: Bench, question: NextWordsQuestion) -> NextWords:
    """The most probable next words of a language model."""
    run = bench.changed(question.run, question.changes)
    table = run.next_words(question.context, question.top)
    words = tuple(NextWord(**row) for row in table)
    return NextWords(run=run.name, checkpoint=run.snapshot, context=table.title, words=words)


class ScoreAnswer(OfRun):
    """The surprisal (nats) of each word; with changes also with the changed annotation.

    Attributes:
        perplexity, perplexity_overlay: exp of the mean nats of the words that are predicted, without and with the changes.
    """

    tokens: tuple[ScoredToken, ...] | tuple[OverlaidToken, ...]
    perplexity: float
    perplexity_overlay: float | None = None


def scores(bench: Bench, question: ScoreQuestion) -> ScoreAnswer:
    """The surprisal of each word of a text, as ``sememekit score`` gives it."""
    run, lines = bench.run(question.run), question.text.split("\n")
    overlay = bench.overlay(run, question.changes)
    options: dict[str, Any] = {"carry": question.carry, "name": "the text, line"}
    tokens: tuple[Any, ...]
    tokens = tuple(score(run, lines, **options) if overlay is None else score_overlay(run, lines, overlay, **options))
    columns = [[row.nats for row in tokens], [getattr(row, "nats_overlay", None) for row in tokens]]
    known = [[nats for nats in column if nats is not None] for column in columns]
    if not known[0]:
        raise DataError("score: the text has no word that could be predicted; give two words at least")
    after = Tally(sum(known[1]), len(known[1])).perplexity if known[1] else None
    perplexity = Tally(sum(known[0]), len(known[0])).perplexity
    return ScoreAnswer(run=run.name, checkpoint=run.snapshot, tokens=tokens, perplexity=perplexity, perplexity_overlay=after)


class TagAnswer(OfRun):
    """The senses of each word; ``header`` says what tagged and how often it was right."""

    header: tuple[str, ...]
    tokens: tuple[TaggedToken, ...]


def tags(bench: Bench, question: TagQuestion) -> TagAnswer:
    """The senses of words, as ``sememekit tag`` gives them."""
    run = bench.run(question.run)
    lines = question.text.split("\n")
    rows = tuple(tag(run, lines, method=question.method, words=question.words))
    header = tuple(header_of(run, question.method, ()).sentences())
    return TagAnswer(run=run.name, checkpoint=run.snapshot, header=header, tokens=rows)


AnyExplanation = OverlayExplanation | Explanation | LabelExplanation | LatticeExplanation | WritingExplanation


def explanation(bench: Bench, question: ExplainQuestion) -> AnyExplanation:
    """Why a model answers as it does, as ``sememekit explain`` says it, by the kind of the run."""
    run = bench.run(question.run)
    kinds = run.kinds
    if question.others and "labels" not in kinds:
        raise ConfigError(f"explain: {run} takes one text, given {1 + len(question.others)}")
    if question.changes and ("labels" in kinds or "words" not in kinds):
        raise ConfigError(f"explain: {run} takes no changes; they are for language models")
    if "labels" in kinds:
        texts = [question.text, *question.others]
        return explain_label(run, texts, label=question.label, top_sememes=question.top_sememes)
    if "texts" in kinds:
        return explain_writing(run, question.text)
    if "lattices" in kinds:
        return explain_lattice(run, question.text)
    return explain(
        run,
        question.text,
        top=question.top,
        top_sememes=question.top_sememes,
        overlay=bench.overlay(run, question.changes),
        word=question.word,
        right=question.right,
    )


class SegmentAnswer(OfRun):
    """The words of each line."""

    lines: tuple[tuple[str, ...], ...]


def segmented(bench: Bench, question: SegmentQuestion) -> SegmentAnswer:
    """The words of raw text, as ``sememekit segment --model`` finds them."""
    run = bench.run(question.run)
    found = segment_lines(open_reader(run, "segment"), question.text.split("\n"), question.decoding)
    return SegmentAnswer(run=run.name, checkpoint=run.snapshot, lines=tuple(map(tuple, found)))


def predicted(bench: Bench, question: PredictQuestion) -> PredictionReport:
    """The labels of examples, as ``sememekit predict`` gives them."""
    run = bench.run(question.run)
    classifier = load_classifier(run)
    classifier.check(question.examples, "predict")
    rows = enumerate(classifier.probabilities(question.examples), start=1)
    labels = classifier.labels
    predictions = tuple(
        LabelPrediction(
            line=line,
            label=labels[int(values.argmax())],
            probabilities=dict(zip(labels, values.tolist(), strict=True)),
        )
        for line, values in rows
    )
    return PredictionReport(run=run.name, checkpoint=run.snapshot, labels=labels, predictions=predictions)


class GeneratedPart(Record):
    """A line of the stream: a word, and at last the report of ``sememekit generate``."""

    word: str | None = None
    report: GenerateReport | WrittenText | None = None


def generated(bench: Bench, question: GenerateQuestion) -> Iterator[GeneratedPart]:
    """A text that a model writes, word by word; models of headlines and dialogue give theirs at once."""
    run, given = bench.run(question.run), question.model_dump(exclude={"run", "prompt"})
    if "texts" in run.kinds:
        yield GeneratedPart(report=run.generate(question.prompt).report)
        return
    drawn = stream_words(run, question.prompt, **given)
    while True:
        try:
            word = next(drawn)
        except StopIteration as end:
            yield GeneratedPart(report=end.value)
            return
        yield GeneratedPart(word=word)
