"""The cloze task: predict each word of a text from the words on both its sides."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Self, final

import numpy as np
import torch
from torch import Tensor

from sememekit.data.prepared import PreparedData
from sememekit.encoders.base import Encoder, reorder, reversal
from sememekit.layers import at_least_single, evaluating
from sememekit.measure.perplexity import Scored, perplexity_metrics
from sememekit.tasks.base import BatchLoss, Carry, Kind, PrimaryMetric
from sememekit.tasks.language_model import RunningText
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.scoring import score_targets


@final
class Cloze(RunningText):
    """A model of p(word | words before it, words after it): one encoder reads from each side, the output layer reads both.

    >>> model = Run.open("runs/cloze").task
    >>> hidden_TBH = model.both_sides(tokens_TB)
    >>> log_probs_TBV = model.decoder.log_probs(hidden_TBH)

    The context of word t is the sum of what the forward encoder gives after word t - 1 and the backward one after word t + 1;
    at the ends of a segment a side gives nothing. Both are the encoder of the plan, with weights of their own, and carry no
    state from segment to segment. The product of these probabilities is no probability of the text, so the metric is the
    pseudo-perplexity exp(mean -log p), which cannot be compared with a perplexity.
    """

    kind: ClassVar[Kind] = "cloze"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"cloze"})
    summary, trained_by = "a model that predicts a word from both its sides", "cloze"
    left_to_right: ClassVar[bool] = True
    metric: ClassVar[PrimaryMetric] = PrimaryMetric("pseudo_perplexity", lower_is_better=True)
    back: Encoder

    @classmethod
    def build(cls, settings: RunningText.Settings, resources: TaskResources) -> Self:
        model = super().build(settings, resources)
        model.back = resources.make_encoder(settings.embedding_size)
        return model

    def both_sides(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Contexts (T, B, H) of each of ``tokens`` (T, B) from all others of its column; ``lengths`` as encoders take it."""
        return self._both_sides(tokens, lengths)[1]

    def _both_sides(self, tokens: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x_TBE, (steps, batch) = self._vectors(tokens), tokens.shape
        order = reversal(steps, lengths, batch, tokens.device)
        forth = self.encoder(x_TBE, tokens, self.encoder.start(batch), lengths).hidden
        back = self.back(reorder(x_TBE, order), reorder(tokens, order), self.back.start(batch), lengths).hidden
        back = reorder(back, order)
        edge = x_TBE.new_zeros(1, batch, self.encoder.output_size)
        hidden_TBH = torch.cat([edge, forth[:-1]]) + torch.cat([back[1:], edge])
        return hidden_TBH, self._dropped(hidden_TBH, self.settings.output_dropout)

    def start(self, data: PreparedData) -> Carry:
        return ()

    def loss(self, batch: Tensor, carry: Carry) -> BatchLoss:
        """All words of a segment but the last, which is the first of the next segment."""
        hidden_TBH, contexts_TBH = self._both_sides(batch)
        nats_TB = self.decoder.nll(contexts_TBH[:-1], batch[:-1])
        scale = len(nats_TB) / self.settings.chunk_length if self.settings.random_lengths else 1.0
        penalty = self._penalty(hidden_TBH, contexts_TBH)
        return BatchLoss(at_least_single(nats_TB).sum(), nats_TB.numel(), penalty, (), rate_scale=scale)

    def score(self, lines: Sequence[np.ndarray]) -> Iterator[Scored]:
        """Score all words of each line, each line read apart."""
        size = self.settings.evaluation_batch_size
        with evaluating(self), torch.no_grad():
            for begin in range(0, len(lines), size):
                part = [torch.from_numpy(np.asarray(line, dtype=np.int64)) for line in lines[begin : begin + size]]
                lengths = torch.tensor([len(line) for line in part])
                tokens_TB = torch.nn.utils.rnn.pad_sequence(part).to(self.device)
                mask_TB = (torch.arange(len(tokens_TB))[:, None] < lengths).to(self.device)
                yield score_targets(self.decoder, self.both_sides(tokens_TB, lengths), tokens_TB, mask_TB)

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        tokens, length = data.tokens(split), self.settings.evaluation_chunk_length
        found = perplexity_metrics(self.score([tokens[begin : begin + length] for begin in range(0, len(tokens), length)]))
        return {f"pseudo_{name}" if "perplexity" in name else name: value for name, value in found.items()}

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        return {f"pseudo_{name}": value for name, value in super().unigram_baseline(data, split).items()}
