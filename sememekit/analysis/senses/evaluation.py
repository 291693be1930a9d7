"""``sememekit eval RUN --senses GOLD``: how often a model tags a word with the sense that is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from sememekit.analysis.senses.gold import (
    NO_SENSE,
    NOT_ANNOTATED,
    ONE_SENSE,
    UNKNOWN_WORD,
    Causes,
    GoldTarget,
    LeftOut,
    matching_senses,
    misplaced,
    read_gold,
)
from sememekit.analysis.senses.inventory import SenseInventory, inventory_of
from sememekit.analysis.senses.measured import Measurement, remember
from sememekit.analysis.senses.tagger import METHODS, LineReader, Method, ReadLine, SenseTagger
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.measure.intervals import Interval, interval, ratio_difference_interval, ratio_interval
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run, Which

RANDOM: Final = "at random"
FIRST: Final = "first sense of the lexicon"
PRIOR: Final = "sense prior of the model"
ORACLE: Final = "commonest sense of each word (oracle)"


class SenseAccuracy(Record):
    """How often a method or a baseline names the sense that is meant.

    Attributes:
        micro: share of the targets, with a bootstrap over targets.
        macro: mean over words of the share of their targets, with a bootstrap over words.
        above_random: ``micro`` minus that at random, paired over targets.
    """

    name: str
    micro: Interval
    macro: Interval
    above_random: Interval


class WordAccuracy(Record):
    """One word: the senses that the lexicon gives it, its targets, and the share that each method gets right, by name."""

    word: str
    senses: int
    targets: int
    accuracy: dict[str, float]


class SenseScores(OfRun):
    """What ``evaluate_senses`` found.

    Attributes:
        gold, method, sources: as they were given.
        targets: scored.
        left_out: targets that cannot be scored, by cause.
        rows: the methods, the one asked for first, then the baselines.
        words: by falling number of targets.
        stored: whether ``tag`` finds this measurement beside the run.
    """

    gold: str
    method: Method
    sources: tuple[str, ...]
    targets: int
    left_out: tuple[LeftOut, ...]
    rows: tuple[SenseAccuracy, ...]
    words: tuple[WordAccuracy, ...]
    stored: bool


def evaluate_senses(
    run: Path | Run,
    gold: Path,
    *,
    method: Method = "combined",
    sources: Sequence[str] = (),
    device: str = "auto",
    which: Which = "best",
    progress: Progress = silent,
) -> SenseScores:
    """Compare the senses that a language model tags with those that people gave.

    Every method of ``SenseTagger`` that the model can give is scored on the same targets, with the same senses to choose from,
    beside four baselines: a sense at random (the expected value), the first that the lexicon lists, the most probable in an
    empty context, and the sense that most targets of the word have, which nobody knows without gold. ``matching_senses`` says
    which senses of the lexicon stand for one of the gold. The accuracy of ``method`` is remembered beside the run for ``tag``.

    Args:
        run: a language model, or its folder.
        gold: a file that ``read_gold`` reads.
        method: the one that comes first and is remembered.
        sources: ``FORMAT:PATH``, lexicons for words that the run does not annotate; see ``inventory_of``.
        progress: called with ("senses", targets so far, in all).

    >>> scores = evaluate_senses(Path("runs/sdlm"), Path("gold.tsv"))
    >>> scores.rows[0].micro.value, scores.left_out

    Raises:
        DataError: the gold cannot be read, or no target is left to score.
        ConfigError: the task predicts no words, or words have no senses.
    """
    loaded = Run.open(run, which=which, device=device)
    inventory, reader = inventory_of(loaded, sources), LineReader(loaded)
    causes = Causes(str(gold))
    targets, read, right = _scorable(read_gold(gold), inventory, reader, causes)
    if not targets:
        told = "; ".join(f"{one.count:,} {one.cause} ({one.first})" for one in causes.found())
        raise DataError(
            f"--senses {gold}: no target can be scored with {loaded}: {told}; build the graph of the run from the lexicon of "
            "the gold senses, or name it with --source FORMAT:PATH"
        )
    tagger = SenseTagger(loaded, inventory)
    names = [method, *(name for name in get_args(Method) if name != method)]
    names = [name for name in names if set(METHODS[name]) & set(tagger.parts)]
    correct: dict[str, list[float]] = {name: [] for name in (*names, RANDOM, FIRST)}
    if "lift" in tagger.parts:
        correct[PRIOR] = []
    places = [[line.place[target.position]] for target, line in zip(targets, read, strict=True)]
    for done, ((word,), own) in enumerate(zip(tagger.tag([line.ids for line in read], places), right, strict=True), start=1):
        logs = {name: word.log_probabilities(name) for name in names}
        if PRIOR in correct:
            logs[PRIOR] = word.parts["share"] - word.parts["lift"] if "lift" in word.parts else np.zeros(1)
        for name, values in logs.items():
            correct[name].append(float(int(values.argmax()) in own))
        correct[RANDOM].append(len(own) / len(logs[method]))
        correct[FIRST].append(float(0 in own))
        progress("senses", done, len(targets))
    correct[ORACLE] = _commonest(targets, right)
    scores = SenseScores(
        run=str(loaded),
        checkpoint=loaded.snapshot,
        gold=str(gold),
        method=method,
        sources=tuple(sources),
        targets=len(targets),
        left_out=causes.found(),
        rows=tuple(_row(name, correct, targets) for name in correct),
        words=_by_word(targets, inventory, loaded, correct),
        stored=False,
    )
    measured = Measurement.of(loaded, gold, method, tuple(sources), len(targets), scores.rows[0].micro, scores.rows[0].macro)
    return scores.model_copy(update={"stored": remember(loaded.path, measured)})


def _scorable(
    gold: Sequence[GoldTarget], inventory: SenseInventory, reader: LineReader, causes: Causes
) -> tuple[list[GoldTarget], list[ReadLine], list[frozenset[int]]]:
    """Targets that can be scored, their lines, and the places of the right senses; the others are counted by cause."""
    targets, read, right = [], [], []
    for target in gold:
        cause, line, own = misplaced(target), ReadLine((), (), ()), frozenset[int]()
        if cause is None:
            line = reader.read(target.words)
            cause, own = _cause(target, line, inventory)
        if cause is not None:
            causes.add(cause, target)
            continue
        targets.append(target)
        read.append(line)
        right.append(own)
    return targets, read, right


def _cause(target: GoldTarget, line: ReadLine, inventory: SenseInventory) -> tuple[str | None, frozenset[int]]:
    if not line.known[target.position]:
        return UNKNOWN_WORD, frozenset()
    word = line.ids[line.place[target.position]]
    if not inventory.graph.entry(word).is_from_lexicon:
        return NOT_ANNOTATED, frozenset()
    names = inventory.names(word)
    if len(names) < 2:
        return ONE_SENSE, frozenset()
    own = matching_senses(target.sense, names)
    return (None if own else NO_SENSE), own


def _commonest(targets: Sequence[GoldTarget], right: Sequence[frozenset[int]]) -> list[float]:
    counts: dict[str, Counter[int]] = {}
    for target, own in zip(targets, right, strict=True):
        counts.setdefault(target.word, Counter()).update(own)
    best = {word: max(found, key=lambda sense: (found[sense], -sense)) for word, found in counts.items()}
    return [float(best[target.word] in own) for target, own in zip(targets, right, strict=True)]


def _row(name: str, correct: dict[str, list[float]], targets: Sequence[GoldTarget]) -> SenseAccuracy:
    here = np.array(correct[name])
    ones = np.ones(len(here))
    of_words = _means(here, targets)
    return SenseAccuracy(
        name=name,
        micro=interval(ratio_interval(here, ones)),
        macro=interval(ratio_interval(of_words, np.ones(len(of_words)))),
        above_random=interval(ratio_difference_interval((here, ones), (np.array(correct[RANDOM]), ones))),
    )


def _means(correct: NDArray[np.float64], targets: Sequence[GoldTarget]) -> NDArray[np.float64]:
    """(W,) the mean over the targets of each word."""
    number = np.unique([target.word for target in targets], return_inverse=True)[1]
    return np.bincount(number, correct) / np.bincount(number)


def _by_word(
    targets: Sequence[GoldTarget], inventory: SenseInventory, run: Run, correct: dict[str, list[float]]
) -> tuple[WordAccuracy, ...]:
    words = np.array([target.word for target in targets])
    form, rows = run.form(), []
    for word, count in Counter(words.tolist()).most_common():
        here = words == word
        accuracy = {name: float(np.array(values)[here].mean()) for name, values in correct.items()}
        senses = len(inventory.senses(run.vocabulary.id(form.word(word))))
        rows.append(WordAccuracy(word=word, senses=senses, targets=count, accuracy=accuracy))
    return tuple(rows)
