"""A trained run in a notebook, with the commands as methods."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import torch

from sememekit.analysis.analyze import analyze
from sememekit.analysis.analyze_labels import analyze_labels
from sememekit.analysis.explanations.label import explain_label
from sememekit.analysis.explanations.lattice import explain_embeddings, explain_lattice
from sememekit.analysis.explanations.words import explain as explain_words
from sememekit.analysis.explanations.written_text import explain_writing
from sememekit.analysis.score import OverlaidToken, OverlaySums, ScoredToken, score
from sememekit.analysis.senses.tagging import header_of, tag
from sememekit.config.settings import checked_arguments
from sememekit.errors import ConfigError, DataError
from sememekit.measure import Tally
from sememekit.reports import analysis, explanation
from sememekit.reports.table import Shown, Table
from sememekit.runs.classifier import load_classifier
from sememekit.runs.lattices import Decoding, open_reader, segment_lines
from sememekit.runs.plan import KIND_NAMES
from sememekit.runs.published import PublishedRun, is_published
from sememekit.runs.run import Run as OpenRun
from sememekit.runs.writing import load_writer, search_of, write_texts
from sememekit.tasks.base import Kind, Task

Lines = str | Iterable[str]  # a text with a sentence or paragraph a line, or its lines


class Run(OpenRun):
    """A trained run with methods for its questions; ``load_run`` opens one.

        from sememekit import load_run

        run = load_run("runs/sdlm")                 # a folder that train wrote
        run.perplexity("去年 美国 贸易 逆差")        # a number
        run.next_words("去年 美国", top=5)          # a table of words, probabilities and senses
        run.explain("去年 美国")                    # the page of ``sememekit explain``

    Each method names its kinds of runs. Words are separated by blanks; Chinese without blanks is segmented like the data of the
    run. Loading does not change torch's generators; ``device`` sets threads and precision by the run's settings."""

    @cached_property
    def _loaded(self) -> tuple[Task, str, str]:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            return super()._loaded

    def __repr__(self) -> str:
        kinds = " and ".join(name for kind, name in KIND_NAMES.items() if kind in self.kinds)
        return f"Run({str(self.path)!r}: {kinds or 'a model'}, {len(self.vocabulary):,} words)"

    def perplexity(self, text: Lines) -> float:
        """Return the perplexity of a text. For models that predict words, lattice models, and, with lines ``source TAB
        target``, models of headlines or dialogue.

        Lines are read separately, and unknown words count as ``<unk>``. ``evaluate_ppl`` computes the perplexity of prepared
        data by docs/perplexity.md, with the state carried from line to line. Raises DataError: nothing to predict, or
        unsegmented Chinese for a run on data with blanks between words."""
        if "lattices" in self.kinds:
            total = open_reader(self, "run.perplexity").tally(_lines("perplexity", text))
        else:
            self._kind("perplexity", "words", "texts")
            nats = [row.nats for row in self._scored("perplexity", text) if row.nats is not None]
            total = Tally(sum(nats), len(nats))
        if not total.count:
            raise DataError(
                "perplexity: the text has no word that could be predicted; give at least two words (lattice models: one)"
            )
        return total.perplexity

    def score(
        self, text: Lines, *, overlay: Path | str | None = None, carry: bool = False, segment: bool | None = None
    ) -> Table:
        """Return the nats (surprisal) of each word, None for a first word without context. For models that predict words and,
        with lines ``source TAB target``, models of headlines or dialogue. Errors as ``perplexity``.

        Args:
            overlay: a file from ``lookup --change``; the nats with it are a further column, and both sums are in the title.
            carry: read the lines as one text, as ``evaluate_ppl`` does.
            segment: segment the lines like the data of the run (default: only Chinese without blanks)."""
        kind = self._kind("score", "words", "texts")
        options = {"overlay": overlay, "carry": carry, "segment": segment}
        rows = self._scored("score", text, **self._checked("score", kind, options, Run.score))
        columns = ["line", "position", "word", "read as", "nats", *(["nats with overlay"] if overlay is not None else [])]
        cells = [
            (row.sentence, row.position, row.token, row.read_as, row.nats)
            + ((row.nats_overlay,) if isinstance(row, OverlaidToken) else ())
            for row in rows
        ]
        table = Table(columns, cells)
        if overlay is None or not cells:
            return table
        sums = OverlaySums(*(sum(nats or 0.0 for nats in table.column(name)) for name in columns[-2:]))
        return Table(columns, cells, sums.sentence(overlay))

    def next_words(self, context: str, top: int = 10) -> Table:
        """Return the most probable next words, with their most probable sense if the model has senses. For models that predict
        words. Errors as ``sememekit.analysis.explanations.words.explain``."""
        kind = self._kind("next_words", "words")
        _check_texts("next_words", "a string, the words of a context", context)
        found = explain_words(self, context, **self._checked("next_words", kind, {"top": top}, explain_words))
        with_senses = any(word.senses for word in found.words)
        rows = []
        for word in found.words:
            best = word.senses[0] if word.senses else None
            sememes = "" if best is None else " ".join(item.name for item in best.sememes)
            senses = (None, None, None) if best is None else (best.title, sememes, best.share)
            rows.append((word.word, word.probability, *(senses if with_senses else ())))
        columns = ("word", "probability", *(("sense", "sememes", "share") if with_senses else ()))
        return Table(columns, rows, " ".join(word.read_as for word in found.context) + " …")

    def explain(self, text: str, *others: str, **options: Any) -> Shown[Any]:
        """Explain a prediction, as the page of ``sememekit explain``. For all kinds of models.

        Args:
            text: a context, the text to write for, a raw sentence, or the text to classify; ``others`` are further texts of an
                example.
            options: of the function of the kind, such as ``top``, ``top_sememes``, ``label``. The functions are in
                ``sememekit.analysis.explanations``: ``words.explain``, ``label.explain_label``,
                ``written_text.explain_writing``, ``lattice.explain_lattice``. With ``embeddings=True`` of a lattice model the
                text has words, and the options are from ``lattice.explain_embeddings``.

        Raises ConfigError: an unknown option, or a value of another type or out of range; other errors as the function."""
        kind = self._kind("explain", *EXPLAINERS)
        _check_texts("explain", "a string for each text", text, *others)
        more = [_of_lattices] if kind == "lattices" else []
        asked = {name: options[name] for name in ("embeddings",) if more and name in options}
        embeddings = self._checked("explain", kind, asked, *more).get("embeddings", False)
        function = EXPLAINERS[kind][1 if embeddings else 0]
        given = self._checked("explain", kind, options, function, *more)
        given.pop("embeddings", None)
        if kind == "labels":
            return explanation.shown(function(self, [text, *others], **given))
        if others:
            raise ConfigError(f"explain: {self.path} takes one text, given {1 + len(others)}")
        return explanation.shown(function(self, text.split() if embeddings else text, **given))

    def analyze(self, other: OpenRun | Path | str | None = None, **options: Any) -> Shown[Any]:
        """Return the page of ``sememekit analyze``: rank and divergence of word predictions, or what moves the labels of a
        classifier; with an ``other`` run also the differences.

        ``other`` is of the same kind; ``options`` are of ``sememekit.analysis.analyze.analyze`` or
        ``sememekit.analysis.analyze_labels.analyze_labels``."""
        kind: Kind = "labels" if "labels" in self.kinds else "words"
        function = ANALYZERS[kind]
        second = None if other is None else OpenRun.open(other, which=self._which, device=self.settings.device)
        report = function(self, second, **self._checked("analyze", kind, options, function))
        return Shown(report, analysis.LABELS if kind == "labels" else analysis.WORDS)

    def tag(self, text: Lines, **options: Any) -> Table:
        """Return the most probable sense of each word with probability and sememes, and the word's nats. For models that
        predict words. The title has the accuracy of the method, if ``eval --senses`` measured it. ``options``: ``words`` (only
        these are tagged), ``method`` and ``sources`` of ``sememekit.analysis.senses.tagging.tag``."""
        given = self._checked("tag", self._kind("tag", "words"), options, tag)
        rows = [*tag(self, _lines("tag", text), **given)]
        cells: list[tuple[Any, ...]] = []
        for row in rows:
            best = row.senses[0] if row.senses else None
            own = (None, None, None) if best is None else (best.number, best.probability, " ".join(best.sememes))
            cells.append((row.sentence, row.position, row.token, row.nats, *own))
        columns = ("line", "position", "word", "nats", "sense", "probability", "sememes")
        header = header_of(self, given.get("method", "combined"), given.get("sources", ()))
        return Table(columns, cells, "; ".join(header.sentences()))

    def segment(self, text: Lines, decoding: Decoding = "viterbi") -> list[str] | list[list[str]]:
        """Segment a raw text. For lattice models. A string gives a list of words, several lines a list for each.

        ``run.segmenter().segment(text)`` segments like the data, for any run."""
        self._kind("segment", "lattices")
        lines = [text] if isinstance(text, str) else _lines("segment", text)
        found = list(segment_lines(open_reader(self, "run.segment"), lines, decoding))
        return found[0] if isinstance(text, str) else found

    def generate(self, prompt: str = "", **options: Any) -> "Generated":
        """Write a text that continues the prompt, or answers it. For models of words, headlines or dialogue.

        ``prompt`` has words to begin with, or the source text. ``options``: ``num_tokens``, ``temperature``, ``top_k``,
        ``top_p``, ``stop``, ``beam``, ``seed`` (1), ``unknown``; for headlines and dialogue ``overrides``, such as
        ``["task.search.beam_size=10"]``, and ``apart`` for words between blanks, which are not segmented."""
        from sememekit.runs.generation import generate

        kind = self._kind("generate", "texts", "words")
        _check_texts("generate", "a string, the prompt or the source text", prompt)
        if kind == "words":
            report = generate(self, prompt, **self._checked("generate", kind, options, generate))
            return Generated(report.text, report)
        return self._written(prompt, **self._checked("generate", kind, options, Run._written))

    def _written(self, prompt: str, *, overrides: Sequence[str] = (), apart: bool = False) -> "Generated":
        writer = load_writer(self, apart=apart)
        written = next(iter(write_texts(writer, [prompt], search_of(writer.task, overrides), "the text, line")))
        return Generated(written.best.text, written)

    def predict(self, texts: Sequence[str | Sequence[str]]) -> Table:
        """Return the most probable label of each example, and all label probabilities. For classifiers. ``texts`` has a string
        for each example, or a tuple of strings."""
        self._kind("predict", "labels")
        if isinstance(texts, str):  # else each character would be an example
            raise TypeError(f"run.predict takes a list of texts, given a string; for one text: run.predict([{texts[:40]!r}])")
        given = list(texts) if isinstance(texts, Iterable) else [texts]
        wanted = "a list with a string for each example, or with a tuple of strings"
        _check_texts("predict", wanted, *(part for one in given for part in (one if isinstance(one, list | tuple) else [one])))
        classifier = load_classifier(self)
        classifier.check(given, "predict")
        rows = [
            (text if isinstance(text, str) else " / ".join(text), classifier.labels[int(values.argmax())], *values.tolist())
            for text, values in zip(given, classifier.probabilities(given), strict=True)
        ]
        return Table(("text", "label", *classifier.labels), rows)

    def _kind(self, method: str, *allowed: Kind) -> Kind:
        """Return the first kind of this run that supports the method. Raises ConfigError: no kind does."""
        found = next((kind for kind in KIND_NAMES if kind in allowed and kind in self.kinds), None)
        if found is None:
            wanted = " or ".join(KIND_NAMES[kind] for kind in KIND_NAMES if kind in allowed)
            own = " and ".join(KIND_NAMES[kind] for kind in KIND_NAMES if kind in self.kinds) or "of another kind"
            can = ", ".join(sorted(name for name, kinds in METHODS.items() if kinds & self.kinds)) or "none"
            raise ConfigError(f"{method} needs {wanted}, and {self.path} is {own}; what it can be asked: {can}")
        return found

    def _checked(self, method: str, kind: Kind, options: Mapping[str, Any], *functions: Callable[..., Any]) -> dict[str, Any]:
        """Return checked options for the functions. Raises ConfigError: as ``config.checked_arguments``."""
        return checked_arguments(f"run.{method} of {self.path}, {KIND_NAMES[kind]}", options, *functions)

    def _scored(self, method: str, text: Lines, **options: Any) -> Sequence[ScoredToken]:
        """Return the tokens of a text for a method, with an overlay also their nats with it."""
        return list(score(self, _lines(method, text), name="the text, line", **options))


EXPLAINERS: Final[Mapping[Kind, Sequence[Callable[..., Any]]]] = {
    "labels": (explain_label,),
    "texts": (explain_writing,),
    "lattices": (explain_lattice, explain_embeddings),
    "words": (explain_words,),
}
"""Kind of run -> the functions of ``explain``."""

ANALYZERS: Final[Mapping[Kind, Callable[..., Any]]] = {"labels": analyze_labels, "words": analyze}  # of each kind of run

METHODS: Final[Mapping[str, frozenset[Kind]]] = {
    "perplexity": frozenset({"words", "texts", "lattices"}),
    "score": frozenset({"words", "texts"}),
    "next_words": frozenset({"words"}),
    "tag": frozenset({"words"}),
    "explain": frozenset(EXPLAINERS),
    "analyze": frozenset({"labels", "words", "texts"}),
    "segment": frozenset({"lattices"}),
    "generate": frozenset({"words", "texts"}),
    "predict": frozenset({"labels"}),
}
"""Method -> the kinds of runs that have it."""


class Generated(str):
    """A text that a model wrote; ``report`` has its words and nats."""

    report: Any

    def __new__(cls, text: str, report: Any = None) -> "Generated":  # pickle and copies set the report themselves
        written = super().__new__(cls, text)
        written.report = report
        return written


class Published(PublishedRun, Run):
    """A model of Hugging Face with the methods of a run that predicts words."""


def load_run(path: Path | str, *, data: Path | None = None, **options: Any) -> Run:
    """Open the folder of a run; see ``Run.open`` for ``which``, ``device``, ``dtype``, ``trust_code`` and ``overlay``.

    ``hf:PATH`` opens a model of Hugging Face with ``sources``, ``device``, ``dtype`` and ``data``, as ``PublishedRun``."""
    given = checked_arguments("load_run", options, Run.open)
    if not is_published(path):
        return Run.open(path, **given)
    return Published(str(path), data, **{name: one for name, one in given.items() if one is not None and name != "which"})


def explain(run: OpenRun | Path | str, text: str, *others: str, **options: Any) -> Shown[Any]:
    """``run.explain`` of a run or of its folder."""
    return (run if isinstance(run, Run) else Run.open(run)).explain(text, *others, **options)


def _of_lattices(*, embeddings: bool = False) -> None:
    """Declare the arguments of ``explain`` for a lattice model, beside the options of its two functions."""


def _lines(method: str, text: Lines) -> list[str]:
    """Split a text at LF. Raises TypeError: a number, bytes or the path of a file."""
    if isinstance(text, str):
        text = text.removesuffix("\n").split("\n") if text else []
    lines = list(text) if isinstance(text, Iterable) and not isinstance(text, bytes) else [text]
    _check_texts(method, "a string with a sentence a line, or a list of strings", *lines)
    return [line.removeprefix("\ufeff") for line in lines]


def _check_texts(method: str, wanted: str, *texts: object) -> None:
    """Raise TypeError for the first text that is not a string, DataError for a NUL character."""
    if number := next((place for place, text in enumerate(texts, start=1) if isinstance(text, str) and "\0" in text), 0):
        raise DataError(f"run.{method}: a NUL in text {number}; clean it, such as with: text.replace('\\0', ' ')")
    other = next((text for text in texts if not isinstance(text, str)), "")
    if not isinstance(other, str):
        raise TypeError(f"run.{method} takes {wanted}, given {other!r:.80} ({type(other).__name__})")
