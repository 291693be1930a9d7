"""Tag words with senses by any model that predicts words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, final, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.analysis.senses.inventory import Reals, SenseInventory
from sememekit.decoders.base import Sensed
from sememekit.encoders.base import State
from sememekit.errors import ConfigError
from sememekit.runs.published import PublishedRun
from sememekit.runs.run import Run
from sememekit.runs.stream_nats import with_context
from sememekit.tasks.base import WordPredictor, require
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.scripts import HAN

Method = Literal["combined", "substitution", "usual", "share", "lift"]

FOLLOWING: Final = 3  # words after the target that a left-to-right model scores with each substitute in its place
MOST_SUBSTITUTES: Final = 20  # substitutes of a sense, by falling weight and count, that are scored with the words that follow
_LINES_AT_ONCE: Final = 32
_ROWS_AT_ONCE: Final = 64

PARTS: Final = ("share", "lift", "substitution", "usual")
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "combined": ("share", "substitution", "usual"),
    **{part: (part,) for part in get_args(Method)[1:]},
}
"""Method -> the parts that it adds up (log-probabilities); unsupported parts are left out of a sum of several."""


@dataclass(frozen=True)
class ReadLine:
    """A line as a model reads it."""

    ids: tuple[int, ...]  # word ids; an unknown word may have several ids
    place: tuple[int, ...]  # for each word of the line, the position of its first id in ``ids``
    known: tuple[bool, ...]  # for each word, whether it is in the vocabulary


@final
class LineReader:
    """Turns words into ids: normalised like the data, with unknown words cut into known ones.

    A word that cannot be cut so is ``<unk>``, or left out if the vocabulary has no ``<unk>``.

    >>> LineReader(run).read(["去年", "美国"]).ids"""

    def __init__(self, run: Run) -> None:
        self._form, self.vocabulary = run.form(), run.vocabulary
        self._published = run if isinstance(run, PublishedRun) else None
        self._matcher = MaximumMatcher(run.vocabulary.tokens)

    def read(self, words: Sequence[str]) -> ReadLine:
        """Read a line."""
        ids, place, known = list[int](), [], []
        for word in words:
            place.append(len(ids))
            if self._published is not None:
                own: Sequence[int] = self._published.ids_of(word)
                known.append(len(own) == 1 and own[0] != self.vocabulary.unknown_id)
            else:
                normal = self._form.word(word)
                known.append(normal in self.vocabulary)
                cut = [normal] if known[-1] or not HAN.search(normal) else self._matcher.segment(normal)
                read = cut if self.vocabulary.unknown_id is not None else [one for one in cut if one in self.vocabulary]
                own = [self.vocabulary.id(one) for one in read]
            ids += own
        return ReadLine(tuple(ids), tuple(place), tuple(known))


@dataclass(frozen=True)
class TaggedWord:
    """A word of a line."""

    senses: int  # n, the number of its senses
    # part -> (n,) log-probabilities of its senses, such as "share"; empty for a word that was not requested
    parts: Mapping[str, Reals]
    nats: float | None  # surprisal; None where nothing predicts the word

    def log_probabilities(self, method: Method) -> Reals:
        """(n,) normalised log-probabilities of the senses by a method."""
        own = [self.parts[name] for name in METHODS[method] if name in self.parts]
        return _normalised(sum(own, np.zeros(self.senses)))


class SenseTagger:
    """Assigns probabilities to the senses of words in a sentence; a method adds up some of the parts below.

    With word w, its senses s, contexts c (the words before) and substitutes v of s with weights a_v
    (``SenseInventory.substitutes``), the parts are, before each is normalised over the senses of w:

    - ``share``: log p(s | c), for output layers that predict senses (``explain`` shows it);
    - ``lift``: ``share`` minus ``share`` in an empty context, which is the sense prior of the model;
    - ``substitution``: log of the mean of p(v | c) p(r | c v) / p(v) over v, with weights a_v; r are the ``FOLLOWING`` words
      after w, scored for ``MOST_SUBSTITUTES`` substitutes in its place. A sense without substitutes has the value of a word
      whose probability does not depend on the context;
    - ``usual``: ``SenseInventory.usual``, without the model.

    A published model (``PublishedRun``) predicts no senses, so it has only the last two parts (docs/senses.md).

    >>> line = LineReader(run).read("去年 美国 贸易".split())
    >>> [[word]] = SenseTagger(run, inventory_of(run)).tag([line.ids], [[2]])
    >>> word.log_probabilities("combined")

    ``parts`` that the model lacks are left out. Raises ConfigError: the task predicts no words, or no part is left."""

    def __init__(self, run: Run, inventory: SenseInventory, parts: Sequence[str] = PARTS) -> None:
        self._task = require(run.task, WordPredictor, "tag")
        self._inventory = inventory
        self._end = run.vocabulary.end_id if run.signature.end_of_sentence else None
        self._own = run.graph
        self._nothing = torch.zeros_like(self._contexts(torch.zeros(1, 1, dtype=torch.long))[0])
        self._published = run if isinstance(run, PublishedRun) else None
        has_shares = self._own is not None and self._published is None and isinstance(self._task.decoder, Sensed)
        self.parts = tuple(part for part in parts if has_shares or part not in ("share", "lift"))
        if not self.parts:
            raise ConfigError(
                f"{run}: its output layer gives senses no probabilities, so it has no {' and no '.join(parts)}; take --method "
                "substitution or combined, or train with --decoder sdlm"
            )

    @torch.no_grad()
    def _contexts(self, tokens: Tensor) -> Tensor:
        """(T, B, H) contexts after ``tokens``."""
        return self._task.contexts(tokens.to(self._task.device), self._task.encoder.start(tokens.shape[1]))[0]

    @torch.no_grad()
    def tag(
        self, lines: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]], nats: Sequence[Sequence[int]] | None = None
    ) -> Iterator[list[TaggedWord]]:
        """Yield for each line its ``wanted`` positions as tagged words; or all positions, those in ``nats`` with surprisal."""
        for group in _groups([*zip(lines, wanted, nats or wanted, strict=True)], _LINES_AT_ONCE):
            own, asked, surprising = ([list(part) for part in column] for column in zip(*group, strict=True))
            contexts, states = ([], {}) if self._published is not None else self._read(own, asked)
            targets = [(line, place) for line, places in enumerate(asked) for place in places]
            parts = self._parts(own, targets, contexts, states)
            losses = {} if nats is None else self._losses(own, surprising, contexts)
            for line, ids in enumerate(own):
                for_all = range(len(ids)) if nats is not None else asked[line]
                senses = {place: len(self._inventory.senses(ids[place])) for place in for_all}
                yield [TaggedWord(senses[at], parts.get((line, at), {}), losses.get((line, at))) for at in for_all]

    def _losses(
        self, lines: list[list[int]], asked: list[list[int]], contexts: list[Tensor]
    ) -> dict[tuple[int, int], float | None]:
        """Return the nats of the requested words, all at once, since output layers are slow on few tokens."""
        if self._published is not None:
            found: dict[tuple[int, int], float | None] = {}
            for line, own in enumerate(asked):
                found.update(zip(((line, at) for at in own), self._published.nats(lines[line], own), strict=True))
            return found
        first = 0 if self._end is not None else 1  # of a stream nothing predicts it
        where = [(line, place) for line, places in enumerate(asked) for place in places if place >= first]
        if not where:
            return {}
        target = torch.tensor([lines[line][place] for line, place in where], device=self._task.device)
        nats = self._task.decoder.nll(torch.stack([contexts[line][place] for line, place in where]), target)
        return dict(zip(where, nats.tolist(), strict=True))

    def _read(self, lines: list[list[int]], wanted: list[list[int]]) -> tuple[list[Tensor], dict[tuple[int, int], State]]:
        """Return the contexts (n, H) of the n words of each line, and the states there if following words are scored."""
        task, ahead = self._task, int(self._end is not None)
        streams = [with_context(ids, self._end) for ids in lines]
        tokens = torch.zeros(max(map(len, streams)), len(lines), dtype=torch.long)
        for column, stream in enumerate(streams):
            tokens[: len(stream), column] = torch.tensor(stream)
        states: dict[tuple[int, int], State] = {}
        if not len(tokens):
            hidden_TBH = self._nothing[:, None]
        elif "substitution" not in self.parts:
            hidden_TBH = self._contexts(tokens)
        else:
            steps, state = [], task.encoder.start(len(lines))
            for step, row in enumerate(tokens.to(task.device)):
                for line, places in enumerate(wanted):
                    if step - ahead in places:
                        states[line, step - ahead] = tuple(part[line : line + 1].clone() for part in state)
                hidden, state = task.contexts(row[None], state)
                steps.append(hidden)
            hidden_TBH = torch.cat(steps)
        contexts = [
            torch.cat([self._nothing[: 1 - ahead], hidden_TBH[: max(0, len(ids) - 1 + ahead), column]])
            for column, ids in enumerate(lines)
        ]
        return contexts, states

    def _parts(
        self, lines: list[list[int]], asked: list[tuple[int, int]], contexts: list[Tensor], states: dict[tuple[int, int], State]
    ) -> dict[tuple[int, int], dict[str, Reals]]:
        found: dict[tuple[int, int], dict[str, Reals]] = {}
        for group in _groups(asked, _ROWS_AT_ONCE):
            words = [lines[line][place] for line, place in group]
            rows = [{"usual": self._inventory.usual(word)} if "usual" in self.parts else {} for word in words]
            if self._published is None:
                hidden = torch.stack([contexts[line][place] for line, place in group])
                if {"share", "lift"} & set(self.parts):
                    self._add_shares(hidden, words, rows)
                if "substitution" in self.parts:
                    table = self._task.decoder.log_probs(hidden).double().cpu().numpy()
                    for row, (line, place), word, log_probs in zip(rows, group, words, table, strict=True):
                        right = lines[line][place + 1 : place + 1 + FOLLOWING]
                        row["substitution"] = self._in_context(word, log_probs, states[line, place], right)
            elif "substitution" in self.parts:
                for row, (line, place), word in zip(rows, group, words, strict=True):
                    lifts = partial(self._published.lifts, self._inventory.log_frequency, lines[line], place)
                    row["substitution"] = self._substitution(word, lifts, MOST_SUBSTITUTES, None)
            found.update(zip(group, rows, strict=True))
        return found

    def _add_shares(self, hidden: Tensor, words: list[int], rows: list[dict[str, Reals]]) -> None:
        """Add shares; a word gets none if the graph of the run lacks these senses of it."""
        assert self._own is not None
        distinct = sorted(set(words))
        here, prior = self._sense_logs(hidden, distinct), self._sense_logs(self._nothing, distinct)
        sizes = [int(self._own.sense_offsets[word + 1] - self._own.sense_offsets[word]) for word in distinct]
        begin = dict(zip(distinct, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        for row, word, logs in zip(rows, words, here, strict=True):
            part = slice(begin[word], begin[word] + len(self._inventory.senses(word)))
            if self._own.annotated[word]:
                row["share"] = _normalised(logs[part])
                row["lift"] = _normalised(logs[part] - prior[0][part])

    @torch.no_grad()
    def _sense_logs(self, hidden: Tensor, words: list[int]) -> Reals:
        assert self._own is not None
        assert isinstance(self._task.decoder, Sensed)
        senses = np.concatenate([np.arange(*self._own.sense_offsets[word : word + 2]) for word in words])
        device = self._task.device
        found = self._task.decoder.sense_logs(hidden, torch.tensor(words, device=device), torch.from_numpy(senses).to(device))
        return found.double().cpu().numpy()

    def _in_context(self, word: int, log_probs_V: Reals, state: State, right: list[int]) -> Reals:
        """Substitution by a left-to-right model; all substitutes are tried if no words follow."""

        def lifts(words: NDArray[np.int64]) -> Reals:
            gains = self._following(np.append(words, word), state, right) if right else np.zeros(len(words) + 1)
            return np.asarray((log_probs_V - self._inventory.log_frequency)[words] + gains[:-1] - gains[-1])

        return self._substitution(word, lifts, MOST_SUBSTITUTES if right else None, 0.0)

    def _substitution(
        self, word: int, lifts: Callable[[NDArray[np.int64]], Reals], most: int | None, without: float | None
    ) -> Reals:
        """(n,) log of the mean of exp(lift) over the first ``most`` substitutes of each sense, by weight.

        ``without`` is the value of a sense without substitutes; None for the least value of the other senses."""
        by_sense = [self._inventory.substitutes(sense) for sense in self._inventory.senses(word)]
        log_of = np.zeros(len(self._inventory.counts))
        if len(tried := np.unique(np.concatenate([words[:most] for words, _ in by_sense]))):
            log_of[tried] = lifts(tried)
        firsts = [(words[:most], weights[:most]) for words, weights in by_sense]
        means = np.array([np.logaddexp.reduce(log_of[words] + np.log(own / own.sum())) for words, own in firsts])
        some = means > -np.inf  # the senses that have substitutes
        least = means[some].min(initial=np.inf) if without is None else without
        return _normalised(np.where(some, means, least) if some.any() else np.zeros(len(means)))

    def _following(self, candidates: NDArray[np.int64], state: State, right: list[int]) -> Reals:
        """(n,) log-probabilities of the words that follow, with each candidate in the place of the target."""
        task, count, device = self._task, len(candidates), self._task.device
        tokens = torch.tensor([[0] * count, *([word] * count for word in right)], device=device)
        tokens[0] = torch.from_numpy(candidates).to(device)
        several = tuple(part.expand(count, *part.shape[1:]).contiguous() for part in state)
        hidden, _ = task.contexts(tokens[:-1], several)
        return -task.decoder.nll(hidden, tokens[1:]).sum(dim=0).double().cpu().numpy()


def _groups(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))


def _normalised(logs: Reals) -> Reals:
    return np.asarray(logs - np.logaddexp.reduce(logs))
