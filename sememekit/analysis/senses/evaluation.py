"""``sememekit eval RUN --senses GOLD``: how often a model tags a word with its gold sense."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, get_args

import numpy as np

from sememekit.analysis.senses.gold import GoldTarget, LeftOut, left_out, matching_senses, misplaced, read_gold
from sememekit.analysis.senses.inventory import SenseInventory, inventory_of
from sememekit.analysis.senses.tagger import METHODS, LineReader, Method, ReadLine, SenseTagger
from sememekit.analysis.senses.tagging import Measurement, remember
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.measure.intervals import Interval, ratio_difference_interval, ratio_interval
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run

RANDOM: Final = "at random"
FIRST: Final = "first sense of the lexicon"
ORACLE: Final = "commonest sense of each word (oracle)"


class SenseAccuracy(Record):
    """Accuracy of a method or a baseline."""

    name: str
    micro: Interval
    """Share of the targets, with a bootstrap over targets."""
    macro: Interval
    """Mean over words of the share of their targets, with a bootstrap over words."""
    above_random: Interval
    """``micro`` minus the accuracy at random, paired over targets."""


class WordAccuracy(Record):
    """One word: its number of senses in the lexicon, its targets, and the accuracy of each method, by name."""

    word: str
    senses: int
    targets: int
    accuracy: dict[str, float]


class SenseScores(OfRun):
    """Report of ``evaluate_senses``."""

    gold: str
    method: Method
    sources: tuple[str, ...]
    targets: int
    left_out: tuple[LeftOut, ...]
    """Targets that cannot be scored, by cause."""
    rows: tuple[SenseAccuracy, ...]
    """The requested method, the other methods, then the baselines."""
    words: tuple[WordAccuracy, ...]
    stored: bool
    """True if the measurement was stored beside the run, where ``tag`` reads it."""


def evaluate_senses(
    run: Path | Run, gold: Path, *, method: Method = "combined", sources: Sequence[str] = (), progress: Progress = silent
) -> SenseScores:
    """Compare the senses that a language model tags with gold senses.

    Every method of ``SenseTagger`` that the model supports is scored on the same targets and candidate senses. Four baselines:
    a random sense (expected value), the first sense of the lexicon, the most probable sense in an empty context, and the most
    frequent gold sense of the word (an oracle). ``matching_senses`` maps gold senses to senses of the lexicon. The accuracy of
    ``method``, which comes first, is stored beside the run for ``tag``. ``sources``: as ``inventory_of``. Raises DataError: the
    gold cannot be read, or no target is left to score. Raises ConfigError: the task predicts no words, or words have no senses.

    >>> scores = evaluate_senses(Path("runs/sdlm"), Path("gold.tsv"))
    >>> scores.rows[0].micro.value, scores.left_out"""
    loaded = Run.open(run)
    inventory, causes = inventory_of(loaded, sources), dict[str, list[GoldTarget]]()
    scored = list(_scorable(read_gold(gold), inventory, LineReader(loaded), causes))
    without = left_out(str(gold), causes)
    if not scored:
        told = "; ".join(f"{one.count:,} {one.cause} ({one.first})" for one in without)
        raise DataError(
            f"--senses {gold}: no target can be scored with {loaded}: {told}; build the graph of the run from the lexicon of "
            "the gold senses, or name it with --source FORMAT:PATH"
        )
    SenseTagger(loaded, inventory, METHODS[method])  # refuses a method that the model has not
    correct = _correct(SenseTagger(loaded, inventory), method, scored, progress)
    words = [one.target.word for one in scored]
    scores = SenseScores(
        **loaded.of_run,
        gold=str(gold),
        method=method,
        sources=tuple(sources),
        targets=len(scored),
        left_out=without,
        rows=tuple(_row(name, correct, words) for name in correct),
        words=_by_word(scored, correct),
        stored=False,
    )
    measured = Measurement(
        weights=loaded.weights_sha256,
        gold=gold.name,
        gold_sha256=hashlib.sha256(gold.read_bytes()).hexdigest(),
        micro=scores.rows[0].micro,
        macro=scores.rows[0].macro,
        **scores.model_dump(include={"method", "sources", "targets"}),
    )
    return scores.model_copy(update={"stored": remember(loaded.path, measured)})


class _Scored(NamedTuple):
    """A target that can be scored: the ids of its line, its place in the line, its senses, and the right ones."""

    target: GoldTarget
    ids: tuple[int, ...]
    place: int
    senses: int
    right: frozenset[int]


def _scorable(
    gold: Iterable[GoldTarget], inventory: SenseInventory, reader: LineReader, causes: dict[str, list[GoldTarget]]
) -> Iterator[_Scored]:
    """Targets that can be scored; the others go to ``causes``."""
    for target in gold:
        cause = misplaced(target)
        line = ReadLine((), (), ()) if cause else reader.read(target.words)
        if cause is None:
            place = line.place[target.position]
            word = line.ids[place]
            names = inventory.names(word)
            right = matching_senses(target.sense, names)
            if not line.known[target.position]:
                cause = "word outside the vocabulary"
            elif not inventory.graph.entry(word).is_annotated:
                cause = "word without annotation in the lexicon"
            elif len(names) < 2 or not right:
                cause = "sense that the lexicon lacks" if len(names) > 1 else "word with one sense in the lexicon"
            else:
                yield _Scored(target, line.ids, place, len(names), right)
        if cause is not None:
            causes.setdefault(cause, []).append(target)


def _correct(tagger: SenseTagger, method: Method, scored: Sequence[_Scored], progress: Progress) -> dict[str, list[float]]:
    """Return the correctness of each method and baseline on each target, 0 to 1; ``method`` comes first."""
    able = (name for name in get_args(Method) if set(METHODS[name]) & set(tagger.parts))
    names = sorted(able, key=lambda name: name != method)
    found: dict[str, list[float]] = {name: [] for name in (*names, RANDOM, FIRST)}
    tagged = tagger.tag([one.ids for one in scored], [[one.place] for one in scored])
    for done, ([word], one) in enumerate(zip(tagged, scored, strict=True), start=1):
        logs = {name: word.log_probabilities(name) for name in names}
        if "lift" in tagger.parts:
            prior = word.parts["share"] - word.parts["lift"] if "lift" in word.parts else np.zeros(one.senses)
            logs["sense prior of the model"] = prior
        for name, values in logs.items():
            found.setdefault(name, []).append(float(int(values.argmax()) in one.right))
        found[RANDOM].append(len(one.right) / one.senses)
        found[FIRST].append(float(0 in one.right))
        progress("senses", done, len(scored))
    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for one in scored:
        counts[one.target.word].update(one.right)
    best = {word: max(own, key=lambda sense: (own[sense], -sense)) for word, own in counts.items()}
    return found | {ORACLE: [float(best[one.target.word] in one.right) for one in scored]}


def _row(name: str, correct: dict[str, list[float]], words: Sequence[str]) -> SenseAccuracy:
    here, ones = np.array(correct[name]), np.ones(len(words))
    number = np.unique(words, return_inverse=True)[1]
    of_words = np.bincount(number, here) / np.bincount(number)
    micro, macro = ratio_interval(here, ones), ratio_interval(of_words, np.ones(len(of_words)))
    above = ratio_difference_interval((here, ones), (np.array(correct[RANDOM]), ones))
    return SenseAccuracy(name=name, micro=micro, macro=macro, above_random=above)


def _by_word(scored: Sequence[_Scored], correct: dict[str, list[float]]) -> tuple[WordAccuracy, ...]:
    words, rows = np.array([one.target.word for one in scored]), []
    for word, count in Counter(words.tolist()).most_common():
        here = words == word
        accuracy = {name: float(np.array(values)[here].mean()) for name, values in correct.items()}
        senses = scored[int(here.argmax())].senses
        rows.append(WordAccuracy(word=word, senses=senses, targets=count, accuracy=accuracy))
    return tuple(rows)
