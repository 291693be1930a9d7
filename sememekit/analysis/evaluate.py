"""``sememekit eval``: the metrics of a run or of a folder of seeds; ROUGE or BLEU of the texts of a beam search."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, Field, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer

from sememekit.analysis.evaluate_ppl import PerplexityReport, baseline_of, evaluate_ppl
from sememekit.analysis.scored_runs import check_comparable, label_signature, of_text, perplexity_signature
from sememekit.analysis.written_texts import Scores, scores_of, write_texts_file
from sememekit.config import Record
from sememekit.data.examples import Original
from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, ConfigError
from sememekit.files import TEXTS, check_output
from sememekit.measure.bleu import BleuSettings, dialogue_bleu
from sememekit.measure.classes import Accuracy
from sememekit.measure.perplexity import tallies
from sememekit.measure.rouge import rouge
from sememekit.measure.sides import SCALES
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run, Which
from sememekit.runs.writing import describe_search, search_of, words_read
from sememekit.search import SEARCH
from sememekit.tasks.base import LabelPredictor, declares
from sememekit.tasks.headline import rouge_settings
from sememekit.tasks.scoring import PAIRS
from sememekit.tasks.vectors import VectorCoverage
from sememekit.tasks.writing import TextWriter, hypothesis_words, originals_of
from sememekit.training.checkpoint import seed_runs

SEARCH_OF_DATASETS: Final[Mapping[str, Mapping[str, Any]]] = {"duc": {"min_length": 30, "max_length": 30}}
"""Data set -> search settings by its rules: exactly 30 words and no end mark for DUC-2004 (Sec. 5.1, Shen et al. 2017)."""


class MetricsReport(OfRun):
    """Report of ``eval``; as JSON one flat object, each metric under its usual name."""

    model_config = ConfigDict(allow_inf_nan=True)

    split: str
    metrics: dict[str, int | float] = Field(default_factory=dict)
    """Name in the task -> value."""

    @model_serializer(mode="wrap")
    def _flat(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table = fields(self)
        return table | table.pop("metrics")


class LabelMetrics(Accuracy, MetricsReport):
    """Report of ``eval`` on a classifier."""

    nats: float
    """Summed negative log-probability of the gold labels."""
    majority: float | None = None
    """Baseline: accuracy of the most frequent label of train; None if the data have no train."""
    labels: tuple[str, ...]
    """Names of the labels, in the order of the confusion matrix."""
    vectors: VectorCoverage | None
    """Coverage of the text by the pretrained vectors of the model, if any."""
    signature: str
    """One line; figures whose signatures are equal can be compared."""


class WrittenMetrics(MetricsReport):
    """Report of ``eval`` on a model that writes texts; ``metrics`` are the first of the ``scores``."""

    perplexity: float
    """Perplexity per word of the targets, end marks included; computed from ``nats`` and ``tokens``."""
    nats: float
    tokens: int
    unigram: float | None = None
    """Baseline: as in ``PerplexityReport``."""
    parts: dict[str, float]
    """Perplexity of each term of the loss; their product is the perplexity."""
    examples: int
    checkpoint_by: str
    """The metric that chose the best checkpoint."""
    search: str
    words: float
    """Mean length of the best texts."""
    unknown: float
    """Share of ``<unk>`` among the words of the search; with ``unknown=replace``, of words copied from the source."""
    cut_sources: int
    """Number of sources with more words than the model reads (``task.read_words``)."""
    source_words: int
    read_words: int
    """source_words, read_words: number of words in all sources, and of those words that the model read."""
    scores: tuple[Scores, ...]
    """The metrics of each kind of scoring."""
    baseline: str = ""
    """The texts of the baseline."""
    baseline_scores: tuple[Scores, ...] = ()
    """The scores of the baseline, in the order of ``scores``; empty for dialogues without training replies."""
    signature: str
    """The signature of the first scores; ``perplexity_signature`` is the signature of ``evaluate-ppl``."""
    perplexity_signature: str


def evaluate(
    run: Path | str | Run,
    *,
    split: str = "test",
    data: Path | None = None,
    device: str | None = None,
    dtype: str | None = None,
    which: Which | None = None,
    overrides: Sequence[str] = (),
    texts: Path | None = None,
    progress: Progress = silent,
) -> MetricsReport:
    """The metrics of the task: ``LabelMetrics``, ``WrittenMetrics``, or ``MetricsReport`` for any other task.

    For a model that writes texts: ``overrides`` are ``task.search.KEY=VALUE`` in place of the settings of run and data set, and
    ``texts`` is the output file of ``write_texts_file``. Raises ConfigError: another override, a file of another kind at
    ``texts``, or either option for a task that writes no texts. Raises DataError: as ``evaluate_ppl``, or no references."""
    loaded = Run.open(run, which=which, device=device, dtype=dtype)
    prepared = loaded.data(data)
    if (overrides or texts is not None) and not declares(loaded.task, TextWriter):
        given = "--set" if overrides else "--texts"
        raise ConfigError(f"{given}: {run} writes no texts; this is for runs of --task headline or dialogue, leave it out")
    where = {**loaded.of_run, "split": split}
    with loaded.autocast():
        if declares(loaded.task, TextWriter):
            return _written(loaded, loaded.task, prepared, split, overrides, texts, progress)
        if declares(loaded.task, LabelPredictor):
            accuracy, nats = loaded.task.evaluate_labels(prepared, split)
            vectors = loaded.task.vector_coverage(prepared, split)
            labels, signature = tuple(loaded.task.labels), label_signature(prepared, split)
            more = {"majority": baseline_of(loaded, prepared, split, "accuracy"), "vectors": vectors, "signature": signature}
            return LabelMetrics(**where, **dict(accuracy), nats=nats, labels=labels, **more)
        unigram = baseline_of(loaded, prepared, split, "perplexity")
        more = {} if unigram is None else {"unigram": unigram}
        return MetricsReport(**where, metrics=loaded.task.evaluate(prepared, split) | more)


def _written(
    loaded: Run, task: TextWriter, data: PreparedData, split: str, overrides: Sequence[str], texts: Path | None, show: Progress
) -> WrittenMetrics:
    search = search_of(task, overrides, SEARCH_OF_DATASETS.get(data.signature.dataset))
    originals = list(originals_of(data, split))
    whole, parts = tallies(task.score_pairs(data, split))
    examples = data.examples(split)
    sources = [examples.text(index, 0) for index in range(len(examples))]
    lengths = [len(source) for source in sources]
    read = [words_read(loaded, length) for length in lengths]
    check_output(texts, TEXTS)
    found = task.write(sources, search, lambda done, total: show("texts", done, total))
    written = [
        [" ".join(hypothesis_words(task.vocabulary, item, own.source, search)) for item in best]
        for best, own in zip(found, originals, strict=True)
    ]
    best_words = [word for best in found if best for word in best[0].words]
    if texts is not None:
        write_texts_file(texts, [" ".join(own.source) for own in originals], written, [own.references for own in originals])
    place = f"|data:{data.signature.dataset}|split:{split}|examples:{len(originals)}"
    place += f"|{describe_search(search)}|search:{SEARCH}"
    references = [own.references for own in originals]
    scores = tuple(_scores(task, data, written, references, place, search.num_best))
    baseline, trivial = _without_model(task, data, written, originals, search.num_best)
    return WrittenMetrics(
        **loaded.of_run,
        split=split,
        metrics={score.name: score.value for score in scores[0].values},
        perplexity=whole.perplexity,
        nats=whole.nats,
        tokens=whole.count,
        unigram=baseline_of(loaded, data, split, "perplexity"),
        parts={name: tally.perplexity for name, tally in parts.items()},
        examples=len(examples),
        checkpoint_by=loaded.plan.table()["task"]["checkpoint_by"],
        search=describe_search(search),
        words=len(best_words) / len(found),
        unknown=sum(word == task.vocabulary.unknown_id for word in best_words) / max(len(best_words), 1),
        cut_sources=sum(own < length for own, length in zip(read, lengths, strict=True)),
        source_words=sum(lengths),
        read_words=sum(read),
        scores=scores,
        baseline=baseline,
        baseline_scores=tuple(_scores(task, data, trivial, references, place, search.num_best)) if trivial else (),
        signature=scores[0].signature,
        perplexity_signature=perplexity_signature(data, split, whole.count, 1, PAIRS),
    )


def _without_model(
    task: TextWriter, data: PreparedData, written: list[list[str]], originals: Sequence[Original], most: int
) -> tuple[str, list[list[str]]]:
    """Return a description of texts that need no model, and the texts of each example; none for dialogues without train."""
    if task.scored_with == "rouge":
        lengths = [len(best[0].split()) if best else 0 for best in written]
        leads = [[" ".join(own.source[:length])] for own, length in zip(originals, lengths, strict=True)]
        return "first words of the source, as many as were written", leads
    replies = Counter(own.references[0] for own in originals_of(data, "train")) if "train" in data.splits else Counter[str]()
    usual = [reply for reply, _ in replies.most_common(most)]
    return "most frequent replies of train", [usual] * len(written) if usual else []


def _scores(
    task: TextWriter, data: PreparedData, written: list[list[str]], references: list[Any], place: str, num_best: int
) -> Iterator[Scores]:
    if task.scored_with == "bleu":
        settings = BleuSettings(top=min(BleuSettings().top, num_best))
        bleu = dialogue_bleu([best or [""] for best in written], references, settings)
        yield scores_of("bleu", bleu, {name: f"bleu{name[-1]}_{name[:-1]}" for name in bleu.values}, place)
        return
    firsts = [best[0] if best else "" for best in written]
    for preset, kind in rouge_settings(data):
        yield scores_of(preset, rouge(firsts, references, kind), signature=place)


class SeedsFigure(Record):
    """A metric of each seed, with mean (geometric for perplexities) and standard deviation (n - 1; None for one seed)."""

    values: tuple[float, ...]
    mean: float
    sd: float | None


class SeedsReport(Record):
    """Report of ``evaluate-ppl`` or ``eval`` on a folder that ``train --seeds`` wrote."""

    run: str
    split: str
    seeds: tuple[int, ...]
    figures: dict[str, SeedsFigure]
    """The figures by metric: perplexity; accuracy and macro F1; ROUGE or BLEU; and what any other task names."""
    signature: str | None
    """Signature of all runs, without a cache or dynamic evaluation tuned for each run; None if the task has none."""
    reports: tuple[SerializeAsAny[OfRun], ...]


def evaluate_seeds(folder: Path, read: Callable[[Path], PerplexityReport | MetricsReport] = evaluate_ppl) -> SeedsReport:
    """Measure each seed of a model, with mean and standard deviation; the runs are opened one after the other.

    ``read`` measures a run, such as ``partial(evaluate_ppl, split="valid", batch_size=1)`` or ``evaluate``. Raises
    CheckpointError: no such runs, or one without a checkpoint. Raises ConfigError: signatures differ; and as ``read``."""
    if not (runs := seed_runs(folder)):
        raise CheckpointError(f"{folder} is no folder of runs seed-1, seed-2, ...; give one that 'train --seeds' wrote")
    reports = []
    for run in runs:
        reports.append(read(run))
        if first := _compared(reports[0]):
            check_comparable((str(runs[0]), first), (str(run), _compared(reports[-1])))
    figures = [_figures(one) for one in reports]
    signatures = [getattr(one, "signature", None) for one in reports]
    return SeedsReport(
        run=str(folder),
        split=reports[0].split,
        seeds=tuple(int(run.name.removeprefix("seed-")) for run in runs),
        figures={name: _figure(name, [one[name] for one in figures]) for name in figures[0]},
        signature=signatures[0] if len(set(signatures)) == 1 else of_text(signatures[0] or "", adapted=False),
        reports=tuple(reports),
    )


def _compared(report: PerplexityReport | MetricsReport) -> str:
    """Return the parts that must agree before two figures can be compared."""
    if isinstance(report, PerplexityReport):
        return f"{of_text(report.signature, adapted=False)}|dtype:{report.dtype}"
    return report.signature if isinstance(report, LabelMetrics | WrittenMetrics) else ""


def _figure(name: str, values: Sequence[float]) -> SeedsFigure:
    scale = SCALES["perplexity" if name.endswith("perplexity") else "accuracy"]
    sd = statistics.stdev(values) if len(values) > 1 else None
    return SeedsFigure(values=tuple(values), mean=scale.mean(map(scale.inner, values)), sd=sd)


def _figures(report: PerplexityReport | MetricsReport) -> dict[str, float]:
    """Return the metrics that have a mean over seeds; counts do not, since they are equal for all seeds."""
    if isinstance(report, PerplexityReport):
        return {"perplexity": report.perplexity}
    if isinstance(report, LabelMetrics):
        majority = {} if report.majority is None else {"majority": report.majority}
        return {"accuracy": report.accuracy, "macro_f1": report.macro_f1} | majority
    found = {name: value for name, value in report.metrics.items() if isinstance(value, float) and name != "nats"}
    return found | {"perplexity": report.perplexity} if isinstance(report, WrittenMetrics) else found
