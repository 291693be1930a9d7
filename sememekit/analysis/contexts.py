"""The predictions of a model in a split (stream or pairs): words, nats, and the hidden states before the words."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError
from sememekit.progress import OneStage
from sememekit.tasks.base import declares
from sememekit.tasks.writing import Predictor, TextWriter

CONTEXT_WORDS: Final = 40  # words of a context that are shown if the text has no end-of-sentence marks


class PredictedText:
    """The predicted words: a stream, or the targets of pairs one after the other, each with its end.

    ``words`` (P,) has the word of each prediction, in order. ``columns``: number of columns of a stream; 1 for pairs."""

    def __init__(self, task: Predictor, data: PreparedData, split: str) -> None:
        self.data, self._split, self.is_pairs = data, split, declares(task, TextWriter)
        if declares(task, TextWriter):
            examples = data.examples(split)
            targets = [np.asarray(examples.text(number, 1)) for number in range(len(examples))]
            self._begins = np.cumsum([0, *(len(target) + 1 for target in targets)])
            self.words = np.concatenate([part for target in targets for part in (target, [task.end])]).astype(np.int64)
            self.columns = 1
        else:
            self._stream = data.tokens(split)
            self.words = np.asarray(self._stream[1:], dtype=np.int64)
            self.columns = min(task.evaluation_batch_size, len(self.words))

    def read(
        self, task: Predictor, progress: OneStage
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], Tensor]]:
        """Every prediction once, in any order: positions (n,), nats (n,) and contexts (n, H), chunk by chunk."""
        begin, length = 0, -(-len(self.words) // self.columns)
        if declares(task, TextWriter):
            chunks = task.score_pairs(self.data, self._split, progress)
        else:
            chunks = task.score(self._stream, batch_size=self.columns, progress=progress)
        for chunk in chunks:
            if chunk.hidden is None:
                raise ConfigError("analyze needs one context for each predicted word, and this task has none")
            mask = chunk.mask.cpu()
            if chunk.places is not None:
                position = self._begins[chunk.places[:, 0]] + chunk.places[:, 1]
            else:
                rows = torch.arange(begin, begin + len(mask))[:, None] + torch.arange(self.columns) * length
                position = rows[mask].numpy()
                begin += len(mask)
            yield position, chunk.nats.cpu()[mask].double().numpy(), chunk.hidden.cpu()[mask]

    def context(self, position: int) -> tuple[str, ...]:
        """Return the words before a prediction: the previous and this sentence, or the last words if sentence ends are not
        marked. A pair gives the first words of its source, an arrow, and the target so far."""
        token = self.data.vocabulary.token
        if self.is_pairs:
            example = int(np.searchsorted(self._begins, position, side="right")) - 1
            source = self.data.examples(self._split).text(example, 0)
            cut = ("...",) if len(source) > CONTEXT_WORDS else ()
            written = self.words[self._begins[example] : position]
            return (*map(token, source[:CONTEXT_WORDS].tolist()), *cut, "->", *map(token, written.tolist()))
        begin = max(0, position + 1 - CONTEXT_WORDS)
        end = self.data.vocabulary.end_id if self.data.signature.end_of_sentence else None
        if end is not None:
            ends = np.flatnonzero(self._stream[: position + 1] == end)
            begin = int(ends[-2]) + 1 if len(ends) > 1 else 0
        return tuple(token(int(index)) for index in self._stream[begin : position + 1])


def read_contexts(
    task: Predictor, text: PredictedText, chosen: npt.NDArray[np.int64], progress: OneStage
) -> tuple[npt.NDArray[np.float64], Tensor]:
    """Return the nats (P,) of all predictions of a text in order, and the contexts (N, H) of the ``chosen`` ones."""
    nats = np.zeros(len(text.words))
    wanted = np.full(len(text.words), -1)
    wanted[chosen] = np.arange(len(chosen))
    kept: Tensor | None = None
    for position, each, hidden in text.read(task, progress):
        nats[position] = each
        place = torch.from_numpy(wanted[position])
        kept = hidden.new_empty(len(chosen), hidden.shape[-1]) if kept is None else kept
        kept[place[place >= 0]] = hidden[place >= 0]
    assert kept is not None
    return nats, kept


def log_prob_rows(task: Predictor, hidden: Tensor) -> Iterator[npt.NDArray[np.float64]]:
    """Yield rows (b, V) of log-probabilities in float64, in order: the run's weights in double precision."""
    single = next(task.parameters()).dtype
    task.double()
    try:
        with torch.no_grad():
            for part in hidden.split(64):
                yield task.decoder.log_probs(part.to(task.device, torch.float64)).cpu().numpy()
    finally:
        task.to(single)
