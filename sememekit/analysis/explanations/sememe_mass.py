"""The probability of a sememe in a context, summed over the senses that have it, and its gain over the mean."""

from collections.abc import Iterator
from functools import partial
from typing import Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.analysis.contexts import PredictedText
from sememekit.data.batching import evaluation_columns
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Sensed
from sememekit.decoders.sense_structure import SenseStructure
from sememekit.errors import ConfigError
from sememekit.layers import segment_logsumexp
from sememekit.progress import OneStage, silent
from sememekit.runs.published import PublishedRun
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import declares
from sememekit.tasks.writing import Predictor, TextWriter

COUNTS: Final = "counts"  # take the mean of a sememe over the counts of the words, without reading a text
MIN_COUNT: Final = 10  # sememes with fewer training tokens are shown as uncertain

_ROWS_AT_ONCE: Final = 64
CONTEXTS_AT_ONCE: Final = 64


@final
class SememeMasses:
    """Posterior masses of sememes: m_k(g) = sum of p(s | g) over the senses s that hold sememe k, with context g.

    The mass is the probability, 0 to 1, that the next word is used in a sense with the sememe. A sense has several sememes, so
    the masses of a context do not sum to one but to the expected number of sememes of the next sense.

    >>> masses = SememeMasses(graph, device)
    >>> masses_NK = masses(decoder.sense_probabilities(hidden_NH).log_senses_NS)

    The cost is one addition for each context and each edge between a sense and a sememe."""

    def __init__(self, graph: SememeGraph, device: torch.device) -> None:
        self.structure = SenseStructure.from_graph(graph, symmetric=False).to(device)

    def __call__(self, log_senses_NS: Tensor) -> Tensor:
        """(N, S) log-probabilities of senses -> (N, K) masses."""
        return self.structure.onto_sememes(log_senses_NS.exp().T).T


def mean_by_counts(decoder: Sensed, masses: SememeMasses, counts: NDArray[np.integer], empty_1H: Tensor) -> Tensor:
    """(K,) the mean mass over the words of the counted text, without their contexts.

    The mean is sum_w f(w) sum_s p(s | w, g = 0) over words w and their senses s with sememe k; f(w) is the share of w in the
    counts. If the model's mean probability of each word is f(w), this approximates the mean mass over the training text: only
    the division of a word's probability among its senses differs.

    Words of count 0, such as words only in sources, do not contribute to ``counts`` (V,). ``empty_1H`` is the empty context."""
    structure = masses.structure
    senses_S = decoder.sense_probabilities(empty_1H).log_senses_NS[0].double()
    within_S = senses_S - segment_logsumexp(senses_S, structure.word_of_sense, structure.num_words)[structure.word_of_sense]
    counts_V = torch.from_numpy(counts.astype(np.float64)).to(senses_S.device)
    log_frequency_V = (counts_V / counts_V.sum().clamp_min(1)).log()
    return _positive(masses((within_S + log_frequency_V[structure.word_of_sense])[None])[0])


def mean_over_text(
    task: Predictor, data: PreparedData, split: str, masses: SememeMasses, progress: OneStage = silent
) -> Tensor:
    """(K,) the mean mass over all predictions of a split, each from its own context. As slow as scoring the split."""
    text, done = PredictedText(task, data, split), 0
    total_K = torch.zeros((), dtype=torch.float64, device=task.device)
    for _, hidden in contexts_of(task, text, split):
        for part in hidden.split(CONTEXTS_AT_ONCE):
            assert isinstance(task.decoder, Sensed)
            total_K = total_K + masses(task.decoder.sense_probabilities(part).log_senses_NS).double().sum(dim=0)
        done += len(hidden)
        progress(done, len(text.words))
    return _positive(total_K / done)


def _positive(mean_K: Tensor) -> Tensor:
    """Convert means from float64 to float32; values above 0 stay above 0."""
    return mean_K.clamp_min(torch.finfo(torch.float32).tiny).where(mean_K > 0, 0.0).float()


def mean_mass(
    run: Run,
    task: Predictor,
    masses: SememeMasses,
    empty_1H: Tensor,
    over: str = COUNTS,
    data: PreparedData | None = None,
    progress: OneStage = silent,
) -> tuple[Tensor, str]:
    """The mean mass of each sememe, as a reference for one context: over the word counts of a run, or over a split of its data.

    Returns (K,) means, and a description of their text. The mean is 0 for sememes without senses and, over ``counts``, for
    sememes of uncounted words alone. The output layer of ``task`` has senses; ``empty_1H`` are zeros; ``data`` (default: of the
    training) has the split. Raises ConfigError: ``over`` is neither ``counts`` nor a split. Raises DataError: absent data."""
    assert isinstance(task.decoder, Sensed)
    if over == COUNTS:
        return mean_by_counts(
            task.decoder, masses, run.train_counts, empty_1H
        ), f"over the word counts of {run.counted}, without context"
    prepared = data if data is not None else run.data()
    if over not in prepared.splits:
        raise ConfigError(
            f"--mean {over}: {prepared.folder} has no such split; allowed: {COUNTS} (no text is read), "
            f"{', '.join(prepared.splits)}"
        )
    make = partial(mean_over_text, task, prepared, over, masses, progress)
    mean_K = run.kept_mean(prepared, over, make) if isinstance(run, PublishedRun) else make()
    return mean_K, f"over the {len(PredictedText(task, prepared, over).words):,} predictions of {over}"


def contexts_of(task: Predictor, text: PredictedText, split: str) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """Yield every prediction of a text once, without dropout, by chunks: positions (n,) and contexts (n, H) on the device.

    A stream is read as in ``WordPredictor.score``, but the output layer is not computed."""
    if declares(task, TextWriter):
        for position, _, hidden in text.read(task, lambda done, total: None):
            yield position, hidden.to(task.device)
        return
    inputs, _, mask = evaluation_columns(np.asarray(text.data.tokens(split)), text.columns)
    state, length = task.encoder.start(text.columns), len(inputs)
    for begin in range(0, length, _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        with torch.no_grad():
            hidden, state = task.contexts(torch.from_numpy(inputs[rows]).to(task.device), state)
        real = mask[rows]
        position = np.arange(begin, begin + len(real))[:, None] + np.arange(text.columns) * length
        # by columns, so that contexts of one text stand together, which a published model reads in one pass
        yield position.T[real.T], hidden.transpose(0, 1)[torch.from_numpy(real.T).to(task.device)]


def rankings(masses_NK: Tensor, mean_K: Tensor, gates_NK: Tensor, rest_K: Tensor) -> dict[str, Tensor]:
    """Return the rankings of sememes in a context, each (N, K); with mass m, its mean n, gate q and the gate at rest q0.

    ``rise`` m - n, ``mass`` m, ``information`` m log(m / n), ``lift`` m / n, ``gates`` q, ``raised gates`` q - q0. A sememe
    with n = 0 has no lift and is last by ``information`` and ``lift``."""
    lift_NK, none_K = masses_NK / mean_K, mean_K == 0
    information_NK = masses_NK * lift_NK.clamp_min(torch.finfo(masses_NK.dtype).tiny).log()
    return {
        "rise": masses_NK - mean_K,
        "mass": masses_NK,
        "information": information_NK.masked_fill(none_K, -torch.inf),
        "lift": lift_NK.masked_fill(none_K, -torch.inf),
        "gates": gates_NK,
        "raised gates": gates_NK - rest_K,
    }
