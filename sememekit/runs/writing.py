"""Models that write a text for a source (headlines, dialogue): loading, and beam search over the lines of a file."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from sememekit.config import Record, apply_overrides, read_settings
from sememekit.errors import ConfigError, DataError
from sememekit.runs.run import Run
from sememekit.runs.uncut import how_to_cut, refuse_unknown, warn_uncut
from sememekit.search import BeamSettings, Hypothesis
from sememekit.tasks.base import require
from sememekit.tasks.writing import TextWriter, hypothesis_words
from sememekit.text.form import without_ends
from sememekit.text.segmenters import Segmenter

_LINES_AT_ONCE: Final = 1024
_MARK: Final = re.compile(r"<[^<>\s]+>")


class Found(Record):
    """A text that the beam search found."""

    text: str
    """The words with blanks between; the settings of the search determine the handling of ``<unk>``."""
    words: tuple[str, ...]
    """Its words."""
    score: float
    """Log-probability in nats / length ** penalty, which ranks the beam; higher is better."""
    nats: float
    """Summed negative log-probability, including the end if it was predicted."""
    ended: bool
    """True if the end was predicted; otherwise the text was cut at the maximum length."""


class WrittenText(Record):
    """The texts that a model wrote for one line (from 1): the best, and further ones if requested."""

    line: int
    """Line of the input, from 1."""
    best: Found
    """The best text."""
    others: tuple[Found, ...]
    """Further texts, if they were requested."""
    unknown: tuple[str, ...]
    """Words of the line that the model does not know, each once."""
    source_words: int
    """Number of words of the line."""
    read_words: int
    """Number of words, from the first, that the model read."""


class Writer(NamedTuple):
    """A trained model that writes a text for a source.

    >>> writer = load_writer(Path("runs/headlines"))
    >>> search = search_of(writer.task, ["task.search.beam_size=10"])
    >>> [written.best.text for written in write_texts(writer, ["一篇文章"], search)]"""

    run: Run
    task: TextWriter
    segmenter: Segmenter | None  # segmenter of the training data; None if texts have blanks between words

    def words(self, text: str) -> list[str]:
        """Return the words of a text, cut as the training data; words of the vocabulary such as ``<unk>`` stay whole."""
        text = self.run.form().text(without_ends(text))
        if self.segmenter is None:
            return text.split()
        words: list[str] = []
        begin = 0
        for mark in _MARK.finditer(text):
            if mark[0] in self.run.vocabulary:
                words += [*self.segmenter.segment(text[begin : mark.start()]), mark[0]]
                begin = mark.end()
        return words + self.segmenter.segment(text[begin:])

    def read(self, text: str, where: str) -> list[str]:
        """The words of a text; DataError, naming ``where``, if the text is empty or too long for the model."""
        words = self.words(text)
        self.task.check_source(len(words), where)
        return words

    def warn_uncut(self, unknown: Sequence[str]) -> bool:
        """Warn about unsegmented Chinese among unknown words; return whether there is any."""
        return warn_uncut(unknown, how_to_cut(self.run, apart=self.segmenter is None))


def words_read(run: Run, words: int) -> int:
    """Return the number of words that a model reads of a source of ``words`` words: all, or at most ``task.read_words``."""
    return min(words, int(run.plan.table()["task"].get("read_words", 0)) or words)


def told_of_cut(cut: int, sources: int, words: int) -> str:
    """Return the remark that ``cut`` of the sources had more words than the model reads."""
    were, their = ("was", "its") if cut == 1 else ("were", "their")
    of = f"{cut:,} of {sources:,} source{'' if sources == 1 else 's'}"
    return f"{of} {were} cut to {their} first {words:,} words (task.read_words)"


def load_writer(run: Path | Run, *, apart: bool = False, command: str = "generate") -> Writer:
    """Load a trained model that writes texts; errors name the ``command``. With ``apart`` texts have blanks between words and
    are not segmented. Raises ConfigError: the model writes no texts. Raises DataError: the segmenter of its data is missing."""
    loaded = Run.open(run)
    return Writer(loaded, require(loaded.task, TextWriter, command), None if apart else loaded.segmenter())


def search_of(task: TextWriter, overrides: Sequence[str] = (), preset: Mapping[str, Any] | None = None) -> BeamSettings:
    """Return the settings of the beam search: the run's, then the ``preset`` of the data, then ``task.search.KEY=VALUE``
    overrides. Raises ConfigError: other or contradicting overrides."""
    table = apply_overrides({"task": {"search": {**task.search.model_dump(), **(preset or {})}}}, overrides)
    other = [f"{slot}.{key}" for slot, keys in table.items() for key in keys if (slot, key) != ("task", "search")]
    if other:
        raise ConfigError(
            f"--set {other[0]}: of a trained model only task.search.KEY can be changed, for example task.search.beam_size=10"
        )
    return read_settings(BeamSettings, table["task"]["search"], "--set task.search")


def describe_search(search: BeamSettings) -> str:
    """The settings of a search as ``name:value|name:value``, for signatures."""
    return "|".join(f"{name}:{value}" for name, value in search.model_dump().items())


def write_texts(writer: Writer, lines: Iterable[str], search: BeamSettings, name: str = "line") -> Iterator[WrittenText]:
    """Write a text for each line, 1,024 lines at once; messages call a line ``name``. A RunWarning reports unsegmented Chinese.
    Raises DataError: a line without words or with too many, with its number."""
    vocabulary, numbered = writer.run.vocabulary, enumerate(lines, start=1)
    told = False
    while block := list(islice(numbered, _LINES_AT_ONCE)):
        sources = [writer.read(line, f"{name} {number}") for number, line in block]
        if block[0][0] == 1:
            where, apart = name.removesuffix(", line"), writer.segmenter is None
            refuse_unknown(writer.run, chain.from_iterable(sources), where, apart=apart)
        with writer.run.autocast():
            written = writer.task.write([vocabulary.encode(source) for source in sources], search)
        for (number, _), source, best in zip(block, sources, written, strict=True):
            if not best:
                raise DataError(f"{name} {number}: no text satisfies the settings of the search ({describe_search(search)})")
            first, *others = [_found(writer.task, item, source, search) for item in best]
            unknown = tuple(dict.fromkeys(word for word in source if word not in vocabulary))
            told = told or writer.warn_uncut(unknown)
            yield WrittenText(
                line=number,
                best=first,
                others=tuple(others),
                unknown=unknown,
                source_words=len(source),
                read_words=words_read(writer.run, len(source)),
            )


def _found(task: TextWriter, item: Hypothesis, source: Sequence[str], search: BeamSettings) -> Found:
    words = hypothesis_words(task.vocabulary, item, source, search)
    return Found(text=" ".join(words), words=words, score=item.score, nats=item.nats, ended=item.ended)
