"""The sememes of a context and the senses of words, as records for ``explain`` of words and of written texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

import torch
from torch import Tensor

from sememekit.analysis.explanations.sememe_mass import SememeMasses, mean_mass
from sememekit.analysis.senses.tagging import SenseTag, header_of, tag
from sememekit.config import Record
from sememekit.decoders.base import SenseAttribution, Sensed
from sememekit.errors import ConfigError, DataError
from sememekit.progress import OneStage, silent
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.sememes.statistics import sememe_counts
from sememekit.tasks.writing import Predictor


class ContextSememe(Record):
    """A sememe in a context."""

    name: str
    """Name of the sememe."""
    gate: float
    """q, 0 to 1: activation of the sememe in the context (Eq. (4), Gu et al. 2018)."""
    at_rest: float
    """q for an empty context: the sigmoid of the gate's bias."""
    mass: float
    """m, the sum of p(sense | context) over the senses with the sememe, 0 to 1."""
    mean: float
    """n, the mean mass over the text or counts in ``Explanation.mean``."""
    rise: float
    """m - n."""
    lift: float | None
    """m / n; None if n is 0, as for a sememe that no counted word has."""
    count: int
    """Number of tokens of the training text with the sememe."""


_SPELLED_OUT: Final = (
    "N noun, V verb, ADJ adjective, ADV adverb, PRON pronoun, NUM number, CLAS classifier, PREP preposition, CONJ "
    "conjunction, COOR conjunction, STRU particle, AUX auxiliary, ECHO imitated sound, EXPR expression, PREFIX "
    "prefix, SUFFIX suffix, PUNC mark, n noun, v verb, a adjective, s adjective, r adverb or pronoun, d adverb, m numeral, "
    "q classifier, p preposition, c conjunction, u particle, f localiser, t time, w mark, k affix, e exclamation, i idiom"
)
PARTS_OF_SPEECH: Final = {short: name for short, _, name in (pair.partition(" ") for pair in _SPELLED_OUT.split(", "))}
"""Parts of speech of HowNet, WordNet and the open lexicon, spelled out."""


class SenseShare(Record):
    """One sense of a predicted word."""

    share: float
    """p(sense) / p(word), 0 to 1; the shares of a word sum to one."""
    prior: float | None = None
    """The share in an empty context, if requested."""
    label: str
    """Part of speech and gloss where the lexicon has them, otherwise the sememes."""
    sememes: tuple[ContextSememe, ...]
    """The sememes by falling gain (``rise``)."""

    @property
    def title(self) -> str:
        """The label without sememes: part of speech, spelled out, and gloss; empty if the lexicon has neither."""
        names, (first, *rest) = {item.name for item in self.sememes}, self.label.split()
        if {first, *rest} == names:
            return ""
        part = "/".join(PARTS_OF_SPEECH.get(one, one) for one in first.split("/"))
        return part if set(rest) == names else " ".join([part, *rest])


class SememeViews(Record):
    """The sememes of one context by each of three rankings."""

    expected: tuple[ContextSememe, ...] = ()
    """Sememes with the largest gain above 0."""
    sememes: tuple[ContextSememe, ...] = ()
    """The largest gates (Table 5, Gu et al. 2018)."""
    raised: tuple[ContextSememe, ...] = ()
    """The largest increases of a gate over its value at rest."""


@final
class SememeReader:
    """Reads mass, mean and gate of every sememe of a run's graph in a context.

    >>> reader = SememeReader(run, run.task, torch.zeros_like(hidden_H), "counts", None)
    >>> shown = views(reader.read(hidden_H, attribution), 5)

    ``empty_H`` are (H,) zeros, the empty context. The means are ``over`` the counts or a split of ``data`` (default: the data
    of the training), which ``mean`` describes; ``progress`` is called while a split is read. Errors as ``mean_mass``."""

    def __init__(
        self, run: Run, task: Predictor, empty_H: Tensor, over: str, data: Path | None, progress: OneStage = silent
    ) -> None:
        assert run.graph is not None
        assert isinstance(task.decoder, Sensed)
        self.graph, self._decoder, self._empty_H = run.graph, task.decoder, empty_H
        self._priors: dict[int, tuple[tuple[int, float], ...]] = {}
        self._counts = sememe_counts(self.graph, run.train_counts).tolist()
        first = torch.zeros(1, dtype=torch.long, device=empty_H.device)
        with torch.no_grad():
            self._at_rest = self._decoder.sense_attribution(empty_H, first).sememe_gates
            self._masses = SememeMasses(self.graph, empty_H.device)
            prepared = None if data is None else run.data(data)
            mean_K, self.mean = mean_mass(run, task, self._masses, empty_H[None], over, prepared, progress)
        self._mean_K = mean_K.double()

    @torch.no_grad()
    def priors(self, words: Sequence[int]) -> dict[int, float]:
        """Return the share of each sense of some words in the empty context; earlier answers are reused."""
        if new := [word for word in words if word not in self._priors]:
            number = torch.tensor(new, device=self._empty_H.device)
            self._priors.update(zip(new, self._decoder.sense_attribution(self._empty_H, number).word_senses, strict=True))
        return dict(pair for word in words for pair in self._priors[word])

    @torch.no_grad()
    def read(self, hidden: Tensor, attribution: SenseAttribution) -> list[ContextSememe]:
        """Every sememe in a context ``hidden`` (H,) and its ``attribution``, in the order of the graph."""
        gates = zip(self.graph.sememes, attribution.sememe_gates, self._at_rest, self._counts, strict=True)
        mass_K = self._masses(self._decoder.sense_probabilities(hidden[None]).log_senses_NS)[0].double()
        return [
            ContextSememe(name=name, gate=q, at_rest=rest, mass=m, mean=n, rise=m - n, lift=m / n if n else None, count=count)
            for (name, q, rest, count), m, n in zip(gates, mass_K.tolist(), self._mean_K.tolist(), strict=True)
        ]


def views(sememes: Sequence[ContextSememe], top: int) -> SememeViews:
    """The first ``top`` sememes of each ranking; equal ones by name."""
    return SememeViews(
        expected=tuple(sorted((item for item in sememes if item.rise > 0), key=_by_rise)[:top]),
        sememes=tuple(sorted(sememes, key=lambda item: (-item.gate, item.name))[:top]),
        raised=tuple(sorted(sememes, key=lambda item: (item.at_rest - item.gate, item.name))[:top]),
    )


def ranked(sememes: Sequence[ContextSememe]) -> Iterator[tuple[int, ContextSememe]]:
    """Return (rank, sememe) from 1 on, by falling gain (``rise``)."""
    return enumerate(sorted(sememes, key=_by_rise), start=1)


def senses_of(
    graph: SememeGraph,
    shares: Iterable[tuple[int, float]],
    sememes: Sequence[ContextSememe],
    priors: Mapping[int, float] = MappingProxyType({}),
) -> tuple[SenseShare, ...]:
    """Senses of a word in the given order, each with its share, its share in an empty context, and its sememes."""
    senses = []
    for sense, share in shares:
        first, end = graph.set_offsets[graph.sense_set[sense] :][:2]
        own = sorted((sememes[number] for number in graph.set_sememes[first:end]), key=_by_rise)
        senses.append(SenseShare(share=share, prior=priors.get(sense), label=graph.sense_labels[sense], sememes=tuple(own)))
    return tuple(senses)


def _by_rise(item: ContextSememe) -> tuple[float, float, str]:
    return -item.rise, -item.gate, item.name


def check_numbers(**numbers: int) -> None:
    """Raise ConfigError for the first number below 1."""
    for name, value in numbers.items():
        if value < 1:
            raise ConfigError(f"explain: --{name.replace('_', '-')} must be 1 at least, given {value}")


LEAST_MOVED: Final = 0.1  # least total variation of the shares of senses from an empty context that counts as a difference


class PredictedWord(Record):
    """A word that may come next."""

    word: str
    """The word."""
    probability: float
    """p(word | context)."""
    source: str | None = None
    """The lexicon or rule that its senses come from; None for models without senses."""
    annotated: bool | None = None
    """True if any lexicon or rule knows the word; None for models without senses."""
    senses: tuple[SenseShare, ...] = ()
    """The senses by falling share; empty for models without senses."""

    @property
    def is_told_apart(self) -> bool:
        """Return whether the context moves the shares of senses from the empty context by at least ``LEAST_MOVED``."""
        moved = sum(abs(sense.share - sense.prior) for sense in self.senses if sense.prior is not None) / 2
        return len(self.senses) < 2 or moved >= LEAST_MOVED


class AskedWord(Record):
    """A requested word, in the whole sentence."""

    word: PredictedWord
    """The word, with its probability after the words before it."""
    rank: int
    """The rank of the word's probability among all words, from 1."""
    right: tuple[str, ...]
    """The words after it."""
    tags: tuple[SenseTag, ...]
    """Its senses by the method ``combined`` of ``SenseTagger``; empty for models without senses."""
    accuracy: tuple[str, ...]
    """Sentences on the measured accuracy of this method."""


def known_word(run: Run, word: str) -> int:
    """The id of a requested word. Raises DataError: the model does not know the word."""
    normal = run.form().word(word)
    if normal not in run.vocabulary:
        known = run.folder.file("vocabulary.tsv")
        raise DataError(f"--word {word}: the model does not know this word; {known} has those that it knows")
    return run.vocabulary.id(normal)


def asked_word(run: Run, left: Sequence[str], word: PredictedWord, rank: int, right: Sequence[str]) -> AskedWord:
    """A requested word between the words before and after it; without senses if the model has none."""
    if not word.senses:
        return AskedWord(word=word, rank=rank, right=tuple(right), tags=(), accuracy=())
    line = " ".join([*left, word.word, *right])
    rows = tag(run, [line], words=[word.word], surprisal=False)
    tagged = next(row for row in rows if row.position == len(left) + 1)
    accuracy = tuple(header_of(run, "combined", ()).sentences()[1:])
    return AskedWord(word=word, rank=rank, right=tuple(right), tags=tagged.senses, accuracy=accuracy)
