"""New words for a trained run, without training: vectors and biases come from sememes and characters (``extend``)."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.config import record_of
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Clustered, Decoder
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import read_object, to_json
from sememekit.progress import Progress, silent
from sememekit.runs.build import build_task
from sememekit.runs.plan import Plan, plan_of_run, variant
from sememekit.runs.run import SIGNATURE, TRAIN_COUNTS, OfRun, Run, Which, counts_text, load_weights
from sememekit.runs.training import saved_parts
from sememekit.runs.word_fit import Growth
from sememekit.sememes import SememeGraph, Side
from sememekit.sememes.new_words import NewWords, larger_graph, new_words, read_new_words
from sememekit.tasks.base import LabelPredictor, Task, declares
from sememekit.tasks.classifier import TextClassifier
from sememekit.tasks.writing import Predictor, predictions, predictor
from sememekit.text.chunks import CHUNKS
from sememekit.text.vocabulary import UNKNOWN, Vocabulary
from sememekit.training.manifest import EXTENDED

OF_UNKNOWN: Final = 0.75
"""Share of the vector of ``<unk>`` in the base of a new vector; the rest is the mean prediction. Layers with senses have no
such base, since they score ``<unk>`` through the gate of a separate sememe. In a classifier ``<unk>`` is the whole base."""
NUM_CONTEXTS: Final = 2048  # contexts of the training text in which the mean probabilities of new words are measured
_ROUNDS, _NEAR = 100, 1e-4  # most rounds of calibration, and the largest relative error that ends it
_AT_ONCE: Final = 256


class ExtendReport(OfRun):
    """Report of ``extend``: the added words, and the source of their vectors and probabilities."""

    written: str
    vocabulary: str
    of_vocabulary: str
    """vocabulary, of_vocabulary: fingerprints of the words of the new run and of ``run``."""
    words: tuple[str, ...]
    unannotated: tuple[str, ...]
    """New words without sememes, whose vectors come from their characters."""
    refused: dict[str, tuple[str, ...]]
    """Cause -> words of the file that were not added."""
    dropped_sememes: tuple[str, ...]
    """Sememes that the graph lacks, of words that also have known sememes."""
    shares: tuple[float, ...]
    """Mean share of each word in the probability of ``<unk>``; ``<unk>`` keeps ``unknown_share``."""
    unknown_share: float
    counted: bool
    """True if the shares follow counts in the file; otherwise they are equal."""
    calibrated: bool
    """True if the layer has a bias for each word, set so that the shares hold in the mean over ``contexts``."""
    contexts: int
    """Contexts of the training text."""
    calibration_error: float | None = None
    """The largest relative difference of a mean probability from its share; None if not calibrated, or of an older version."""
    cut_apart: tuple[str, ...] = ()
    """New words that the segmenter of the run divides where they stand alone, so that text may not have them."""
    features: int
    """Number of features from which the numbers were predicted; ``predicted`` names the tensors."""
    predicted: tuple[str, ...]


def extend(
    run: Path | Run,
    words: Path,
    out: Path,
    *,
    sources: Sequence[str] = (),
    side: Side = "chinese",
    lemmas: str | None = None,
    prior: float = 0.5,
    data: Path | None = None,
    which: Which = "best",
    device: str = "auto",
    progress: Progress = silent,
) -> ExtendReport:
    """Write a run with more words, without training; the probabilities of all words are exactly normalised.

    The parameters of a new word (vectors, biases, clusters) are predicted from its sememes and characters by a regression on
    the words of the run (``WordFit``). With x(w) the prediction and m its mean, a new vector is b + x(w) - m, where b is
    ``OF_UNKNOWN`` of the vector of ``<unk>`` and the rest of m; in a layer with senses it is x(w). Biases are then set so that,
    in the mean over contexts of the training text, a new word has its share of the former probability of ``<unk>``, and
    ``<unk>`` keeps the rest. A classifier only reads the new words: b is the vector of ``<unk>``, and m the mean prediction for
    known words, so that no vector depends on other new words.

    ``words`` is a file of ``read_new_words``. ``sources`` are lexicons for words without sememes in the file, and without a
    graph also for the run's words (default: the open lexicon); ``side`` is of a two-sided lexicon, ``lemmas`` are as for
    ``open_lemmas``. ``prior``: joint share of the new words in the probability of ``<unk>``, divided equally, if the file has
    no counts. ``data``: the prepared data of its training, if they were moved.

    Raises ConfigError: the run has no ``<unk>``, no word vectors in its output layer, or none at all. Raises DataError: words
    that cannot be added, more counts than ``<unk>`` has, or no data. Raises CheckpointError: no run, or ``out`` is taken."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CheckpointError(f"{out} exists already; choose another --out, or delete it first")
    if not 0.0 < prior < 1.0:
        raise ConfigError(f"--prior {prior}: the share of <unk> that new words have must lie between 0 and 1")
    loaded = Run.open(run, which=which, device=device)
    task = None if declares(loaded.task, LabelPredictor) else predictor(loaded.task, "extend")
    unknown = loaded.vocabulary.unknown_id
    if unknown is None:
        raise ConfigError(f"{run} has no <unk>, so that new words have no probability to share; train one with --min-count 2")
    known_graph, asked = _known_graph(loaded, sources, side)
    new = read_new_words(words, known_graph, asked, side, lemmas, loaded.form())
    added = [entry.word for entry in new.entries]
    shares, counts, contexts, target = list[float](), dict.fromkeys(added, 0) | new.counts, torch.zeros(0), torch.zeros(0)
    if task is not None:
        prepared = loaded.data(data)
        shares, counts = _shares(int(prepared.train_counts()[unknown]), added, new.counts, prior)
        contexts = _contexts(task, prepared, progress)
        target = torch.tensor([*shares, 1.0 - sum(shares)]) * _mean_probabilities(task.decoder, contexts)[unknown]
    larger = _enlarged(loaded, known_graph, new, counts, f"{len(added)} words of {words.name}")
    error = None
    if task is not None:
        error = _calibrate(predictor(larger.task, "extend").decoder, larger.growth, added, contexts, target)
    report = ExtendReport(
        **loaded.of_run,
        written=str(out),
        vocabulary=larger.growth.larger.fingerprint,
        of_vocabulary=loaded.vocabulary.fingerprint,
        words=tuple(added),
        unannotated=tuple(entry.word for entry in new.entries if entry.sememes() == {UNKNOWN}),
        refused=new.refused,
        dropped_sememes=new.dropped,
        shares=tuple(shares),
        unknown_share=1.0 - sum(shares),
        counted=bool(new.counts),
        calibrated=error is not None,
        contexts=len(contexts),
        calibration_error=error,
        cut_apart=tuple(word for word in added if loaded.form().cut(word, loaded.segmenter()) != [word]),
        features=larger.growth.fit.num_features,
        predicted=larger.predicted,
    )
    files = _files(loaded, larger, report)
    versions = {key: value for key, value in loaded.folder.versions.items() if key != "run"}
    loaded.folder.write_beside(out, larger.plan.table(), versions, files, loaded.snapshot, larger.task, {}, check=Run.open)
    return report


def with_open_vocabulary(
    run: Run, words: Iterable[str], sources: Sequence[str], side: Side = "chinese", lemmas: str | None = None
) -> Run:
    """Return the open run extended by those ``words`` that only the lexicons know; its folder stays unchanged.

    The words get vectors as in ``extend``, and a sememe encoder reads their sememes. Errors as ``extend``."""
    known_graph, asked = _known_graph(run, sources, side)
    new = new_words(words, known_graph, asked, side, lemmas)
    new = new._replace(entries=tuple(entry for entry in new.entries if entry.is_from_lexicon))
    if not new.entries:
        return run
    larger = _enlarged(run, known_graph, new, {entry.word: 0 for entry in new.entries}, f"{len(new.entries)} words of a text")
    return run.with_more_words(larger.growth.larger, larger.graph, larger.task)


def _known_graph(run: Run, sources: Sequence[str], side: Side) -> tuple[SememeGraph, Sequence[str]]:
    """Return the graph of a run (or of its words by lexicons), and the lexicons for new words."""
    if run.stored_graph is not None:
        return run.stored_graph, sources
    asked = sources or ("open",)
    return run.annotated(asked, side), asked


class _Enlarged(NamedTuple):
    """A model with more words, and its parts; ``predicted`` names the tensors with rows of new words."""

    task: Task
    plan: Plan
    graph: SememeGraph | None
    clusters: NDArray[np.int64] | None
    growth: Growth
    predicted: tuple[str, ...]


def _enlarged(run: Run, known_graph: SememeGraph, new: NewWords, counts: Mapping[str, int], record: str) -> _Enlarged:
    """The model of a run with new words, which are assumed to occur ``counts`` times."""
    vocabulary, decoder = run.vocabulary, getattr(run.task, "decoder", None)
    before = dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True))
    larger = Vocabulary.from_counts({**before, **{entry.word: 0 for entry in new.entries}})
    table = dict(run.folder.plan)
    if isinstance(decoder, Decoder):  # None takes a setting out
        settings = {**table["decoder"], **decoder.room_for_words()}
        table["decoder"] = {key: value for key, value in settings.items() if value is not None}
    plan = plan_of_run(run.folder, table)
    needs = variant("decoder", plan.decoder.name).needs(plan.decoder.settings) if plan.decoder is not None else ()
    graph = larger_graph(known_graph, larger, new, f"{record} added to {vocabulary.fingerprint}")
    of_unknown = 1.0 if plan.decoder is None else 0.0 if "graph" in needs else OF_UNKNOWN
    growth = Growth(vocabulary, larger, graph, counts, of_unknown)
    clusters = _clusters(growth, decoder, run.clusters, "clusters" in needs)
    kept_graph = graph if run.stored_graph is not None else None
    made = build_task(plan, larger, kept_graph, clusters, run.labels, None, run.kept)
    old, new_state = dict(run.task.state_dict()), made.state_dict()
    read = {name: new_state[name] for name in TextClassifier.word_tables if old.pop(name, None) is not None}
    weights, predicted = growth.weights(old, new_state)
    if not predicted:
        raise ConfigError(
            f"{run} has no vectors of words, since its encoder reads text by pieces of its own; it needs no new words"
        )
    load_weights(made, {**weights, **read}, run.path)
    if isinstance(made, TextClassifier) and isinstance(run.task, TextClassifier):
        made.read_words_of(run.task, larger.encode(vocabulary.tokens))
    return _Enlarged(made.to(run.device).eval(), plan, kept_graph, clusters, growth, predicted)


def what_was_added(run: Run) -> ExtendReport:
    """The stored report of an extended run. Raises ConfigError: the run was not extended, or the file is torn."""
    file = run.folder.file(EXTENDED)
    if not file.is_file():
        raise ConfigError(f"{run} was not extended; write a run with more words: sememekit extend RUN --words FILE --out RUN2")

    def refuse(why: str) -> ConfigError:
        return ConfigError(f"{why}; extend the run again")

    return record_of(ExtendReport, read_object(file, refuse), file, refuse)


def _shares(
    of_unknown: int, added: Sequence[str], counts: Mapping[str, int], prior: float
) -> tuple[list[float], dict[str, int]]:
    """Return the share of each new word in the probability of ``<unk>``, and the corresponding count."""
    stated = [counts[word] for word in added if word in counts]
    if not stated:
        each = prior / len(added)
        return [each] * len(added), dict.fromkeys(added, max(1, round(each * of_unknown)))
    usual = sum(stated) / len(stated)
    assumed = {word: max(0.5, counts.get(word, usual)) for word in added}
    if (total := sum(assumed.values())) > of_unknown:
        raise DataError(
            f"the counts of the new words add up to {total:,.0f}, but <unk> occurs only {of_unknown:,} times in the "
            "text of the run, where it stands for them; give counts of that text, or leave the column out and use --prior"
        )
    whole = max(of_unknown, total + 1.0)  # <unk> may stand for the new words alone, and keeps a probability
    return [assumed[word] / whole for word in added], {word: round(count) for word, count in assumed.items()}


@torch.no_grad()
def _contexts(task: Predictor, data: PreparedData, progress: Progress) -> Tensor:
    """(N, H) contexts from all over the training text."""
    found, read = list[Tensor](), 0
    for chunk in predictions(task, data, "train"):
        assert chunk.hidden is not None
        found.append(chunk.hidden[chunk.mask])
        read += len(found[-1])
        progress("contexts", min(read, NUM_CONTEXTS), NUM_CONTEXTS)
        if read >= NUM_CONTEXTS:
            break
    return torch.cat(found)[:NUM_CONTEXTS]


@torch.no_grad()
def _mean_probabilities(decoder: Decoder, contexts: Tensor) -> Tensor:
    """(V,) the mean probability of each word, in float64 on the CPU."""
    sums = [decoder.log_probs(part).double().exp().sum(dim=0).cpu() for part in contexts.split(_AT_ONCE)]
    return torch.stack(sums).sum(dim=0) / len(contexts)


def _clusters(growth: Growth, decoder: object, given: NDArray[np.int64] | None, wanted: bool) -> NDArray[np.int64] | None:
    """Return the clusters (V',) of old and new words, from the run's file or from its output layer."""
    if given is not None:
        old = torch.from_numpy(given)
    elif wanted and isinstance(decoder, Clustered):
        old = decoder.clusters()
    else:
        return None
    return growth.grown("clusters", old.cpu(), torch.zeros(len(growth.larger), dtype=old.dtype)).numpy()


@torch.no_grad()
def _calibrate(decoder: Decoder, growth: Growth, added: Sequence[str], contexts: Tensor, target: Tensor) -> float | None:
    """Adjust biases of new words and ``<unk>`` to mean probabilities ``target`` (n + 1); return the largest relative error.

    None: the layer has no such biases."""
    larger, graph = growth.larger, growth.graph
    sizes = {len(larger): None, graph.num_senses: torch.tensor(graph.word_of_sense)}
    biases = [part for part in decoder.parameters() if part.ndim == 1 and len(part) in sizes]
    if not biases:
        return None
    bias, words = biases[0], torch.from_numpy(larger.encode([*added, larger.token(larger.unknown_id or 0)]))
    of_row = sizes[len(bias)]
    for last in (*[False] * _ROUNDS, True):  # each comes nearer to the target
        mean = _mean_probabilities(decoder, contexts)[words]
        error = float((mean / target.clamp(min=1e-12) - 1.0).abs().max())
        if error <= _NEAR or last:
            break
        offset = torch.zeros(len(larger), dtype=torch.float64)
        offset[words] = (target.clamp(min=1e-12).log() - mean.clamp(min=1e-30).log()).clamp(-3.0, 3.0)
        bias.add_((offset if of_row is None else offset[of_row]).to(bias))
    return error


def _files(loaded: Run, made: _Enlarged, report: ExtendReport) -> dict[str, bytes]:
    larger = made.growth.larger
    signature = loaded.signature.model_copy(update={"vocabulary": larger.fingerprint, "vocabulary_size": len(larger)})
    changed = saved_parts(larger, made.graph, made.clusters)
    if loaded.chunks is not None and signature.chunks is not None:
        chunks = loaded.chunks.of_vocabulary(larger)
        changed[CHUNKS] = chunks.content
        summary = signature.chunks.model_copy(update={"fingerprint": chunks.fingerprint})
        signature = signature.model_copy(update={"chunks": summary})
    if loaded.folder.file(TRAIN_COUNTS).exists():
        counts = np.zeros(len(larger), dtype=np.int64)
        counts[larger.encode(loaded.vocabulary.tokens)] = loaded.train_counts
        changed[TRAIN_COUNTS] = counts_text(counts)
    changed[SIGNATURE] = (signature.model_dump_json(indent=1) + "\n").encode()
    return {**loaded.folder.kept(), **changed, EXTENDED: to_json(report.model_dump(mode="json"))}
