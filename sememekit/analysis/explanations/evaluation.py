"""``sememekit eval --explanations``: how often the next word has the sememes that an explanation lists."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from sememekit.analysis.contexts import PredictedText
from sememekit.analysis.explanations.scores import FREQUENCY, Gold, Scores, score_rankings
from sememekit.analysis.explanations.sememe_mass import CONTEXTS_AT_ONCE, COUNTS, SememeMasses, contexts_of, mean_mass, rankings
from sememekit.config import Record
from sememekit.decoders.base import Sensed
from sememekit.errors import ConfigError, DataError
from sememekit.progress import Progress, silent
from sememekit.runs.run import OfRun, Run
from sememekit.tasks.base import declares
from sememekit.tasks.scoring import sentences_of
from sememekit.tasks.writing import Predictor, TextWriter, predictor

TOPS: Final = (1, 5, 10)


class LeftOut(Record):
    """Positions that are not scored: the gold word is a special token, a mark with sememes by rule, or unannotated."""

    by_rule: int
    not_annotated: int


class ExplanationScores(OfRun, Scores):
    """Report of ``eval --explanations``; see docs/explaining.md."""

    decoder: str
    split: str
    data: str
    mean: str
    """The text or counts that give the mean probabilities."""
    positions: int
    """Number of scored positions, whose gold word has sememes from a lexicon."""
    left_out: LeftOut
    sampled: str | None
    """Number of sentences in the sample; None if all sentences were read."""
    sentences: int
    """Number of sentences with a scored position, from which the bootstrap draws."""
    unit: str
    """Definition of a sentence in this text."""
    num_sememes: int
    """K, the sememes that are ranked."""


def evaluate_explanations(
    run: Path | Run,
    *,
    split: str = "test",
    tops: Sequence[int] = TOPS,
    mean: str = COUNTS,
    data: Path | None = None,
    contexts: int | None = None,
    seed: int = 1,
    progress: Progress = silent,
) -> ExplanationScores:
    """Compare the sememes that ``explain`` would list before each word of a text with the sememes of the next word.

    At each position the model has read the words before, and ranks the K sememes of its graph that can be gold. All senses of
    the next word give gold sememes, since its sense is not annotated. docs/explaining.md has the figures and the rankings:
    ``sememe_mass.rankings``, the training frequency of the sememes, and sememes drawn at random (expected values, no draw).

    ``tops`` are the values of k; ``seed`` is for the sample of ``contexts`` positions and for the bootstrap. Other arguments as
    ``sememekit eval --help``; the stages of ``progress`` are ``mean`` and ``contexts``. Raises ConfigError: the output layer
    has no senses, the task predicts no words, or a number or split is out of range. Raises DataError: the data are absent or
    lack the split, or no word of it has sememes from a lexicon."""
    if not tops or min(tops) < 1 or (contexts is not None and contexts < 1):
        raise ConfigError(f"eval --explanations: --top and --contexts must be 1 at least, given {list(tops)} and {contexts}")
    loaded = Run.open(run)
    task, graph = predictor(loaded.task, "eval --explanations"), loaded.graph
    prepared, tops = loaded.data(data), tuple(sorted(set(tops)))
    name = loaded.plan.decoder.name if loaded.plan.decoder else ""
    text = PredictedText(task, prepared, split)
    with loaded.autocast(), torch.no_grad():
        empty = torch.zeros_like(next(contexts_of(task, text, split))[1][:1])
        if graph is None or not isinstance(task.decoder, Sensed):
            raise ConfigError(
                f"eval --explanations: the output layer {name!r} of {run} gives senses and sememes no probabilities; look "
                "at it through a lexicon (--source open), or train one that does: sememekit train --decoder sdlm --data DIR "
                "--graph FILE --out DIR"
            )
        at_rest = task.decoder.sense_probabilities(empty)
        units, unit = units_of(task, text, split)
        chosen = np.ones(len(text.words), dtype=np.bool_)
        if contexts is not None and contexts < len(chosen):
            chosen = drawn_sentences(units, contexts, seed)
        scored = chosen & graph.from_lexicon[text.words]
        if not scored.any():
            raise DataError(f"eval --explanations: no word of {prepared.folder}, split {split}, has sememes from a lexicon")
        gold, masses = Gold.of(graph, loaded.train_counts), SememeMasses(graph, task.device)
        mean_K, over = mean_mass(loaded, task, masses, empty, mean, prepared, partial(progress, "mean"))
        ruled_out_K = torch.where(torch.from_numpy(gold.possible_K).to(task.device), 0.0, -torch.inf)
        most = min(tops[-1], int(gold.possible_K.sum()))
        ranked: dict[str, NDArray[np.int32]] = {}
        rows, done = np.cumsum(scored) - 1, 0
        for position, hidden in contexts_of(task, text, split):
            counted = scored[position]
            place, wanted = rows[position[counted]], hidden[torch.from_numpy(counted).to(hidden.device)]
            for begin in range(0, len(wanted), CONTEXTS_AT_ONCE):
                part = slice(begin, begin + CONTEXTS_AT_ONCE)
                given = task.decoder.sense_probabilities(wanted[part])
                found_NK = rankings(masses(given.log_senses_NS), mean_K, given.gates_NK, at_rest.gates_NK[0])
                for ranking, scores_NK in found_NK.items():
                    kept = ranked.setdefault(ranking, np.zeros((int(scored.sum()), most), dtype=np.int32))
                    kept[place[part]] = (scores_NK + ruled_out_K).topk(most, dim=1).indices.int().cpu().numpy()
            done += len(position)
            progress("contexts", done, len(text.words))
    frequent = np.argsort(np.where(gold.possible_K, -gold.count_K, 1), kind="stable")[:most].astype(np.int32)
    ranked[FREQUENCY] = np.broadcast_to(frequent, (int(scored.sum()), most))
    places = np.flatnonzero(scored)
    found = score_rankings(gold, text.words[places], loaded.train_counts, units[places], ranked, tops, seed)
    words, by_rule = text.words[chosen], graph.annotated & ~graph.from_lexicon
    return ExplanationScores(
        **loaded.of_run,
        decoder=name,
        split=split,
        data=str(prepared.folder),
        mean=over,
        positions=len(places),
        left_out=LeftOut(by_rule=int(by_rule[words].sum()), not_annotated=int((~graph.annotated)[words].sum())),
        sampled=None if chosen.all() else f"{len(np.unique(units[chosen])):,} of {len(np.unique(units)):,}, seed {seed}",
        sentences=len(np.unique(units[places])),
        unit=unit,
        num_sememes=int(gold.possible_K.sum()),
        **dict(found),
    )


def units_of(task: Predictor, text: PredictedText, split: str) -> tuple[NDArray[np.int64], str]:
    """The sentence number of each prediction (P,), and the definition of a sentence: by ``sentences_of``, or a pair."""
    if declares(task, TextWriter):
        ends = text.words == task.end
        return np.cumsum(ends) - ends, "pairs"
    return sentences_of(text.data, split)


def drawn_sentences(units: NDArray[np.int64], contexts: int, seed: int) -> NDArray[np.bool_]:
    """Draw sentences with at most ``contexts`` positions; return a mask (P,) of their positions."""
    order = np.random.default_rng(seed).permutation(int(units.max()) + 1)
    total = np.cumsum(np.bincount(units, minlength=len(order))[order])
    kept = np.zeros(len(order), dtype=np.bool_)
    kept[order[: max(1, int(np.searchsorted(total, contexts, side="right")))]] = True
    return kept[units]
