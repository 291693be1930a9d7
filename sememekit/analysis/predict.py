"""``sememekit predict``: the labels of texts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path

from sememekit.config import Record
from sememekit.corpora.examples import Row
from sememekit.corpora.examples.labelled import opened
from sememekit.corpora.examples.rows import Opened, RowReader
from sememekit.errors import DataError
from sememekit.runs.classifier import Classifier, load_classifier
from sememekit.runs.extend import with_open_vocabulary
from sememekit.runs.run import OfRun, Run
from sememekit.sememes import Side
from sememekit.text.reading import FaultCounter

MoreWords = Callable[[Run, set[str]], Run]  # a run, and the words of a text -> the run extended by the words that it can get


class LabelPrediction(Record):
    """The most probable label of an example (``line`` of the input, from 1), and the probability of each label."""

    line: int
    """Line of the input, from 1."""
    label: str
    """The most probable label."""
    probabilities: dict[str, float]
    """Label -> probability."""


class PredictionReport(OfRun):
    """All predictions of a call; ``added``: unknown words that are read by their sememes."""

    labels: tuple[str, ...]
    """The labels of the classifier."""
    predictions: tuple[LabelPrediction, ...]
    """A prediction for each example, in order."""
    added: tuple[str, ...] = ()
    """Unknown words that are read by their sememes."""


class Predictions:
    """Predictions in the order of a file, which is read lazily.

    ``added`` are words that only a lexicon knows, which the run reads by their sememes; ``header``: whether the first line of
    the file names its columns, set by the first prediction; ``lines``: number of lines read so far."""

    def __init__(self, classifier: Classifier, file: Path | None, errors: str, more: MoreWords | None = None) -> None:
        self.classifier = classifier
        self.added: set[str] = set()
        self.header = False
        self.lines = 0
        self._more = more
        self._file, self._faults = file, FaultCounter(errors)

    def __iter__(self) -> Iterator[LabelPrediction]:
        """Yield a prediction for each line but blank ones, 1,024 read at once. Raises DataError: a line that is no example."""
        kind = self.classifier.kind
        labels = {*self.classifier.labels, *kind.spelled, *kind.left_out}
        with nullcontext([Opened(None, "stdin")]) if self._file is None else opened(self._file, kind, self._faults) as files:
            reader = RowReader(files, kind, self._faults, labels)
            rows = iter(reader)
            while block := list(islice(rows, 1024)):
                self.header, self.lines = reader.header is not None, reader.lines
                yield from self._of(block, files[0].name)
            self.header, self.lines = reader.header is not None, reader.lines

    def _of(self, rows: Sequence[Row], name: str) -> Iterator[LabelPrediction]:
        texts, labels = self.classifier.texts, self.classifier.labels
        for row in rows:
            empty = [title for title, text in zip(texts, row.texts, strict=True) if not text]
            if empty:
                raise DataError(f"{name}:{row.line}: the {empty[0]} is empty; give at least one word")
        classifier = self.classifier
        if self._more is not None:
            words = {word for row in rows for text in row.texts for word in classifier.words(text)}
            classifier = load_classifier(self._more(classifier.run, words))
            self.added |= words & set(classifier.run.vocabulary.tokens) - set(self.classifier.run.vocabulary.tokens)
        classifier.check([row.texts for row in rows], name)
        probabilities = classifier.probabilities([row.texts for row in rows])
        for row, values in zip(rows, probabilities, strict=True):
            of_label = dict(zip(labels, values.tolist(), strict=True))
            yield LabelPrediction(line=row.line, label=labels[int(values.argmax())], probabilities=of_label)


def predict(
    run: Path | Run,
    file: Path | None = None,
    *,
    errors: str = "strict",
    open_vocabulary: Sequence[str] = (),
    side: Side = "chinese",
    lemmas: str | None = None,
) -> Predictions:
    """Labels of the texts of a file or of stdin; arguments as ``sememekit predict --help``, errors as ``load_classifier``.

    ``open_vocabulary``: lexicons for unknown words, as the sources of ``with_open_vocabulary``."""
    more = partial(with_open_vocabulary, sources=open_vocabulary, side=side, lemmas=lemmas) if open_vocabulary else None
    return Predictions(load_classifier(run), file, errors, more)
