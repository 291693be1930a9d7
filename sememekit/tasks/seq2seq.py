"""Sequence to sequence: an encoder reads the source, an attentional RNN writes the target, any output layer predicts words."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, NamedTuple, Self, final

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit.corpora.examples.base import START, STOP
from sememekit.data.batching import Ids, bucketed_batches, padded, sorted_batches
from sememekit.data.examples import Examples
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder
from sememekit.encoders.base import Encoder
from sememekit.errors import ConfigError, DataError
from sememekit.layers import at_least_single, evaluating, uniform_embedding
from sememekit.layers.attentional_rnn import AttentionalRNN, Cell, Feeding, Memory, Score
from sememekit.measure import Tally
from sememekit.measure.perplexity import Scored, perplexity_metrics
from sememekit.progress import OneStage, silent
from sememekit.search import BeamSettings, Hypothesis, beam_search
from sememekit.search.beam import State
from sememekit.tasks.base import BatchLoss, Carry, Divided, PrimaryMetric
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.scoring import score_targets
from sememekit.tasks.vectors import StartSettings
from sememekit.tasks.writing import TeacherForced, TextWriter
from sememekit.text.vocabulary import Vocabulary

TEXTS = ("source", "target")  # the texts of an example, in order
_EXAMPLES_AT_ONCE = 1 << 16
_PREPARE = "write pairs with: sememekit preprocess gigaword|lcsts|peoples-daily-headlines|switchboard SOURCE --out DIR"


class PairBatch(NamedTuple):
    """B pairs of texts."""

    source: Tensor  # (S, B) word ids
    source_lengths: Tensor  # (B,) on the CPU, words of each source
    before: Tensor  # (T, B) the previous word of each target word, ``<s>`` for the first
    real: Tensor  # (N,) positions t B + b of target words and end marks, in order
    words: Tensor  # (N,) the words at these positions; ``</s>`` is the end mark


class SequenceToSequence(TextWriter, Divided):
    """p(y | x) = product over t of p(y_t | g_t), g_t from ``AttentionalRNN`` over the outputs of the encoder for x.

    >>> batch = task.batch_of([(source_ids, target_ids)])
    >>> loss = task.loss(batch, ())
    >>> [hypotheses] = task.write([source_ids])    # beam search by task.settings.search

    Source and target share one vocabulary. The source is read without marks; ``<s>`` begins the target and ``</s>`` ends it.
    Training is by teacher forcing (previous words of the reference). The loss is the mean over the words of the targets, ends
    included. The output layer sees only real positions, without a time axis, so locked masks are drawn for each word."""

    class Settings(StartSettings):
        embedding_size: int = Field(default=512, ge=1)
        """E, the size of the word vectors."""
        share_embedding: bool = True
        """One table of word vectors for source and target; otherwise the source has its own."""
        hidden_size: int = Field(default=512, ge=1)
        """H, the size of each decoder layer."""
        num_layers: int = Field(default=1, ge=1)
        """Number of decoder layers."""
        cell: Cell = "lstm"
        """Cell of the decoder layers: "lstm" or "gru"."""
        feeding: Feeding = "none"
        """Input beside the word: "none", the "context" of the attention (RNN-context), or the "output" before (input feeding).
        Without feeding training runs over whole texts at once."""
        attention: Score = "general"
        """The score of a position: "general" (bilinear) or "additive"."""
        output_size: int | None = Field(default=None, ge=1)
        """G, the size of the contexts that words are predicted from (default: H). A tied output layer wants E."""
        input_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the input word vectors of both sides."""
        dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate between decoder layers; the encoder has its own setting."""
        output_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the contexts that words are predicted from."""
        read_words: int = Field(default=0, ge=0)
        """Number of words that are read from the start of a source; 0 reads all."""
        longest_source: int = Field(default=1000, ge=1)
        """Longest source; more words are an error (unless ``read_words`` cuts them), since they are mostly a mistake in the
        data."""
        batch_size: int = Field(default=64, ge=1)
        """B, pairs in training."""
        evaluation_batch_size: int = Field(default=64, ge=1)
        """Pairs read at once in evaluation; changes memory and speed only."""
        search: BeamSettings = BeamSettings()
        """Settings of the beam search."""

    def __init__(
        self, settings: Settings, vocabulary: Vocabulary, embedding: nn.Embedding, encoder: Encoder, decoder: Decoder
    ) -> None:
        super().__init__()
        self.settings, self.vocabulary, self.embedding = settings, vocabulary, embedding
        own, table = settings.share_embedding, (len(vocabulary), settings.embedding_size, settings.start_spread)
        self.source_embedding = embedding if own else uniform_embedding(*table)
        self.encoder = encoder
        self.writer = AttentionalRNN(
            settings.embedding_size,
            encoder.output_size,
            settings.hidden_size,
            settings.output_size or settings.hidden_size,
            num_layers=settings.num_layers,
            cell=settings.cell,
            feeding=settings.feeding,
            score=settings.attention,
            dropout=settings.dropout,
            output_dropout=settings.output_dropout,
        )
        self.decoder = decoder
        self.search = settings.search
        self._begin, self.end = vocabulary.id(START), vocabulary.id(STOP)

    @classmethod
    def build(cls, settings: Settings, resources: TaskResources) -> Self:
        for mark in (START, STOP):  # of other data no size of a layer is worth a word
            if mark not in resources.vocabulary:
                raise ConfigError(f"the vocabulary has no {mark!r}, so its data are no pairs; {_PREPARE}")
        embedding = uniform_embedding(len(resources.vocabulary), settings.embedding_size, settings.start_spread)
        encoder = resources.make_encoder(settings.embedding_size)
        decoder = resources.make_decoder(settings.output_size or settings.hidden_size, embedding)
        return cls(settings, resources.vocabulary, embedding, encoder, decoder)

    @property
    def metric(self) -> PrimaryMetric:
        return PrimaryMetric("perplexity", lower_is_better=True)

    def check_source(self, words: int, where: str) -> None:
        settings = self.settings
        if not words:
            raise DataError(f"{where}: the source is empty; give at least one word")
        if words > settings.longest_source and not settings.read_words:
            raise DataError(
                f"{where}: {words:,} words, where a source has {settings.longest_source:,} at most; shorten it, or train with "
                f"--set task.read_words={settings.longest_source} (the first words only) or --set task.longest_source={words}"
            )

    def _read(self, source: Tensor, lengths: Tensor) -> tuple[Memory, State]:
        x_SBE = functional.dropout(self.source_embedding(source), self.settings.input_dropout, self.training)
        encoded = self.encoder(x_SBE, source, self.encoder.start(source.shape[1]), lengths)
        with torch.autocast(x_SBE.device.type, enabled=False):
            memory = self.writer.attention.prepare(encoded.hidden, lengths)
            return memory, self.writer.start(self.encoder.last(encoded, lengths))

    def _contexts(self, batch: PairBatch) -> Tensor:
        """(N, G) contexts of the real positions."""
        memory, state = self._read(batch.source, batch.source_lengths)
        x_TBE = functional.dropout(self.embedding(batch.before), self.settings.input_dropout, self.training)
        return self.writer(x_TBE, state, memory, batch.real).outputs

    def batch_of(self, pairs: Sequence[tuple[Ids, Ids]]) -> PairBatch:
        source, lengths = padded([source[: self.settings.read_words or None] for source, _ in pairs])
        targets = [target for _, target in pairs]
        before, _ = padded(targets, begin=[self._begin])
        words, _ = padded(targets, end=[self.end])
        target_lengths = np.array([len(target) + 1 for target in targets])
        real = np.flatnonzero(np.arange(len(before))[:, None] < target_lengths[None, :])
        source_SB, before_TB, real_N, words_N = map(self._place, (source, before, real, words.reshape(-1)[real]))
        return PairBatch(source_SB, torch.from_numpy(lengths), before_TB, real_N, words_N)

    def _place(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def _examples(self, data: PreparedData, split: str) -> Examples:
        """The pairs of a split; DataError if the data have no pairs."""
        examples, summary = data.examples(split), data.signature.examples
        if summary is None or summary.texts != TEXTS:
            found = " and ".join(summary.texts) if summary else "words"
            raise DataError(f"{data.folder}: examples of {found}, where pairs of source and target are needed; {_PREPARE}")
        if not len(examples):
            raise DataError(f"{data.folder}: the split {split!r} has no pairs")
        return examples

    def _checked(self, data: PreparedData, split: str) -> Examples:
        examples = self._examples(data, split)
        lengths = examples.lengths()[:, 0]
        for which in (int(lengths.argmax()), int(lengths.argmin())):
            self.check_source(int(lengths[which]), f"{data.folder}: pair {which + 1} of {split}")
        return examples

    def _gather(self, examples: Examples, chosen: np.ndarray) -> PairBatch:
        return self.batch_of([(examples.text(int(index), 0), examples.text(int(index), 1)) for index in chosen])

    def num_batches(self, data: PreparedData, epoch_seed: int) -> int:
        return -(-len(self._checked(data, "train")) // self.settings.batch_size)

    def batches(self, data: PreparedData, epoch_seed: int, first: int) -> Iterator[PairBatch | None]:
        examples = self._examples(data, "train")
        for chosen in bucketed_batches(examples.lengths()[:, 0], self.settings.batch_size, epoch_seed)[first:]:
            mine = self.ranks.of(chosen)
            yield self._gather(examples, mine) if len(mine) else None

    def loss(self, batch: PairBatch, carry: Carry) -> BatchLoss:
        nats_N = self.decoder.nll(self._contexts(batch), batch.words)
        return BatchLoss(at_least_single(nats_N).sum(), nats_N.numel(), None, ())

    def score_pairs(self, data: PreparedData, split: str, progress: OneStage = silent) -> Iterator[Scored]:
        examples, done = self._checked(data, split), 0
        with evaluating(self):
            for chosen in sorted_batches(examples.lengths()[:, 0], self.settings.evaluation_batch_size):
                batch = self._gather(examples, chosen)
                with torch.no_grad():
                    contexts = self._contexts(batch)
                real = batch.real.cpu().numpy()
                places = np.stack([chosen[real % len(chosen)], real // len(chosen)], axis=1)
                yield score_targets(self.decoder, contexts, batch.words, torch.ones_like(batch.words, dtype=torch.bool), places)
                done += len(chosen)
                progress(done, len(examples))

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        return perplexity_metrics(self.score_pairs(data, split))

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        train, other = (self.target_counts(data, name) for name in ("train", split))
        log_probs = np.log((train + 1.0) / (train + 1.0).sum())
        return {"perplexity": Tally(float(-(other * log_probs).sum()), int(other.sum())).perplexity}

    def target_counts(self, data: PreparedData, split: str) -> np.ndarray:
        """Return (V,) how often each word occurs in targets, end marks included."""
        examples = self._examples(data, split)
        counts = np.zeros(len(self.vocabulary), dtype=np.int64)
        counts[self.end] = len(examples)
        for begin in range(0, len(examples), _EXAMPLES_AT_ONCE):
            bounds = np.asarray(examples.offsets[2 * begin : 2 * (begin + _EXAMPLES_AT_ONCE) + 1])
            is_target = np.repeat(np.arange(len(bounds) - 1) % 2 == 1, np.diff(bounds))
            counts += np.bincount(examples.tokens[bounds[0] : bounds[-1]][is_target], minlength=len(counts))
        return counts

    @torch.no_grad()
    def write(
        self, sources: Sequence[Ids], search: BeamSettings | None = None, progress: OneStage = silent
    ) -> list[list[Hypothesis]]:
        how, unknown = search or self.search, self.vocabulary.unknown_id
        banned = [unknown] if how.unknown == "never" and unknown is not None else []
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for number, source in enumerate(sources, start=1):
            self.check_source(len(source), f"source {number}")
        lengths, done = np.array([len(source) for source in sources], dtype=np.int64), 0
        with evaluating(self):
            for chosen in sorted_batches(lengths, self.settings.evaluation_batch_size):
                ids, own = padded([sources[index][: self.settings.read_words or None] for index in chosen])
                memory, state = self._read(self._place(ids), torch.from_numpy(own))
                best = beam_search(self._step, state, memory, begin=self._begin, end=self.end, settings=how, banned=banned)
                for index, hypotheses in zip(chosen.tolist(), best, strict=True):
                    found[index] = hypotheses
                done += len(chosen)
                progress(done, len(sources))
        return found

    def _step(self, words: Tensor, state: State, memory: State, count: int) -> tuple[Tensor, Tensor, State, Tensor]:
        contexts_NG, state, weights_NS = self.writer.step(self.embedding(words.flatten()), state, Memory(*memory))
        log_probs_NK, ids_NK = self.decoder.topk_words(contexts_NG, count)
        return log_probs_NK, ids_NK, state, weights_NS.argmax(dim=-1)

    @torch.no_grad()
    def teacher_forced(self, source: Ids, words: Sequence[int]) -> TeacherForced:
        with evaluating(self):
            batch = self.batch_of([(source, np.array(words, dtype=np.int64))])
            memory, state = self._read(batch.source, batch.source_lengths)
            written = self.writer(self.embedding(batch.before[: len(words)]), state, memory)
            contexts = written.outputs[:, 0]
            return TeacherForced(contexts, written.weights[:, 0], self.decoder.nll(contexts, batch.words[: len(words)]))


@final
class DialogueWriter(SequenceToSequence):
    """Responses in a dialogue (Sec. 3.1, Yang et al. 2018): the source is a window of turns, the target the next one."""

    scored_with: ClassVar[Literal["rouge", "bleu"]] = "bleu"

    class Settings(SequenceToSequence.Settings):
        search: BeamSettings = BeamSettings(beam_size=10, num_best=5)
        """Settings of the beam search."""
        checkpoint_by: Literal["nll"] = "nll"
        """Metric on validation that chooses the best weights: "nll", the likelihood of the references."""
