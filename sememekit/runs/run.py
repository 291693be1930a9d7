"""A trained run as one object: its model, its data and graph, and the questions that it answers."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from sememekit.config import Record, check_table, read_settings, trusting_code
from sememekit.data.prepared import VOCABULARY, PreparedData
from sememekit.data.segmenters import recorded_segmenter, words_of_pieces
from sememekit.decoders.contract import check_own_decoders
from sememekit.decoders.even_senses import EvenSenses
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import read_text, typed
from sememekit.runs.build import ENCODER, ModelParts, build_task, labels_of, prepare_torch
from sememekit.runs.overlay import check_reads_graph, overlaid
from sememekit.runs.plan import Plan, plan_of_run
from sememekit.sememes import SememeGraph, Side, build_graph, open_lexicons
from sememekit.sememes.overlay import ChangedSense
from sememekit.tasks.base import Kind, Task, WordPredictor, require
from sememekit.text.chunks import CHUNKS, ChunkVocabulary
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Segmenter
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunFolder, RunSettings, autocast
from sememekit.training.divergence import first_bad_weight
from sememekit.training.manifest import EXTENDED
from sememekit.word_classes.file import read_clusters

GRAPH = "graph.json"
CLUSTERS = "clusters.json"
SIGNATURE = "data.json"
TRAIN_COUNTS = "train-counts.txt"

Which = Literal["best", "last"]  # weights of a run: the best by validation, or the last


class OfRun(Record):
    """Base of the reports on one run."""

    run: str
    """The folder of the run; for a server, its name."""
    checkpoint: str
    """Name of the snapshot that was read."""


class Run:
    """A trained run; use :meth:`open`. Only its folder is read.

        run = Run.open("runs/sdlm")
        run.kinds                       # {"words"}: what can be asked of its model
        run.task.score(run.data().tokens("test"))
        run.vocabulary.encode(run.segmenter().segment("天地人和"))

    Opening compares the files with the manifest and reads plan, words and signature. The weights are read when
    ``task`` is first asked for, and the graph likewise. ``signature`` says how its data were made; ``settings`` has the run
    settings of the plan, with the requested device and dtype."""

    _unchanged: "Run | None" = None  # the run whose weights a run with an overlay takes

    def __init__(
        self,
        folder: RunFolder,
        plan: Plan,
        vocabulary: Vocabulary,
        which: Which,
        settings: RunSettings,
        trust_code: bool,
        overlay: Path | None = None,
        sources: Sequence[str] = (),
    ) -> None:
        self.folder, self.plan, self.vocabulary, self.settings = folder, plan, vocabulary, settings
        self.signature = folder.data_signature()
        self._which: Which = which
        self._trust_code, self._overlay, self._sources = trust_code, overlay, (*sources,)
        if sources and (overlay is not None or plan.decoder is None):
            raise ConfigError(f"{self}: --source takes a model of words without --overlay; leave --source out")

    @classmethod
    def open(
        cls,
        path: "Path | str | Run",
        *,
        which: Which | None = None,
        device: str | None = None,
        dtype: str | None = None,
        trust_code: bool = False,
        overlay: Path | str | None = None,
        sources: Sequence[str] | None = None,
    ) -> Self:
        """Open the folder of a run.

        Args:
            path: the folder, or an open run, whose plan and words are reused; the run itself if nothing differs.
            which: the best weights by validation, or the last; default: the best, or as the open run has them.
            device: ``auto``, ``cpu`` or ``cuda``; default: ``auto``, or as the open run has it.
            dtype: of matrix products; default: as in training, or as the open run has it.
            trust_code: load custom classes that the folder names, as ``config.trusting_code`` does for a block.
            overlay: a file of ``sememes.overlay``; its changes apply to ``graph`` and the model, without training.
            sources: lexicons (``FORMAT:PATH``) in place of the run's graph; the senses of a word share its probability evenly
                (``decoders.even_senses``), whatever the output layer.

        Raises CheckpointError: the folder is no run, is torn, or mixes files of several runs. Raises ConfigError: it names
        untrusted or missing code, or ``which``, ``device`` or ``dtype`` is unknown."""
        if which is not None and which not in get_args(Which):
            raise ConfigError(f"which={which!r}: allowed are {' and '.join(get_args(Which))}")
        if isinstance(path, Run):
            which, device, dtype = which or path._which, device or path.settings.device, dtype or path.settings.dtype
            folder, plan, vocabulary = path.folder, path.plan, path.vocabulary
            trust_code |= path._trust_code
            overlay = path._overlay if overlay is None else overlay
            sources = path._sources if sources is None else sources
        else:
            folder = RunFolder.open(Path(path))
            with trusting_code(trust_code):
                check_table(folder.plan, f"{path}/plan.json")
                plan = plan_of_run(folder)
            vocabulary = vocabulary_of_run(folder)
        which, device = which or "best", device or "auto"
        given = {"device": device, "dtype": plan.run.dtype if dtype is None else dtype}
        settings = read_settings(RunSettings, {**plan.run.model_dump(), **given}, f"{path} [run]")
        changes = None if overlay is None else Path(overlay)
        seen = (*(sources or ()),)
        own = (path.settings, path._which, path._overlay, path._sources) if isinstance(path, Run) else None
        if isinstance(path, cls) and own == (settings, which, changes, seen):
            return path
        return cls(folder, plan, vocabulary, which, settings, trust_code, changes, seen)

    def with_overlay(self, overlay: Path | str) -> Self:
        """The same run with the changes of a file of ``sememes.overlay``, as in ``open``. The weights belong to this run,
        also if the training of its folder has continued."""
        _ = self.parts  # read once, for both
        made = copy(self)
        made._overlay, made._unchanged = Path(overlay), self
        for name in ("graph", "_overlaid", "_loaded"):
            made.__dict__.pop(name, None)
        return made

    def with_more_words(self, vocabulary: Vocabulary, graph: SememeGraph | None, task: Task) -> "Run":
        """Return the same run with a larger vocabulary, its model and its graph; the folder stays unchanged."""
        made = copy(self)
        made.__dict__.update(vocabulary=vocabulary, graph=graph, stored_graph=graph, _loaded=(task, *self._loaded[1:]))
        return made

    def __str__(self) -> str:
        return str(self.path)

    @property
    def of_run(self) -> dict[str, Any]:
        """The fields of ``OfRun``."""
        return {"run": str(self), "checkpoint": self.snapshot}

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def kinds(self) -> frozenset[Kind]:
        """The questions that its model answers: see ``Task.kinds``."""
        return self.plan.task_class.kinds

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels of its data by id; none for a stream of words."""
        return labels_of(self.signature)

    @cached_property
    def graph(self) -> SememeGraph | None:
        """The sememe graph of the run with the overlay, or the graph of the lexicons, or None."""
        if self._sources:
            return self.annotated(self._sources)
        return self.stored_graph if self._overlay is None else self._overlaid[0]

    def annotated(self, sources: Sequence[str], side: Side = "chinese") -> SememeGraph:
        """Return the senses of its vocabulary in lexicons; pieces inside words have none."""
        return build_graph(self.vocabulary, open_lexicons(sources, side), words=self._words_of_pieces())

    def _words_of_pieces(self) -> Mapping[str, str | None]:
        return words_of_pieces(self.signature, self.vocabulary.tokens)

    @cached_property
    def stored_graph(self) -> SememeGraph | None:
        """The sememe graph of the run without the overlay, or None."""
        file = self.folder.file(GRAPH)
        return SememeGraph.load(file) if file.exists() else None

    @property
    def changed_senses(self) -> tuple[ChangedSense, ...]:
        """The senses that the overlay changes; empty without an overlay."""
        return () if self._overlay is None else self._overlaid[1]

    @cached_property
    def _overlaid(self) -> tuple[SememeGraph, tuple[ChangedSense, ...]]:
        assert self._overlay is not None
        return overlaid(self.path, self.stored_graph, self.vocabulary, self._overlay)

    @cached_property
    def clusters(self) -> NDArray[np.int64] | None:
        """(V,) the word clusters from its file, or None."""
        file = self.folder.file(CLUSTERS)
        return read_clusters(file, self.vocabulary) if file.exists() else None

    @cached_property
    def chunks(self) -> ChunkVocabulary | None:
        """Words and n-grams of its data, or None. Raises CheckpointError: the run's data have others."""
        file = self.folder.file(CHUNKS)
        if not file.exists():
            return None
        chunks, signed = ChunkVocabulary.load(file, self.vocabulary), self.signature.chunks
        if signed is not None:
            _check_fingerprint(file, chunks.fingerprint, signed.fingerprint)
        return chunks

    @cached_property
    def train_counts(self) -> NDArray[np.int64]:
        """(V,) occurrences of each word in the training text (default: the vocabulary's counts)."""
        file = self.folder.file(TRAIN_COUNTS)
        if not file.exists():
            return self.vocabulary.counts
        lines = read_text(file, CheckpointError).split()
        if len(lines) != len(self.vocabulary) or not all(line.isdecimal() and len(line) < 19 for line in lines):
            raise CheckpointError(
                f"{file} must have one count for each of the {len(self.vocabulary):,} words of {VOCABULARY}; it was changed "
                "after it was written; copy the folder again from where it came from"
            )
        return np.array(lines, dtype=np.int64)

    @property
    def counted(self) -> str:
        """The splits that ``train_counts`` counts, or "the vocabulary"."""
        splits = ("train",) if self.folder.file(TRAIN_COUNTS).exists() else self.signature.vocabulary_splits
        return ", ".join(splits or ()) or "the vocabulary"

    @cached_property
    def kept(self) -> bytes | None:
        """The bytes that its encoder stored with the run, or None."""
        file = self.folder.file(ENCODER)
        return file.read_bytes() if file.exists() else None

    @property
    def parts(self) -> ModelParts:
        """The parts of its model beside the plan."""
        graph = self.stored_graph if self._sources else self.graph
        return ModelParts(self.vocabulary, graph, self.clusters, self.labels, self.chunks, self.kept)

    @cached_property
    def device(self) -> torch.device:
        """The device of the computation. Sets threads and precision of this process; ConfigError: no CUDA."""
        return prepare_torch(self.settings)

    @cached_property
    def _loaded(self) -> tuple[Task, str, str]:
        with trusting_code(self._trust_code):
            task = build_task(self.plan, *self.parts)
            if self._overlay is not None:
                check_reads_graph(self.plan, task, self.path)
        if self._unchanged is not None:
            load_weights(task, self._unchanged.task.state_dict(), self.path)
            return task.to(self.device).eval(), *self._unchanged._loaded[1:]
        snapshot = self.folder.load(self._which, with_trainer=False)
        load_weights(task, snapshot.weights, self.path)
        if (name := first_bad_weight(task)) is not None:
            raise CheckpointError(
                f"{self.path}: its {self._which} checkpoint ({snapshot.name}) is of a training that diverged: {name} holds "
                "values that are not finite, so its results mean nothing; train again with a lower rate "
                "(--set optimizer.learning_rate=R)"
            )
        check_own_decoders(task)
        self._see(task)
        return task.to(self.device).eval(), snapshot.name, snapshot.sha256

    def _see(self, task: Task) -> None:
        """Make the output layer give the senses of the lexicons, if there are any."""
        if self._sources:
            assert self.graph is not None
            task.decoder = EvenSenses(require(task, WordPredictor, "--source").decoder, self.graph)

    def load(self) -> "Run":
        """Read the weights now, not at the first use of ``task`` or ``snapshot``. Raises CheckpointError: the snapshot is
        absent or torn, does not fit the plan, or is of a training that diverged."""
        _ = self._loaded
        return self

    @property
    def task(self) -> Task:
        """The model in evaluation mode on ``device``; errors as ``load``."""
        return self._loaded[0]

    @property
    def snapshot(self) -> str:
        """The name of the snapshot with the weights of ``task``."""
        return self._loaded[1]

    @property
    def weights_sha256(self) -> str:
        """The SHA-256 of the weights file, which identifies the training; the name of a snapshot has only the step."""
        return self._loaded[2]

    def autocast(self) -> AbstractContextManager[object]:
        """Compute matrix products in the dtype of ``settings`` inside the block."""
        return autocast(self.device, self.settings.dtype)

    def data(self, given: Path | str | None = None) -> PreparedData:
        """The prepared data of its training, or the ``given`` data; DataError if they are absent or have another vocabulary.

        A relative path of the training is looked for in the working folder, then in each folder above the run."""
        folder = Path(given if given is not None else self.plan.data.path)
        if given is None and not folder.is_dir():
            beside = (parent / folder for parent in self.path.resolve().parents)
            folder = next((one for one in beside if one.is_dir()), folder)
        if given is None and not folder.is_dir():
            raise DataError(f"{self.path} was trained on {folder}, which is not there; say where it is with --data DIR")
        prepared = PreparedData.open(folder)
        if prepared.vocabulary.fingerprint != self.vocabulary.fingerprint:
            again = typed("sememekit", "extend", "RUN", "--against", self.path, "--data", "DATA")
            extended = f"; words were added to this run: compare it with the run before by: {again}"
            raise DataError(
                f"{self.path} was trained on the vocabulary {self.vocabulary.fingerprint} "
                f"({len(self.vocabulary):,} words), but {folder} has {prepared.vocabulary.fingerprint} "
                f"({len(prepared.vocabulary):,} words); give data of the same vocabulary with --data DIR, or train on these"
                + (extended if self.folder.file(EXTENDED).is_file() else "")
            )
        return prepared

    def segmenter(self) -> Segmenter:
        """Return the segmenter of its data, opened once; errors as ``recorded_segmenter``."""
        return self._segmenter

    @cached_property
    def _segmenter(self) -> Segmenter:
        return recorded_segmenter(self.signature, self.folder.file(SIGNATURE))

    def form(self) -> TextForm:
        """The form of its text (lower case, half width, a word for numbers, ...), to which other text must be converted."""
        return TextForm.recorded(self.signature.options, self.signature.normalisation)

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """Return the result of ``make``, computed from the run; a served run never changes and caches the result by name."""
        return make()


def counts_text(counts: NDArray[np.int64]) -> bytes:
    """Write ``TRAIN_COUNTS``: a count a line, by id."""
    return "".join(f"{count}\n" for count in counts.tolist()).encode()


def vocabulary_of_run(folder: RunFolder) -> Vocabulary:
    """Read the words of a run. Raises CheckpointError: its data have other words."""
    vocabulary = Vocabulary.load(folder.file(VOCABULARY))
    _check_fingerprint(folder.file(VOCABULARY), vocabulary.fingerprint, folder.data_signature().vocabulary)
    return vocabulary


def _check_fingerprint(file: Path, found: str, signed: str) -> None:
    if found != signed:
        raise CheckpointError(
            f"{file} has the fingerprint {found}, and data.json beside it names {signed}; one of them was changed or taken "
            "from another run; copy the folder again from where it came from"
        )


def load_weights(task: Task, weights: Mapping[str, torch.Tensor], path: Path, remedy: str = "was plan.json changed?") -> None:
    """Load weights into a model; CheckpointError names the first tensor that does not fit, and ends with ``remedy``."""
    try:
        task.load_state_dict(dict(weights))
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if len(str(error).splitlines()) > 1 else str(error)
        raise CheckpointError(f"{path}: the weights do not fit the plan ({first}); {remedy}") from None
