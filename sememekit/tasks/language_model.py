"""Language modelling: predict each word of a stream from the words before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.decoders.base import Decoder
from sememekit.encoders.base import Encoder, State
from sememekit.measure import Tally, unigram_tally
from sememekit.tasks.base import BatchLoss, Carry, Headline, Scored, WordPredictor
from sememekit.text import PreparedData, Vocabulary
from sememekit.text.batching import evaluation_columns, training_columns


@final
class LanguageModel(WordPredictor):
    """Embedding -> dropout -> encoder -> dropout -> decoder, trained by truncated back-propagation through time.

    The stream is cut into B columns; the state is zero at the start of an epoch or evaluation and is carried from chunk to
    chunk. The loss is the mean over the tokens of a chunk. See docs/perplexity.md for what is divided by what.
    """

    headline: ClassVar[Headline] = Headline("perplexity", lower_is_better=True)

    class Settings(config.Settings):
        """Settings of language modelling."""

        embedding_size: int = Field(default=650, ge=1)
        """E, the size of the word vectors."""
        input_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the word vectors that go in."""
        output_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the contexts that come out."""
        batch_size: int = Field(default=20, ge=1)
        """B, columns in training."""
        chunk_length: int = Field(default=35, ge=1)
        """T, tokens through which gradients flow back."""
        evaluation_batch_size: int = Field(default=10, ge=1)
        """Columns in evaluation. Every token but the first is predicted whatever it is; 1 reads the text from end to end."""
        evaluation_chunk_length: int = Field(default=70, ge=1)
        """Tokens read at once in evaluation: memory and speed only, the value is the same."""

    def __init__(
        self, settings: Settings, vocabulary: Vocabulary, embedding: nn.Embedding, encoder: Encoder, decoder: Decoder
    ) -> None:
        super().__init__()
        self.settings = settings
        self.vocabulary = vocabulary
        self.embedding = embedding
        self.encoder = encoder
        self.decoder = decoder

    @staticmethod
    def make_embedding(settings: Settings, vocabulary: Vocabulary) -> nn.Embedding:
        """(V, E) word vectors, uniform in +-0.1."""
        embedding = nn.Embedding(len(vocabulary), settings.embedding_size)
        nn.init.uniform_(embedding.weight, -0.1, 0.1)
        return embedding

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.weight.device

    @property
    def evaluation_batch_size(self) -> int:
        """See ``WordPredictor.evaluation_batch_size``."""
        return self.settings.evaluation_batch_size

    def contexts(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Contexts (T, B, H) after each of ``tokens`` (T, B), dropout included in training, and the state after the last."""
        settings = self.settings
        x = functional.dropout(self.embedding(tokens), settings.input_dropout, self.training)
        encoded = self.encoder(x, tokens, state)
        return functional.dropout(encoded.hidden, settings.output_dropout, self.training), encoded.state

    def num_batches(self, data: PreparedData) -> int:
        """See ``Task.num_batches``."""
        rows = len(training_columns(data.tokens("train"), self.settings.batch_size))
        return -(-(rows - 1) // self.settings.chunk_length)

    def batches(self, data: PreparedData, first: int) -> Iterator[Tensor]:
        """See ``Task.batches``; a batch is (T + 1, B): inputs are all rows but the last, targets all but the first."""
        columns = training_columns(data.tokens("train"), self.settings.batch_size)
        length = self.settings.chunk_length
        for begin in range(first * length, len(columns) - 1, length):
            chunk = np.ascontiguousarray(columns[begin : begin + length + 1], dtype=np.int64)
            yield torch.from_numpy(chunk).to(self.device, non_blocking=True)

    def start(self, data: PreparedData) -> Carry:
        """See ``Task.start``."""
        return self.encoder.start(self.settings.batch_size)

    def loss(self, batch: Tensor, carry: Carry) -> BatchLoss:
        """See ``Task.loss``."""
        hidden, state = self.contexts(batch[:-1], carry)
        nats = self.decoder.nll(hidden, batch[1:])
        return BatchLoss(nats.float().sum(), nats.numel(), None, tuple(part.detach() for part in state))

    def score(
        self,
        tokens: np.ndarray,
        *,
        batch_size: int | None = None,
        chunk_length: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[Scored]:
        """See ``WordPredictor.score``."""
        inputs, targets, mask = evaluation_columns(tokens, batch_size or self.evaluation_batch_size)
        length = chunk_length or self.settings.evaluation_chunk_length
        done, total = 0, len(tokens) - 1
        with evaluating(self):
            state = self.encoder.start(inputs.shape[1])
            for begin in range(0, len(inputs), length):
                part = slice(begin, begin + length)
                target = torch.from_numpy(targets[part]).to(self.device)
                with torch.no_grad():
                    hidden, state = self.contexts(torch.from_numpy(inputs[part]).to(self.device), state)
                    nats = self.decoder.nll(hidden, target)
                yield Scored(target, nats, torch.from_numpy(mask[part]).to(self.device))
                done += int(mask[part].sum())
                if progress is not None:
                    progress(done, total)

    def tally(self, tokens: np.ndarray) -> Tally:
        """Nats and predicted tokens of a stream, summed in float64."""
        total, count = torch.zeros((), dtype=torch.float64), 0
        for scored in self.score(tokens):
            total += scored.nats.double().masked_fill(~scored.mask, 0.0).sum().cpu()
            count += int(scored.mask.sum())
        return Tally(float(total), count)

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        """See ``Task.evaluate``."""
        tally = self.tally(data.tokens(split))
        return {"perplexity": tally.perplexity, "nats": tally.nats, "tokens": tally.count}

    def ignorant(self, data: PreparedData, split: str) -> dict[str, float]:
        """See ``Task.ignorant``: the unigram model of the training split."""
        return {"perplexity": unigram_tally(data.tokens("train"), data.tokens(split), len(self.vocabulary)).perplexity}


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode inside, the former mode afterwards."""
    before = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(before)
