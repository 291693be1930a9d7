"""Compare an extended run with the run before, in which new words share the probability of ``<unk>``."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from sememekit.config import Record
from sememekit.data.batching import evaluation_columns
from sememekit.errors import DataError
from sememekit.measure import Tally
from sememekit.measure.ties import reciprocal_rank
from sememekit.progress import Progress, silent
from sememekit.runs.extend import ExtendReport, what_was_added
from sememekit.runs.run import Run
from sememekit.tasks.base import WordPredictor, require
from sememekit.text.vocabulary import Vocabulary

_ORDER: Final = 3  # longest n-gram of characters


class NewWordsRow(Record):
    """A model on the text: perplexity of all tokens, of the new words and of all others, and ranks of the new words."""

    name: str
    perplexity: float | None
    new: float | None
    others: float | None
    reciprocal_rank: float | None
    """Mean over the new words of 1 / the rank among all words; equal probabilities have the expected value of 1 / rank."""
    reciprocal_rank_among_new: float | None
    """Mean of 1 / the rank among the new words alone."""


class NewWordsReport(Record):
    """A fair comparison of a run with its extensions: every row predicts the same tokens."""

    run: str
    data: str
    split: str
    words: int
    tokens: int
    new_tokens: int
    """words, tokens, new_tokens: number of new words, of predicted tokens, and of tokens that are new words."""
    rows: tuple[NewWordsRow, ...]
    """``run`` with shares of ``<unk>`` for new words (equal, by counts of the file if any, by characters), then other runs."""


def compare_extended(
    run: Path | Run,
    extended: Sequence[Path],
    data: Path,
    *,
    split: str = "test",
    device: str = "auto",
    progress: Progress = silent,
) -> NewWordsReport:
    """Perplexity of a text with new words under the run before and after ``extend``.

    Before, p(w) = p(<unk>) share(w). The sum of the shares is as in the extended run; it is divided equally, by counts, or by a
    character model of the run's words.

    The first of ``extended`` was extended from ``run``; a further one may have been trained with the words. ``data`` are
    prepared with the words of the first: ``preprocess --vocabulary RUN2``. Raises ConfigError: the first was not extended, or a
    run predicts no words. Raises DataError: data of another vocabulary, or a run with other words."""
    before = Run.open(run, device=device)
    others = [Run.open(path, device=device) for path in extended]
    for one in (before, *others):
        require(one.task, WordPredictor, "extend --against")
    added = what_was_added(others[0])
    if added.of_vocabulary != before.vocabulary.fingerprint:
        raise DataError(
            f"{others[0]} was extended from vocabulary {added.of_vocabulary}, and {before} has "
            f"{before.vocabulary.fingerprint}; give the run that was extended: {added.run}"
        )
    larger = others[0].vocabulary
    different = next((other for other in others if {*other.vocabulary.tokens} != {*larger.tokens}), None)
    if different is not None:
        raise DataError(f"{different} has other words than {others[0]}, so that their perplexities cannot be compared")
    text = [larger.token(number) for number in others[0].data(data).tokens(split).tolist()]
    rows = _rows(before, text, added, _ways(before, added), progress)
    for other in others:
        rows += _rows(other, text, added, {"": None}, progress)
    new = {*added.words}
    numbers = {"words": len(new), "tokens": len(text) - 1, "new_tokens": sum(word in new for word in text[1:])}
    return NewWordsReport(run=str(before), data=str(data), split=split, **numbers, rows=tuple(rows))


Shares = NDArray[np.float64]


def _ways(run: Run, added: ExtendReport) -> dict[str, Shares | None]:
    """Return the shares of ``<unk>`` by each baseline, which knows only the run and the words."""
    by_counts, total = np.array(added.shares), sum(added.shares)
    ways: dict[str, Shares | None] = {"equal shares of <unk>": np.full(len(by_counts), total / len(by_counts))}
    if added.counted:
        ways["shares of <unk> by counts"] = by_counts
    spelled = _spelling(run.vocabulary)
    by_spelling = np.exp([spelled(word) for word in added.words])
    return {**ways, "shares of <unk> by characters": total * by_spelling / by_spelling.sum()}


def _spelling(vocabulary: Vocabulary) -> Callable[[str], float]:
    """The mean log-probability of a spelling's characters and of its end, by a trigram model learned from the words."""
    counts, before = Counter[str](), Counter[str]()
    words = [word for word in vocabulary.tokens if not word.startswith("<")]
    for word in words:
        for end, padded in enumerate(f"\2\2{word}\3"):
            for order in range(min(_ORDER, end + 1)) if end > 1 else ():
                begin = f"\2\2{word}\3"[end - order : end]
                counts[begin + padded] += 1
                before[begin] += 1
    kinds = len({character for word in words for character in word}) + 1

    def log_probability(word: str) -> float:
        padded, nats = f"\2\2{word}\3", 0.0
        for end in range(2, len(padded)):
            likely = 1.0 / (kinds + 1)
            for order in range(_ORDER):
                begin = padded[end - order : end]
                likely = (counts[begin + padded[end]] + likely) / (before[begin] + 1.0)
            nats += math.log(likely)
        return nats / (len(word) + 1)

    return log_probability


@torch.no_grad()
def _rows(
    run: Run, text: Sequence[str], added: ExtendReport, ways: Mapping[str, Shares | None], progress: Progress
) -> list[NewWordsRow]:
    """Return a row for each division of ``<unk>``; None for a run that knows the new words."""
    task, vocabulary = require(run.task, WordPredictor, "extend"), run.vocabulary
    number = {word: place for place, word in enumerate(added.words)}
    _, places, mask = evaluation_columns(np.arange(len(text)), task.evaluation_batch_size)
    which = np.array([number.get(text[place], -1) for place in places[mask].tolist()])
    unknown, ids = vocabulary.unknown_id or 0, torch.from_numpy(vocabulary.encode(added.words)).to(task.device)
    parts: dict[str, list[tuple[Shares, Shares, Shares]]] = {name: [] for name in ways}
    done = 0
    for chunk in task.score(vocabulary.encode(text), progress=lambda some, total: progress(str(run), some, total)):
        assert chunk.hidden is not None
        hidden, own = chunk.hidden[chunk.mask], chunk.nats[chunk.mask].double().cpu().numpy()
        here = which[done : done + len(own)]
        is_unknown = (chunk.targets[chunk.mask] == unknown).cpu().numpy() & (here < 0)
        done += len(own)
        new = here[here >= 0]
        log_probs = task.decoder.log_probs(hidden[torch.from_numpy(here >= 0).to(task.device)])
        for name, shares in ways.items():
            if shares is None:
                own_N1 = log_probs.gather(1, ids[torch.from_numpy(new).to(task.device)][:, None])
                every = (log_probs, log_probs[:, ids])
                ranks = [[(some > own_N1).sum(dim=1), (some == own_N1).sum(dim=1)] for some in every]
                first, second = (reciprocal_rank(*(number.cpu().numpy() for number in both)) for both in ranks)
                parts[name].append((own, first, second))
                continue
            own_N1 = log_probs[:, [unknown]] + torch.from_numpy(np.log(shares[new])).to(log_probs)[:, None]
            above = (shares[None, :] > shares[new][:, None]).sum(axis=1)
            like = (shares[None, :] == shares[new][:, None]).sum(axis=1)
            higher = (log_probs > own_N1).sum(dim=1).cpu().numpy()
            taken = np.where(here >= 0, np.log(shares[here]), np.where(is_unknown, math.log(added.unknown_share), 0.0))
            parts[name].append((own - taken, reciprocal_rank(higher + above, like), reciprocal_rank(above, like)))
    found = []
    for name, own_parts in parts.items():
        nats, first, second = (np.concatenate(part) for part in zip(*own_parts, strict=True))
        found.append(_row(f"{run}, {name}" if name else str(run), nats, which >= 0, first, second))
    return found


def _row(name: str, nats: Shares, is_new: NDArray[np.bool_], *reciprocal: Shares) -> NewWordsRow:
    def perplexity(some: NDArray[np.bool_]) -> float | None:
        return Tally(float(nats[some].sum()), int(some.sum())).perplexity if some.any() else None

    whole, new, others = map(perplexity, (np.ones_like(is_new), is_new, ~is_new))
    first, second = (float(ranks.mean()) if len(ranks) else None for ranks in reciprocal)
    return NewWordsRow(
        name=name, perplexity=whole, new=new, others=others, reciprocal_rank=first, reciprocal_rank_among_new=second
    )
