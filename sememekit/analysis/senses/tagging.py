"""``sememekit tag``: the senses, sememes and surprisal of each word of a text, and the measured accuracy of the tags."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import Field

from sememekit.analysis.score import ScoredToken
from sememekit.analysis.senses.inventory import SenseInventory, inventory_of
from sememekit.analysis.senses.tagger import METHODS, LineReader, Method, SenseTagger, TaggedWord
from sememekit.config import Record
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.figures import percent
from sememekit.files import typed, warn
from sememekit.files.reading import read_sealed
from sememekit.files.writing import replace_file, sealed
from sememekit.measure.intervals import Interval
from sememekit.runs.published import PublishedRun, is_published
from sememekit.runs.run import OfRun, Run
from sememekit.runs.uncut import CUT_FIRST, refuse_unknown, segmenter_of_raw, uncut
from sememekit.text.vocabulary import UNKNOWN

FILE: Final = "senses.json"  # in the folder of the run


class Measurement(Record):
    """Measured accuracy of a method on a gold set."""

    weights: str
    """SHA-256 of the weights of the model."""
    method: str
    sources: tuple[str, ...]
    """method, sources: arguments of ``evaluate_senses``; each method and lexicon has a separate measurement."""
    gold: str
    gold_sha256: str
    """gold, gold_sha256: name and hash of the file."""
    targets: int
    micro: Interval
    macro: Interval
    """targets, micro, macro: as in ``SenseScores``."""
    baselines: dict[str, float] = Field(default_factory=dict)
    """Micro accuracy of a random sense and of the best method without a model; empty in files of older versions."""

    @property
    def sentence(self) -> str:
        """Return the measurement as a line of text."""
        told = f"{percent(self.micro.value)} micro, {percent(self.macro.value)} macro of {self.targets:,} words in {self.gold}"
        others = ", ".join(f"{name} {percent(value)}" for name, value in self.baselines.items())
        return f"{told} (micro {others})" if others else told


def remember(run: Path, measured: Measurement) -> bool:
    """Store a measurement beside a run, replacing an earlier one; return False if the folder is not writable."""
    same = {"weights", "method", "sources", "gold_sha256"}
    kept = [one for one in _read(run) if one.model_dump(include=same) != measured.model_dump(include=same)]
    try:
        replace_file(run / FILE, sealed({"measured": [one.model_dump() for one in (*kept, measured)]}))
    except OSError:
        return False
    return True


def _read(run: Path) -> list[Measurement]:
    file, remedy = run / FILE, "remove it, and measure again: sememekit eval RUN --senses GOLD"
    if not file.is_file():
        return []
    found = read_sealed(file, lambda why: CheckpointError(f"{why}; {remedy}"))
    try:
        return [Measurement(**one) for one in found["measured"]]
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{file}: holds no measurements of senses; {remedy}") from None


class SenseTag(Record):
    """One sense of a word in a sentence."""

    number: int
    """Place of the sense among the senses of the word, from 1, in the order of the lexicon."""
    label: str
    """Part of speech and gloss where the lexicon has them, otherwise the sememes."""
    sememes: tuple[str, ...]
    """The sememes of the sense."""
    probability: float
    """Probability of the sense by the method; the probabilities of a word sum to 1."""


class TaggedToken(ScoredToken):
    """A word of a text with its senses; ``read_as`` may be several words that the model read in its place."""

    senses: tuple[SenseTag, ...]
    """The senses by falling probability; empty where no lexicon knows the word."""


class TagHeader(OfRun):
    """The model and method that tagged, with their measured accuracy."""

    method: Method
    sources: tuple[str, ...]
    measured: tuple[Measurement, ...]
    """Accuracies of these weights with this method and these lexicons, stored by ``eval --senses``, the newest last."""

    def sentences(self) -> list[str]:
        """Return the header as lines of text."""
        of_lexicons = f", with {', '.join(self.sources)}" if self.sources else ""
        first = f"run {self.run}, {self.checkpoint}; method {self.method}{of_lexicons}"
        verb = "prints" if is_published(self.run) else "measures"  # nothing is stored beside a published model
        unknown = f"accuracy: not measured; {typed('sememekit', 'eval', self.run, '--senses', 'GOLD')} {verb} it"
        return [first, *([f"accuracy: {one.sentence}" for one in self.measured] or [unknown])]


def header_of(run: Run, method: Method, sources: Sequence[str]) -> TagHeader:
    """Name the run and the method, with the stored accuracies. Raises CheckpointError: the stored file is damaged."""
    wanted = run.weights_sha256, method, tuple(sources)
    measured = tuple(one for one in _read(run.path) if (one.weights, one.method, one.sources) == wanted)
    return TagHeader(**run.of_run, method=method, sources=tuple(sources), measured=measured)


def tag(
    run: Path | Run,
    lines: Iterable[str],
    *,
    method: Method = "combined",
    sources: Sequence[str] = (),
    words: Collection[str] = (),
    whole: bool = False,
    surprisal: bool = True,
) -> Iterator[TaggedToken]:
    """Tag each word of a text with its senses; 32 lines are read before the first row comes.

    Words stand between blanks; Chinese without blanks is segmented like the data of the run. Each line is read separately.
    Probabilities come from ``method`` (``SenseTagger``); one sense has 1. If a word is read as several, their nats add up.

    ``sources`` are lexicons (``FORMAT:PATH``) for words that the run does not annotate, ``words`` the words to tag (default:
    all). With ``whole`` the other words are yielded, too, without senses. ``surprisal`` needs the probabilities of all words,
    which is slow. A RunWarning names ``words`` that the text does not have, and counts lines of Chinese without blanks. Raises
    ConfigError: the task predicts no words, or words have no senses by this method. Raises DataError: Chinese without blanks
    where blanks cut the data of the run, none of ``words`` in the text, or a lexicon that cannot be read.

    >>> for token in tag(Path("runs/sdlm"), ["我 吃 苹果 。"], words=["苹果"]):
    ...     print(token.senses[0].sememes, token.senses[0].probability)"""
    loaded = Run.open(run)
    if method not in METHODS:
        raise ConfigError(f"--method {method}: allowed are {', '.join(METHODS)}")
    inventory = inventory_of(loaded, sources)
    tagger = SenseTagger(loaded, inventory, METHODS[method])

    def rows() -> Iterator[TaggedToken]:
        reader, numbered, letters = LineReader(loaded), enumerate(lines, start=1), loaded.form().letters
        chosen, met, raw = {letters(word.strip()): word.strip() for word in words}, set[str](), dict[int, str]()
        while group := list(islice(numbered, 32)):
            cut = [(number, line.split()) for number, line in group if line.strip()]
            may_cut = not isinstance(loaded, PublishedRun)  # whose words are not the pieces
            if segmenter := segmenter_of_raw(loaded, [tokens for _, tokens in cut], "tag", may_cut=may_cut):
                cut = [(number, loaded.form().cut(" ".join(tokens), segmenter)) for number, tokens in cut]
            elif may_cut:
                raw |= {number: found for number, tokens in cut if (found := uncut(loaded, tokens))}
            read = [reader.read(tokens) for _, tokens in cut]
            if group[0][0] == 1 and all(index == loaded.vocabulary.unknown_id for line in read for index in line.ids):
                refuse_unknown(loaded, (loaded.form().word(token) for _, tokens in cut for token in tokens), "tag")
            wanted, nats = list[list[int]](), list[list[int]]()
            for (_, tokens), line in zip(cut, read, strict=True):
                bounds = [*pairwise((*line.place, len(line.ids)))]
                named = [not chosen or letters(token) in chosen for token in tokens]
                met.update(letters(token) for token, is_named in zip(tokens, named, strict=True) if is_named)
                given = [at for at in range(len(tokens)) if surprisal and (whole or named[at])]
                nats.append([place for at in given for place in range(*bounds[at])])
                known = [at for at in range(len(tokens)) if line.known[at] and named[at]]
                wanted.append([line.place[at] for at in known if inventory.is_ambiguous(line.ids[line.place[at]])])
            tagged_lines = tagger.tag([line.ids for line in read], wanted, nats)
            for (number, tokens), line, tagged in zip(cut, read, tagged_lines, strict=True):
                for at, token in enumerate(tokens):
                    asked = not chosen or letters(token) in chosen
                    if not asked and not whole:
                        continue
                    begin, end = (*line.place, len(line.ids))[at : at + 2]  # the model may have read several words for one
                    own = [word.nats for word in tagged[begin:end]]
                    yield TaggedToken(
                        sentence=number,
                        position=at + 1,
                        token=token,
                        read_as=" ".join(map(loaded.vocabulary.token, line.ids[begin:end])),
                        nats=None if not own or None in own else sum(one for one in own if one is not None),
                        senses=_senses(line.ids[begin], tagged[begin], inventory, method) if asked and line.known[at] else (),
                    )
        if raw:
            (first, found), *_ = raw.items()
            lines_of = f"{len(raw):,} lines, such as line {first} ({found[:12]!r})"
            warn(f"tag: Chinese without blanks was read as one {UNKNOWN} in {lines_of}; {CUT_FIRST}")
        absent = " ".join(word for key, word in chosen.items() if key not in met)
        if chosen and not met:
            raise DataError(
                f"tag: the text has none of the words {absent}; give words as they stand in the text, commas between"
            )
        if absent:
            warn(f"tag: the text does not have {absent}")

    return rows()


def _senses(word: int, tagged: TaggedWord, inventory: SenseInventory, method: Method) -> tuple[SenseTag, ...]:
    entry = inventory.graph.entry(word)
    if not entry.is_annotated:
        return ()
    probabilities = np.exp(tagged.log_probabilities(method)).tolist() if tagged.parts else [1.0]
    found = [
        SenseTag(number=number, label=sense.label, sememes=sense.sememes, probability=probability)
        for number, (sense, probability) in enumerate(zip(entry.senses, probabilities, strict=False), start=1)
    ]
    return tuple(sorted(found, key=lambda one: -one.probability))
