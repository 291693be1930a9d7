"""Neural lattice language models: a sentence's probability is a sum over its segmentations and over copies of its words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.data.batching import sentence_bounds
from sememekit.data.buckets import bucketed_batches, sorted_batches
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder
from sememekit.encoders.base import Encoder
from sememekit.errors import ConfigError, DataError
from sememekit.layers import ending_edges, linear, log_marginal, rows_of, shared_dropout
from sememekit.measure import Tally, unigram_tally
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import BatchLoss, Carry, Headline, Kind, SentencePredictor
from sememekit.tasks.lattice.batch import LatticeBatch, make_batch, roomy
from sememekit.tasks.lattice.entries import Entries, make_entries
from sememekit.tasks.lattice.parts import Composition, Inner, SubModel
from sememekit.tasks.lattice.paths import Lattices
from sememekit.tasks.lattice.senses import sense_copies, start_from_sememes
from sememekit.tasks.lattice.settings import LONG, LatticeSettings
from sememekit.tasks.lattice.states import GUMBEL, NEEDS_PROBABILITIES, SAMPLED, TREES, Merging, Walked, walk
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.scoring import evaluating
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class _Vectors:
    """Vectors of a batch: of its D_1 distinct words (D_1, E); of all words (V, E) for the sub-model, if any; of its D distinct
    windows in each copy (D, copies, I), those of one token first."""

    words: Tensor
    every: Tensor | None
    windows: Tensor


@final
class Lattice(SentencePredictor):
    """p(x) = sum over the paths S through the lattice of x of prod_(edges of S) p(edge | state where it begins).

    Buckman and Neubig 2018. The node j stands for the first j tokens; an edge is a chunk of 1 to L tokens in one of E copies.
    The forward recursion alpha_j = log sum exp(alpha_i + log p(edge)) gives log p(x) at the end mark, which is predicted and
    closes its chunk; a start mark, for which the end mark stands, is read and never predicted.

    An edge's probability: p(chunk, copy | h) = main(row) + main(sentinel) sub(chunk | h) / copies, where ``main`` is a decoder
    of the house over the chunk vocabulary, read from tanh(A h + a), and ``sub`` knows all chunks (``SubModel``). Without a
    sub-model there are edges for listed chunks only. The vector of an edge is that of its row, the sentinel's for an unlisted
    chunk, beside that of its tokens (``Composition``).

    The state of a node is made of those that arrive there (``Merging``), or with ``segmental`` by the encoder from the tokens
    alone. Either way it is a function of the first j tokens and of nothing else: the edges that leave the node are a
    distribution given those tokens, the sum over paths is a product of such distributions, and the probabilities of all
    sentences sum to one whatever the rule. Rules that draw do so in training only, each draw giving a model of its own; in
    evaluation they take the most probable edge. Only ``sub_marks`` as released loses a part.
    With L = 1, E = 1 and no sub-model there is one path, and this is a plain language model over sentences.
    """

    kind: ClassVar[Kind] = "lattices"
    kinds: ClassVar[frozenset[Kind]] = SentencePredictor.kinds | {"lattices"}
    summary, trained_by = "a lattice model", "lattice"
    headline: ClassVar[Headline] = Headline("perplexity", lower_is_better=True)

    Settings = LatticeSettings

    def __init__(
        self,
        settings: LatticeSettings,
        vocabulary: Vocabulary,
        entries: Entries,
        embedding: nn.Embedding,
        encoder: Encoder,
        decoder: Decoder,
    ) -> None:
        super().__init__()
        if vocabulary.end_id is None:
            raise ConfigError(
                "task 'lattice' reads sentences, and this vocabulary has no end mark; prepare data whose sentences end with "
                "one (sememekit preprocess ... --end-of-sentence)"
            )
        if settings.state in TREES and not encoder.merges_gates:
            encoder.settle_bundle((), torch.zeros(0, 0))
        self.settings, self.vocabulary, self.entries = settings, vocabulary, entries
        self.end: int = vocabulary.end_id
        self.opening = self._opening(settings, vocabulary)
        self.embedding, self.encoder, self.decoder = embedding, encoder, decoder
        size = settings.embedding_size
        self.output = nn.Linear(encoder.output_size, size)
        composed, longest = settings.composed_size, settings.longest_chunk
        inner = Inner(settings.inner_layers, settings.inner_coupled, settings.inner_dropout)
        self.composition = Composition(size, composed, longest, inner) if composed else None
        self.sub_model = None
        if settings.sub_model:
            sizes = encoder.output_size, len(vocabulary), size, settings.sub_size
            self.sub_model = SubModel(*sizes, longest, inner, released_marks=settings.sub_marks == "released")
        self.token_embedding = None
        if settings.token_vectors == "own" and settings.reads_tokens:
            self.token_embedding = nn.Embedding(len(vocabulary), size)
            nn.init.uniform_(self.token_embedding.weight, -settings.start_spread, settings.start_spread)
        of_words = torch.from_numpy(entries.rows[: len(vocabulary)])
        self.register_buffer("word_rows", of_words.clamp(min=0), persistent=False)
        self.register_buffer("word_copies", of_words >= 0, persistent=False)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self.word_rows: Tensor
        self.word_copies: Tensor
        self.updates: Tensor
        self.planned_updates: int | None = None

    @classmethod
    def build(cls, settings: LatticeSettings, resources: TaskResources) -> Self:
        """See ``Task.build``: the output layer chooses from entries, which are made of the words."""
        vocabulary, graph = resources.vocabulary, resources.graph
        entries = cls.make_entries(settings, vocabulary, resources.chunks, graph)
        embedding = cls.make_embedding(settings, entries, graph)
        encoder = resources.make_encoder(cls.input_size(settings))
        decoder = resources.make_decoder(embedding.embedding_dim, embedding, entries.names)
        return cls(settings, vocabulary, entries, embedding, encoder, decoder)

    @staticmethod
    def _opening(settings: LatticeSettings, vocabulary: Vocabulary) -> int:
        """The id of the word that is read before every sentence."""
        if not settings.start_mark:
            assert vocabulary.end_id is not None
            return vocabulary.end_id
        if settings.start_mark not in vocabulary:
            raise ConfigError(
                f"task.start_mark={settings.start_mark!r} is no word of this vocabulary; prepare data with a list of words "
                "that has it (sememekit preprocess ... --vocabulary FILE), or leave it empty for the end mark"
            )
        return vocabulary.id(settings.start_mark)

    @classmethod
    def needs(cls, settings: LatticeSettings) -> frozenset[str]:
        """See ``Task.needs``: embeddings of senses come from a graph."""
        return frozenset({"graph"}) if settings.senses else frozenset()

    @classmethod
    def make_entries(
        cls, settings: LatticeSettings, vocabulary: Vocabulary, chunks: ChunkVocabulary | None, graph: SememeGraph | None = None
    ) -> Entries:
        """What the main softmax chooses from.

        Raises:
            ConfigError: chunks of several tokens are asked for, and there is no chunk vocabulary, or one of shorter chunks; or
                senses are, and there is no graph.
            DataError: the chunks are of another vocabulary.
        """
        longest = settings.longest_chunk
        if chunks is not None:
            chunks.check_vocabulary(vocabulary)
        if longest > 1 and settings.num_chunks != 0 and (chunks is None or chunks.max_length < longest):
            have = "no chunk vocabulary" if chunks is None else f"chunks of at most {chunks.max_length} tokens"
            raise ConfigError(
                f"task.longest_chunk is {longest}, and the data have {have}; count them with 'sememekit preprocess ... "
                f"--chunks 10000 --chunk-length {longest}', or set task.longest_chunk={chunks.max_length if chunks else 1}"
            )
        if chunks is None or longest == 1:
            chunks = ChunkVocabulary(vocabulary, max_length=longest)
        else:
            chunks = chunks.up_to(longest, settings.num_chunks)
        copies = sense_copies(graph, settings.copies) if settings.senses else settings.copies
        return make_entries(vocabulary, chunks, copies, sentinel=settings.sub_model)

    @staticmethod
    def make_embedding(settings: LatticeSettings, entries: Entries, graph: SememeGraph | None = None) -> nn.Embedding:
        """(rows, E) vectors of the entries, uniform in +-``spread``; with ``senses`` those of annotated words from sememes."""
        embedding = nn.Embedding(len(entries.names), settings.embedding_size)
        spread = settings.start_spread
        nn.init.uniform_(embedding.weight, -spread, spread)
        if settings.senses and graph is not None:
            start_from_sememes(embedding.weight, entries, graph, spread)
        return embedding

    @classmethod
    def input_size(cls, settings: LatticeSettings) -> int:
        """Size of the vectors that the encoder reads."""
        return settings.embedding_size + settings.composed_size

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.weight.device

    @property
    def sums_to_one(self) -> bool:
        """Whether the probabilities of all sentences do: always but with the released marks of chunks."""
        return self.sub_model is None or not self.sub_model.released_marks

    @property
    def marginal(self) -> str:
        """See ``SentencePredictor.marginal``: a sum over all segmentations, and how states are made where there are several."""
        one_way = self.settings.longest_chunk == 1 and self.entries.most_copies == 1
        how: list[str] = [] if one_way or self.settings.state == "segmental" else [self.settings.state]
        if how and self.settings.state in SAMPLED:
            how.append("the most probable edge")
        if not self.sums_to_one:
            how.append("released marks, below one in sum")
        return f"exact marginal ({', '.join(how)})" if how else "exact marginal"

    @property
    def temperature(self) -> float:
        """Of "gumbel" and "gumbel_tree", after the updates so far.

        Raises:
            ConfigError: it falls in proportion to a run whose length nobody told (``expect_updates``).
        """
        settings, done = self.settings, int(self.updates)
        if settings.temperature_every is not None:
            cooled = settings.temperature_decay ** (done // settings.temperature_every)
        elif not done:
            cooled = 1.0
        elif self.planned_updates is None:
            raise ConfigError(
                "the temperature falls in proportion to the run, and nobody said how long that is: call "
                "task.expect_updates(NUMBER), or set task.temperature_every=100 for the schedule of the release"
            )
        else:
            to_floor = min(1.0, settings.temperature_floor / settings.temperature)
            cooled = to_floor ** (done / (settings.temperature_share * self.planned_updates))
        return max(settings.temperature_floor, settings.temperature * cooled)

    def expect_updates(self, total: int) -> None:
        """See ``Task.expect_updates``."""
        self.planned_updates = total

    def batch_of(self, sentences: Sequence[npt.NDArray[np.integer]]) -> LatticeBatch:
        """Padded sentences, each with its end mark."""
        windows = self.settings.state != "segmental"
        return make_batch(
            sentences,
            self.entries,
            self.settings.longest_chunk,
            self.end,
            opening=self.opening,
            windows=windows,
            device=self.device,
        )

    def edge_scores(
        self, batch: LatticeBatch, *, generator: torch.Generator | None = None, known: Sequence[Tensor] | None = None
    ) -> Tensor:
        """(B, T, L, E) log-probability of each edge given the state where it begins, by its last token; -inf for none.

        Args:
            batch: of T tokens.
            generator: what a rule that draws takes its noise from, on the device of the parameters; None for torch's own.
            known: for each node but the first and the last the weights of the arriving states (K, B), shorter edges first, in
                the place of those that the rule finds.
        """
        with torch.autocast(self.device.type, enabled=False):
            vectors = self._vectors(batch)
            leave = self._scorer(batch, vectors)
            if self.settings.state == "segmental" or batch.rows[0, 0].numel() == 1:
                scores = leave(0, self._read(batch, vectors))
            else:
                scores = self._walk(batch, vectors, leave, generator, known)
            return ending_edges(scores.transpose(0, 1))

    def _vectors(self, batch: LatticeBatch) -> _Vectors:
        """The vectors that a batch is made of; one gradient of the embedding for all of them."""
        own, shared = self.token_embedding, self.token_embedding is None
        indices = [self.word_rows[batch.words], *([self.word_rows] if self.sub_model is not None else [])] if shared else []
        if batch.grams is not None:
            indices.append(batch.grams.rows)
        found = iter(rows_of(self.embedding.weight, *indices) if indices else ())
        if own is not None:
            words: Tensor = own(batch.words)
            every: Tensor | None = own.weight
        else:
            words = self._mean(next(found), self.word_copies[batch.words])
            every = None if self.sub_model is None else self._mean(next(found), self.word_copies)
        if batch.grams is None:
            return _Vectors(words, every, words.unsqueeze(1))
        windows = next(found)
        if self.composition is not None:
            composed = self.composition(words, batch.grams)
            windows = torch.cat([windows, composed.unsqueeze(1).expand(-1, windows.shape[1], -1)], dim=2)
        return _Vectors(words, every, windows)

    @staticmethod
    def _mean(rows: Tensor, there: Tensor) -> Tensor:
        """(V, E) the mean of the copies of each word, from (V, copies, E) and which of them there are (V, copies)."""
        if rows.shape[1] == 1:
            return rows.squeeze(1)
        return (rows * there.unsqueeze(2)).sum(1) / there.sum(1, keepdim=True)

    def _read(self, batch: LatticeBatch, vectors: _Vectors) -> Tensor:
        """(T, B, H) outputs of the encoder before each token: one way leads to each node, or states follow the tokens."""
        mark = torch.full_like(batch.tokens[:1], self.opening)
        before = torch.cat([mark, batch.tokens[:-1]])
        x = vectors.windows[:, 0][torch.searchsorted(batch.words, before)]
        x = shared_dropout(x, self.settings.input_dropout, self.training, (0,))
        hidden: Tensor = self.encoder(x, before, self.encoder.start(before.shape[1])).hidden
        return hidden

    def _walk(
        self,
        batch: LatticeBatch,
        vectors: _Vectors,
        leave: Callable[[int, Tensor], Tensor],
        generator: torch.Generator | None,
        known: Sequence[Tensor] | None,
    ) -> Tensor:
        """(T, B, L, E) scores of the edges that leave each node, whose state is made of those that arrive there."""
        settings, encoder, grams = self.settings, self.encoder, batch.grams
        assert grams is not None
        columns, copies = batch.tokens.shape[1], batch.rows.shape[3]
        edges = grams.index.unsqueeze(2) * copies + torch.arange(copies, device=self.device)[:, None]
        start = torch.searchsorted(batch.words, self.opening) * copies
        rate = settings.input_dropout if self.training else 0.0
        flat = vectors.windows.flatten(0, 1)
        if rate:
            keep = shared_dropout(flat.new_ones(columns, flat.shape[1]), rate, True, ())
            ready, at_start = encoder.project(functional.embedding(edges, flat) * keep), encoder.project(flat[start] * keep)
        else:
            projected = encoder.project(flat)
            ready, at_start = functional.embedding(edges, projected), projected[start].expand(columns, -1)
        masks = encoder.draw_masks(columns)
        mark = torch.full_like(batch.tokens[0], self.opening)
        hidden, state = encoder.read(at_start, mark, encoder.settle(encoder.start(columns), masks), masks)
        temperature = self.temperature if settings.state in GUMBEL and self.training else 1.0
        merging = Merging(settings.state, settings.posterior_gradient, self.training, temperature, generator)

        def go(score: Callable[[int, Tensor], Tensor] | None, known: Sequence[Tensor] | None = None) -> Walked:
            at_once = None if score is None else (lambda node, output: score(node, output.unsqueeze(0))[0])
            return walk(encoder, ready, batch.tokens, batch.exists, (hidden, *state), masks, merging, at_once, known)

        if known is not None or settings.state not in NEEDS_PROBABILITIES:
            return leave(0, go(None, known).outputs)
        if settings.posterior_gradient or not (encoder.rehearses and self.decoder.rehearses and torch.is_grad_enabled()):
            scores = go(leave).scores
            assert scores is not None
            return scores
        with torch.no_grad():
            weights = go(leave).weights
        return leave(0, go(None, weights).outputs)

    def _scorer(self, batch: LatticeBatch, vectors: _Vectors) -> Callable[[int, Tensor], Tensor]:
        """From the first of N nodes and their outputs (N, B, H) to the scores (N, B, L, E) of the edges that leave them."""
        settings, sentinel = self.settings, self.entries.sentinel
        columns = batch.tokens.shape[1]
        several = self.decoder.several()
        shared = None
        if self.sub_model is not None and vectors.every is not None:
            shared = self.sub_model.prepare(vectors.every, vectors.words, batch)
        targets = batch.rows.clamp(min=0).flatten(2)
        if sentinel is not None:
            targets = torch.cat([targets, torch.full_like(targets[..., :1], sentinel)], dim=2)
        keep = shared_dropout(
            self.output.weight.new_ones(columns, self.output.in_features), settings.output_dropout, self.training, ()
        )

        def score(first: int, outputs: Tensor) -> Tensor:
            nodes = slice(first, first + len(outputs))
            outputs = outputs * keep if self.training and settings.output_dropout else outputs
            contexts = torch.tanh(linear(outputs, self.output))
            found = several(contexts.flatten(0, 1), targets[nodes].flatten(0, 1)).view(len(outputs), columns, -1)
            rows = batch.rows[nodes]
            scores = found[..., : rows[0, 0].numel()].view(rows.shape).masked_fill(rows < 0, -torch.inf)
            if self.sub_model is not None and shared is not None:
                below = self.sub_model(outputs, first, batch, shared) + found[..., -1:] - batch.log_copies[nodes]
                scores = torch.logaddexp(scores, below.unsqueeze(-1))
            return scores.masked_fill(~batch.exists[nodes], -torch.inf)

        return score

    def lattices(self, sentences: Sequence[npt.NDArray[np.integer]]) -> Lattices:
        """The lattices of sentences, in evaluation mode and without gradients.

        Args:
            sentences: B arrays of word ids, the end mark at the end of each.
        """
        with evaluating(self), torch.no_grad():
            batch = self.batch_of(sentences)
            return Lattices(batch.tokens.T, batch.lengths, self.edge_scores(batch), batch.chunks)

    def sentences(self, data: PreparedData, split: str) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
        """The stream of a split, and where each of its n sentences begins and the last one ends, (n + 1,).

        Raises:
            DataError: the data have no sentences, or the stream ends within one.
        """
        tokens = data.tokens(split)
        bounds = sentence_bounds(tokens, self.end)
        if len(bounds) < 2 or bounds[-1] != len(tokens):
            raise DataError(
                f"{data.folder}: the split {split!r} has {len(bounds) - 1} sentences with an end mark and {len(tokens):,} "
                "tokens; every sentence has to end with <eos>: write the data with 'sememekit preprocess ... --end-of-sentence'"
            )
        return tokens, bounds

    def _batches(
        self, data: PreparedData, order: int
    ) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
        """Stream, bounds, and the batches of an epoch as numbers of sentences."""
        tokens, bounds = self.sentences(data, "train")
        lengths, limit = np.diff(bounds), self.settings.max_length
        kept = np.flatnonzero(lengths <= limit + 1) if limit else np.arange(len(lengths))
        if not len(kept):
            raise DataError(
                f"{data.folder}: all {len(lengths):,} training sentences are longer than task.max_length={limit}; the shortest "
                f"has {int(lengths.min()) - 1} tokens: raise it, or set 0 to take all"
            )
        return tokens, bounds, [kept[chosen] for chosen in bucketed_batches(lengths[kept], self.settings.batch_size, order)]

    def remarks(self, data: PreparedData) -> list[str]:
        """See ``Task.remarks``: settings without effect, sentences that are left out, sentences that memory will feel."""
        limit = self.settings.max_length
        lengths = np.diff(self.sentences(data, "train")[1])
        long = lengths[lengths > (limit or LONG) + 1]
        found = self.settings.without_effect()
        if len(long) and limit:
            found.append(
                f"{len(long):,} of {len(lengths):,} training sentences have more than task.max_length={limit} tokens and are "
                f"left out, {long.sum() / lengths.sum():.1%} of the training text; break its lines at the ends of sentences, "
                "or set task.max_length=0 to train on all of them"
            )
        elif len(long):
            found.append(
                f"{len(long):,} of {len(lengths):,} training sentences have more than {LONG} tokens, the longest "
                f"{int(long.max()) - 1:,}, and memory grows with the longest of a batch; task.max_length={LONG} leaves them out"
            )
        return found

    def begin(self, data: PreparedData) -> None:
        """See ``Task.begin``: the decoder is told how often each entry is met in the training text.

        Raises:
            ConfigError: an output layer that saves time in training by estimates, which this task cannot ask for.
        """
        if self.decoder.estimates_in_training:
            name = type(self.decoder).__name__.lower()
            raise ConfigError(
                f"a lattice asks for exact probabilities in training, too, where decoder {name!r} is the full "
                "softmax at its full price; take --decoder softmax, which is the same model"
            )
        words = np.bincount(data.tokens("train"), minlength=len(self.vocabulary))
        self.decoder.begin(self.entries.counts(words))

    def num_batches(self, data: PreparedData, order: int) -> int:
        """See ``Task.num_batches``."""
        return len(self._batches(data, order)[2])

    def batches(self, data: PreparedData, order: int, first: int) -> Iterator[LatticeBatch]:
        """See ``Task.batches``: sentences of similar length together, in an order that ``order`` decides."""
        tokens, bounds, batches = self._batches(data, order)
        for chosen in batches[first:]:
            yield self.batch_of([tokens[bounds[index] : bounds[index + 1]] for index in chosen])

    def start(self, data: PreparedData) -> Carry:
        """See ``Task.start``: sentences do not depend on each other."""
        return ()

    def loss(self, batch: LatticeBatch, carry: Carry) -> BatchLoss:
        """See ``Task.loss``: the nats of the sentences over their tokens, end marks included.

        What is differentiated is their mean over tokens or, with ``loss_per`` "sentence", over sentences: under Adam the
        steps are alike, but the second gradient is as many times larger as a sentence has tokens, and clipped so much sooner.
        """
        nats = -log_marginal(self.edge_scores(batch), batch.lengths)
        divisor = len(batch.lengths) if self.settings.loss_per == "sentence" else None
        return BatchLoss(nats.sum(), int(batch.lengths.sum()), None, (), divisor=divisor)

    def after_step(self, step: int) -> dict[str, float] | None:
        """See ``Task.after_step``: the temperature falls, and the decoder has its turn."""
        self.updates += 1
        return self.decoder.after_step(step)

    def sentence_nats(
        self, data: PreparedData, split: str, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        """See ``SentencePredictor.sentence_nats``."""
        tokens, bounds = self.sentences(data, split)
        lengths, size, done = np.diff(bounds), self.settings.evaluation_batch_size, 0
        for chosen in roomy(sorted_batches(lengths, size), lengths, size * LONG):
            found = self.lattices([tokens[bounds[index] : bounds[index + 1]] for index in chosen])
            yield chosen, -found.log_probabilities().double().cpu().numpy()
            done += int(found.lengths.sum())
            if progress is not None:
                progress(done, len(tokens))

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        """See ``Task.evaluate``: perplexity of a token, end marks included, over all sentences whatever their length."""
        nats = sum(float(part.sum()) for _, part in self.sentence_nats(data, split))
        tally = Tally(nats, len(data.tokens(split)))
        return {"perplexity": tally.perplexity, "nats": tally.nats, "tokens": tally.count}

    def ignorant(self, data: PreparedData, split: str) -> dict[str, float]:
        """See ``Task.ignorant``: the unigram model of the training split."""
        return {"perplexity": unigram_tally(data.tokens("train"), data.tokens(split), len(self.vocabulary)).perplexity}
