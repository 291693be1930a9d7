"""Language modelling: predict each word of a stream from the words before it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from sememekit.config import OnlyWith
from sememekit.data.batching import evaluation_columns, random_segments, training_columns
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder
from sememekit.encoders.base import Encoded, Encoder, FromFiles, State
from sememekit.layers import at_least_single, evaluating, shared_dropout, uniform_embedding
from sememekit.measure import unigram_tally
from sememekit.measure.perplexity import Scored, perplexity_metrics
from sememekit.progress import OneStage, silent
from sememekit.tasks.base import BatchLoss, Carry, Divided, PrimaryMetric, WordPredictor
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.scoring import score_targets
from sememekit.tasks.vectors import StartSettings
from sememekit.text.vocabulary import Vocabulary


@final
class LanguageModel(WordPredictor, Divided):
    """Embedding -> dropout -> encoder -> dropout -> output layer, trained by truncated back-propagation through time.

    >>> model = LanguageModel(LanguageModel.Settings(), words, embedding, encoder, decoder)
    >>> loss = model.loss(target_TB, model.encoder.start(2))
    >>> perplexity = tallies(model.score(ids_N))[0].perplexity

    The stream is cut into B columns; the state is zero at the start of an epoch or evaluation and is carried from segment to
    segment. The loss is the mean over the tokens of a segment; docs/perplexity.md defines the divisors.

    Regularisation by Merity et al. 2018 for any encoder: dropout of word types, locked dropout masks, segments of random
    length, and two penalties on the activations of the last layer, which change the gradient but no reported loss."""

    metric: ClassVar[PrimaryMetric] = PrimaryMetric("perplexity", lower_is_better=True)

    class Settings(StartSettings):
        unit_lengths: ClassVar[dict[str, float]] = {"adam": 0.33}
        only_with: ClassVar[Mapping[str, OnlyWith]] = dict.fromkeys(
            ("length_halving", "length_spread", "length_excess", "shortest_chunk"), OnlyWith("random_lengths", values=(True,))
        )

        embedding_size: int = Field(default=650, ge=1)
        """E, the size of the word vectors."""
        input_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the input word vectors."""
        output_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the output contexts."""
        locked_dropout: bool = False
        """One input and output dropout mask for all steps of a segment, instead of a mask for each step."""
        word_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate at which a word type is dropped from the input of a whole segment (``dropoute``)."""
        activation_penalty: float = Field(default=0.0, ge=0.0)
        """Weight of the mean square of the contexts after output dropout (AR, ``alpha``)."""
        temporal_penalty: float = Field(default=0.0, ge=0.0)
        """Weight of the mean square of the change of the contexts from step to step, before output dropout (TAR, ``beta``)."""
        batch_size: int = Field(default=20, ge=1)
        """B, columns in training."""
        chunk_length: int = Field(default=35, ge=1)
        """T, tokens through which gradients flow back."""
        random_lengths: bool = False
        """Segments of random length about ``chunk_length``; the rate of a step is scaled by its length over that."""
        length_halving: float = Field(default=0.05, ge=0.0, le=1.0)
        """Probability that a segment is drawn about half the length."""
        length_spread: float = Field(default=5.0, ge=0.0)
        """Standard deviation of the length, in tokens."""
        shortest_chunk: int = Field(default=5, ge=1)
        """Minimum length of a random segment (the last of an epoch may be shorter)."""
        length_excess: int | None = Field(default=None, ge=0)
        """Most tokens of a segment beyond ``chunk_length``; unset: no bound."""
        small_batch_size: int | None = Field(default=None, ge=1)
        """Columns computed at once, with gradients summed over the batch: saves memory; each part has its own masks."""
        evaluation_batch_size: int = Field(default=10, ge=1)
        """Columns in evaluation, which always predicts every token but the first; 1 reads the text as one stream."""
        evaluation_chunk_length: int = Field(default=70, ge=1)
        """Tokens read at once in evaluation; changes memory and speed only."""

    def __init__(
        self, settings: Settings, vocabulary: Vocabulary, embedding: nn.Embedding, encoder: Encoder, decoder: Decoder
    ) -> None:
        super().__init__()
        self.settings, self.vocabulary = settings, vocabulary
        self.embedding, self.encoder, self.decoder = embedding, encoder, decoder

    @classmethod
    def build(cls, settings: Settings, resources: TaskResources) -> Self:
        embedding = uniform_embedding(len(resources.vocabulary), settings.embedding_size, settings.start_spread)
        encoder = resources.make_encoder(settings.embedding_size)
        decoder = resources.make_decoder(encoder.output_size, embedding)
        return cls(settings, resources.vocabulary, embedding, encoder, decoder)

    def _vectors(self, tokens: Tensor) -> Tensor:
        x_TBE = self.embedding(tokens)
        if self.training and self.settings.word_dropout:
            kept_V = shared_dropout(x_TBE.new_ones(len(self.vocabulary)), self.settings.word_dropout, True, ())
            x_TBE = x_TBE * kept_V[tokens].unsqueeze(-1)
        return self._dropped(x_TBE, self.settings.input_dropout)

    def _dropped(self, x: Tensor, rate: float) -> Tensor:
        return shared_dropout(x, rate, self.training, (0,) if self.settings.locked_dropout else ())

    def _bounds(self, columns: np.ndarray, epoch_seed: int) -> list[int]:
        """Return the start positions of an epoch's segments, and the end of the last."""
        settings, rows = self.settings, len(columns) - 1
        if not settings.random_lengths:
            return [*range(0, rows, settings.chunk_length), rows]
        return random_segments(
            rows,
            settings.chunk_length,
            np.random.default_rng(epoch_seed),
            halving=settings.length_halving,
            spread=settings.length_spread,
            shortest=settings.shortest_chunk,
            excess=settings.length_excess,
        )

    def begin_training(self, data: PreparedData) -> None:
        vectors = self.encoder.word_vectors() if isinstance(self.encoder, FromFiles) else None
        if vectors is not None and vectors.shape == self.embedding.weight.shape:
            self.embedding.weight.data.copy_(vectors)
        super().begin_training(data)

    def remarks(self, data: PreparedData) -> list[str]:
        """Warn that examples are read as running text, mostly because --task was forgotten."""
        examples = data.signature.examples
        if examples is None:
            return []
        task = "headline or dialogue" if examples.labels is None else "nli" if len(examples.texts) > 1 else "classification"
        return [
            f"these data are examples of {' and '.join(examples.texts)}, and a language model reads the texts of all as one; "
            f"what was meant may be --task {task}"
        ]

    def target_counts(self, data: PreparedData, split: str) -> NDArray[np.int64]:
        return np.bincount(data.tokens(split)[1:], minlength=len(self.vocabulary))

    def num_batches(self, data: PreparedData, epoch_seed: int) -> int:
        return len(self._bounds(training_columns(data.tokens("train"), self.settings.batch_size), epoch_seed)) - 1

    def batches(self, data: PreparedData, epoch_seed: int, first: int) -> Iterator[Tensor]:
        """Yield batches (T + 1, B) of this rank's columns: inputs are all rows but the last, targets all but the first."""
        columns = training_columns(data.tokens("train"), self.settings.batch_size)
        columns = columns[:, self.ranks.columns(self.settings.batch_size)]
        for begin, end in pairwise(self._bounds(columns, epoch_seed)[first:]):
            segment = np.ascontiguousarray(columns[begin : end + 1], dtype=np.int64)
            yield torch.from_numpy(segment).to(self.device, non_blocking=True)

    def losses(self, batch: Tensor, carry: Carry) -> Iterator[BatchLoss]:
        """Yield the loss of ``small_batch_size`` columns at a time."""
        columns = batch.shape[1]
        size = self.settings.small_batch_size or columns
        carries: list[Carry] = []
        for begin in range(0, columns, size):
            part = slice(begin, begin + size)
            loss = self.loss(batch[:, part], tuple(tensor[part] for tensor in carry))
            carries.append(loss.carry)
            whole = tuple(torch.cat(tensors) for tensors in zip(*carries, strict=True)) if len(carries) > 1 else loss.carry
            yield replace(loss, carry=whole, share=min(size, columns - begin) / columns)

    def _penalty(self, hidden: Tensor, dropped: Tensor) -> Tensor | None:
        """Activation regularisation after dropout, and temporal regularisation before dropout (Sec. 4.6, Merity et al. 2018).

        Means of squares of the last layer, as in the public code. The temporal form is 0 for a segment of one word."""
        activation, temporal = self.settings.activation_penalty, self.settings.temporal_penalty
        parts = [activation * at_least_single(dropped).square().mean()] if activation else []
        if temporal and len(hidden) > 1:
            parts.append(temporal * at_least_single(hidden).diff(dim=0).square().mean())
        return torch.stack(parts).sum() if parts else None

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        return {"perplexity": unigram_tally(data.tokens("train"), data.tokens(split), len(self.vocabulary)).perplexity}

    @property
    def evaluation_batch_size(self) -> int:
        return self.settings.evaluation_batch_size

    def contexts(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        encoded, contexts = self._encode(tokens, state)
        return contexts, encoded.state

    def _encode(self, tokens: Tensor, state: State) -> tuple[Encoded, Tensor]:
        encoded = self.encoder(self._vectors(tokens), tokens, state)
        return encoded, self._dropped(encoded.hidden, self.settings.output_dropout)

    def start(self, data: PreparedData) -> Carry:
        mine = self.ranks.columns(self.settings.batch_size)
        return self.encoder.start(mine.stop - mine.start)

    def loss(self, batch: Tensor, carry: Carry) -> BatchLoss:
        encoded, hidden_TBH = self._encode(batch[:-1], carry)
        nats_TB = self.decoder.nll(hidden_TBH, batch[1:])
        scale = (len(batch) - 1) / self.settings.chunk_length if self.settings.random_lengths else 1.0
        return BatchLoss(
            at_least_single(nats_TB).sum(),
            nats_TB.numel(),
            self._penalty(encoded.hidden, hidden_TBH),
            tuple(part.detach() for part in encoded.state),
            rate_scale=scale,
        )

    def score(self, tokens: np.ndarray, *, batch_size: int | None = None, progress: OneStage = silent) -> Iterator[Scored]:
        inputs, targets, mask = evaluation_columns(tokens, batch_size or self.evaluation_batch_size)
        length = self.settings.evaluation_chunk_length
        done, total = 0, len(tokens) - 1
        with evaluating(self):
            state = self.encoder.start(inputs.shape[1])
            for begin in range(0, len(inputs), length):
                part = slice(begin, begin + length)
                target_TB = torch.from_numpy(targets[part]).to(self.device)
                with torch.no_grad():
                    hidden_TBH, state = self.contexts(torch.from_numpy(inputs[part]).to(self.device), state)
                yield score_targets(self.decoder, hidden_TBH, target_TB, torch.from_numpy(mask[part]).to(self.device))
                done += int(mask[part].sum())
                progress(done, total)

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        return perplexity_metrics(self.score(data.tokens(split)))
