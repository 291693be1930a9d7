"""Neural lattice language models: a sentence's probability is a sum over its segmentations and over copies of its words."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememekit.data.batching import sorted_batches
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import ClusterLearner, Decoder, spelled
from sememekit.encoders.base import ChildSum, Encoder, spelled_encoder
from sememekit.errors import ConfigError
from sememekit.layers import evaluating, shared_dropout, uniform_embedding
from sememekit.layers.lattice import ending_edges, log_marginal
from sememekit.measure import Tally, unigram_tally
from sememekit.progress import OneStage, silent
from sememekit.sememes import SememeGraph
from sememekit.tasks.base import BatchLoss, Carry, Divided, Kind, Planned, PrimaryMetric
from sememekit.tasks.lattice.batch import (
    LatticeBatch,
    length_remarks,
    limit_places,
    make_batch,
    split_sentences,
    training_batches,
)
from sememekit.tasks.lattice.entries import Entries, entries_of
from sememekit.tasks.lattice.inner import BatchVectors, Composition, Inner, SubModel, batch_vectors
from sememekit.tasks.lattice.scoring import EdgeScorer, Lattices, NodeStates, arriving, merging_weights, score_in_order
from sememekit.tasks.lattice.settings import GUMBEL, LONG, SAMPLED, TREES, LatticeSettings
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.scoring import SENTENCES, WITH_END, Scoring, UnitScores
from sememekit.text.vocabulary import Vocabulary


@final
class Lattice(Divided, Planned):
    """p(x) = sum over the paths S through the lattice of x of prod_(edges of S) p(edge | state where it begins).

    >>> batch = task.batch_of([np.append(ids, task.end)])
    >>> log_p_B = task.lattices([np.append(ids, task.end)]).log_probabilities()
    >>> scores_BTLC = task.edge_scores(batch)

    Buckman and Neubig 2018. The node j stands for the first j tokens; an edge is a chunk of 1 to L tokens in one of C copies.
    The forward recursion alpha_j = log sum exp(alpha_i + log p(edge)) gives log p(x) at the end mark. The end mark is predicted
    and closes its chunk; it is also read as the start mark, which is never predicted.

    p(chunk, copy | h) = main(row) + main(sentinel) sub(chunk | h) / copies, where ``main`` is an output layer over the chunk
    vocabulary with input tanh(A h + a), and ``sub`` covers all chunks (``SubModel``). Without a sub-model only listed chunks
    have edges. The vector of an edge is the vector of its row (for an unlisted chunk: of the sentinel), concatenated with a
    vector of its tokens (``Composition``).

    The state of a node merges the arriving states (``Rule``), or with ``segmental`` depends on the tokens only. The state at
    the node j is always a function of the first j tokens. So the probabilities of all sentences sum to one under any rule; only
    the released ``sub_marks`` lose probability. Sampling rules sample in training and take the most probable edge in
    evaluation. With L = 1, C = 1 and no sub-model there is one path, and this is a plain language model over sentences."""

    kind: ClassVar[Kind] = "lattices"
    kinds: ClassVar[frozenset[Kind]] = frozenset({"lattices"})
    summary, trained_by = "a lattice model", "lattice"
    metric: ClassVar[PrimaryMetric] = PrimaryMetric("perplexity", lower_is_better=True)
    left_to_right: ClassVar[bool] = True
    training_counters: ClassVar[tuple[str, ...]] = ("updates",)

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
        if settings.state in TREES and not isinstance(encoder, ChildSum):
            raise ConfigError(
                f"encoder {spelled_encoder(encoder)!r} has no forget gate for each of several states; use --encoder "
                "lattice_lstm, or another way of merging (--set task.state=marginal)"
            )
        if settings.start_mark and settings.start_mark not in vocabulary:
            raise ConfigError(
                f"task.start_mark={settings.start_mark!r} is no word of this vocabulary; prepare data with a list of words "
                "that has it (sememekit preprocess ... --vocabulary FILE), or leave it empty for the end mark"
            )
        self.settings, self.vocabulary, self.entries = settings, vocabulary, entries
        self.end: int = vocabulary.end_id
        self.opening = vocabulary.id(settings.start_mark) if settings.start_mark else self.end
        self.embedding, self.encoder, self.decoder = embedding, encoder, decoder
        size, longest = settings.embedding_size, settings.longest_chunk
        self.output = nn.Linear(encoder.output_size, size)
        inner = Inner(settings.inner_layers, settings.inner_coupled, settings.inner_dropout)
        self.composition = Composition(size, settings.composed_size, longest, inner) if settings.composed_size else None
        self.sub_model = None
        if settings.sub_model:
            sizes = encoder.output_size, len(vocabulary), size, settings.sub_size
            self.sub_model = SubModel(*sizes, longest, inner, released_marks=settings.sub_marks == "released")
        self.token_embedding = None
        if settings.token_vectors == "own" and (settings.sub_model or settings.composed_size or settings.state == "segmental"):
            self.token_embedding = uniform_embedding(len(vocabulary), size, settings.start_spread)
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
        vocabulary, graph = resources.vocabulary, resources.graph
        entries = entries_of(settings, vocabulary, resources.chunks, graph)
        embedding = uniform_embedding(len(entries.names), settings.embedding_size, settings.start_spread)
        if settings.senses and graph is not None:
            start_from_sememes(embedding.weight, entries, graph, settings.start_spread)
        encoder = resources.make_encoder(settings.embedding_size + settings.composed_size)
        decoder = resources.make_decoder(embedding.embedding_dim, embedding, entries.names)
        return cls(settings, vocabulary, entries, embedding, encoder, decoder)

    @classmethod
    def needs(cls, settings: LatticeSettings) -> frozenset[str]:
        return frozenset({"graph"}) if settings.senses else frozenset()

    @property
    def sums_to_one(self) -> bool:
        """True if the probabilities of all sentences sum to one; only the released marks of chunks prevent it."""
        return self.sub_model is None or not self.sub_model.released_marks

    @property
    def marginal(self) -> str:
        one_way = self.settings.longest_chunk == 1 and self.entries.most_copies == 1
        how: list[str] = [] if one_way or self.settings.state == "segmental" else [self.settings.state]
        if how and self.settings.state in SAMPLED:
            how.append("the most probable edge")
        if not self.sums_to_one:
            how.append("released marks, below one in sum")
        return f"exact marginal ({', '.join(how)})" if how else "exact marginal"

    @property
    def temperature(self) -> float:
        """The temperature of "gumbel" and "gumbel_tree" after the updates so far: see ``LatticeSettings.temperature_after``."""
        return self.settings.temperature_after(int(self.updates), self.planned_updates)

    def expect_updates(self, total: int) -> None:
        self.planned_updates = total

    def batch_of(self, sentences: Sequence[npt.NDArray[np.integer]]) -> LatticeBatch:
        windows, longest = self.settings.state != "segmental", self.settings.longest_chunk
        marks = {"end": self.end, "opening": self.opening}
        return make_batch(sentences, self.entries, longest, **marks, windows=windows, device=self.device)

    def edge_scores(
        self, batch: LatticeBatch, *, generator: torch.Generator | None = None, known: Sequence[Tensor] | None = None
    ) -> Tensor:
        """Return (B, T, L, C) log-probabilities of edges given their start state, by last token; -inf for absent edges.
        ``generator`` is for rules that sample (default: torch's). ``known``: weights (A, B) of the arriving states that replace
        the rule's, shorter edges first, for all inner nodes."""
        with torch.autocast(self.device.type, enabled=False):
            copies, rule, every = (self.word_rows, self.word_copies), self.settings.state, self.sub_model is not None
            table, own = self.embedding.weight, self.token_embedding
            vectors = batch_vectors(batch, table, *copies, own, self.composition, every=every)
            scorer = self._scorer(batch, vectors)
            if rule == "segmental" or batch.rows[0, 0].numel() == 1:
                scores_TBLC = scorer.score_edges(self._read(batch, vectors))
            else:
                states = self._states(batch, vectors)
                if known is None and rule == "direct":
                    there = batch.exists.unbind(0)
                    known = [arriving(there, node) for node in range(1, batch.num_tokens)]
                if known is not None:
                    scores_TBLC = scorer.score_edges(torch.stack([states.advance(weights_AB) for weights_AB in (None, *known)]))
                else:
                    temperature = self.temperature if rule in GUMBEL and self.training else 1.0
                    weigh = partial(merging_weights, rule, training=self.training, temperature=temperature, generator=generator)
                    scores_TBLC = score_in_order(states, scorer, weigh, batch.num_tokens, self.settings.posterior_gradient)
            return ending_edges(scores_TBLC.transpose(0, 1))

    def _scorer(self, batch: LatticeBatch, vectors: BatchVectors) -> EdgeScorer:
        sub_model, keep = None, None
        if self.sub_model is not None and vectors.every is not None:
            sub_model = self.sub_model, self.sub_model.prepare(vectors.every, vectors.words, batch)
        if self.training and self.settings.output_dropout:
            ones = self.output.weight.new_ones(batch.tokens.shape[1], self.output.in_features)
            keep = shared_dropout(ones, self.settings.output_dropout, True, ())
        return EdgeScorer(batch, self.output, self.decoder.chosen_log_probs(), keep, sub_model, self.entries.sentinel)

    def _read(self, batch: LatticeBatch, vectors: BatchVectors) -> Tensor:
        """Return the encoder outputs (T, B, H) before each token, for lattices with one path or with states from tokens."""
        mark = torch.full_like(batch.tokens[:1], self.opening)
        before = torch.cat([mark, batch.tokens[:-1]])
        x = vectors.windows[:, 0][torch.searchsorted(batch.words, before)]
        x = shared_dropout(x, self.settings.input_dropout, self.training, (0,))
        return self.encoder(x, before, self.encoder.start(before.shape[1])).hidden

    def _states(self, batch: LatticeBatch, vectors: BatchVectors) -> NodeStates:
        """Return the node states after the start mark alone."""
        encoder, windows, columns, copies = self.encoder, batch.windows, batch.tokens.shape[1], batch.rows.shape[3]
        assert windows is not None
        index = windows.index.unsqueeze(2) * copies + torch.arange(copies, device=self.device)[:, None]
        start = torch.searchsorted(batch.words, self.opening) * copies
        rate = self.settings.input_dropout if self.training else 0.0
        flat = vectors.windows.flatten(0, 1)
        if rate:
            keep = shared_dropout(flat.new_ones(columns, flat.shape[1]), rate, True, ())
            edges = encoder.input_part(functional.embedding(index, flat) * keep)
            at_start = encoder.input_part(functional.embedding(start, flat) * keep)
        else:
            parts = encoder.input_part(flat)
            edges, at_start = functional.embedding(index, parts), functional.embedding(start, parts).expand(columns, -1)
        masks = encoder.draw_masks(columns)
        mark = torch.full_like(batch.tokens[0], self.opening)
        hidden, state = encoder.combine(at_start, mark, encoder.state_part(encoder.start(columns), masks), masks)
        return NodeStates(encoder, self.settings.state, edges.unbind(0), batch.tokens, (hidden, *state), masks)

    def lattices(self, sentences: Sequence[npt.NDArray[np.integer]]) -> Lattices:
        """Return the lattices of sentences (word ids with end mark), in evaluation mode and without gradients."""
        with evaluating(self), torch.no_grad():
            batch = self.batch_of(sentences)
            return Lattices(batch.tokens.T, batch.lengths, self.edge_scores(batch), batch.chunks)

    def sentences(self, data: PreparedData, split: str) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.int64]]:
        return split_sentences(data, split, self.end)

    def remarks(self, data: PreparedData) -> list[str]:
        lengths = np.diff(self.sentences(data, "train")[1])
        return length_remarks(lengths, self.settings.max_length)

    def begin_training(self, data: PreparedData) -> None:
        decoder = spelled(self.decoder)
        if self.decoder.estimates_in_training:
            raise ConfigError(
                f"task 'lattice' computes exact probabilities in training, so drawing words, as decoder {decoder!r} does, "
                "saves no time; train the same model with all words: --set decoder.samples=0, or, in the place of sampled, "
                "--decoder softmax"
            )
        if isinstance(self.decoder, ClusterLearner) and self.decoder.learns_from_nll:
            raise ConfigError(
                f"task 'lattice' asks for the probabilities of chosen words, and decoder {decoder!r} "
                "learns its clusters from the likelihood of targets, so its clusters would stay random; take "
                "--decoder class_hsm, whose classes are made of counts, or keep the first clusters on purpose (--set "
                "decoder.update_every=0)"
            )
        self.decoder.begin_training(self.entries.counts(self.target_counts(data, "train")))

    def target_counts(self, data: PreparedData, split: str) -> npt.NDArray[np.int64]:
        return np.bincount(data.tokens(split), minlength=len(self.vocabulary))

    def num_batches(self, data: PreparedData, epoch_seed: int) -> int:
        return len(training_batches(data, np.diff(self.sentences(data, "train")[1]), self.settings, epoch_seed))

    def batches(self, data: PreparedData, epoch_seed: int, first: int) -> Iterator[LatticeBatch | None]:
        tokens, bounds = self.sentences(data, "train")
        for chosen in training_batches(data, np.diff(bounds), self.settings, epoch_seed)[first:]:
            mine = self.ranks.of(chosen)
            yield self.batch_of([tokens[bounds[index] : bounds[index + 1]] for index in mine]) if len(mine) else None

    def loss(self, batch: LatticeBatch, carry: Carry) -> BatchLoss:
        """The nats of the sentences, and their number of tokens with end marks.

        With ``loss_per`` "sentence" the gradient is the gradient of the mean over sentences. It is larger by the number of
        tokens in a sentence, and so clipped sooner; otherwise steps of Adam are similar."""
        nats = -log_marginal(self.edge_scores(batch), batch.lengths)
        divisor = len(batch.lengths) if self.settings.loss_per == "sentence" else None
        return BatchLoss(nats.sum(), batch.count, None, (), divisor=divisor)

    def after_step(self, step: int) -> dict[str, float] | None:
        self.updates += 1
        return super().after_step(step)

    def scored(self, data: PreparedData, split: str, batch_size: int | None = None) -> Scoring:
        tokens, bounds = self.sentences(data, split)
        lengths = np.diff(bounds)

        def chunks(progress: OneStage) -> Iterator[UnitScores]:
            done = 0
            for chosen, nats in self.nats([tokens[begin:end] for begin, end in pairwise(bounds)]):
                yield UnitScores(chosen, nats, lengths[chosen])
                done += int(lengths[chosen].sum())
                progress(done, len(tokens))

        how, reading = "scores whole sentences, not single words", {**SENTENCES, "marginal": self.marginal}
        without = ("by", "overlay", "cache", "dynamic", "batch_size")
        return Scoring(chunks, WITH_END, len(lengths), reading=reading, how=how, without=without)

    def nats(
        self, sentences: Sequence[npt.NDArray[np.integer]]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        """Yield indices of sentences (as for ``lattices``) and their nats, batch by batch."""
        lengths, size = np.array([len(sentence) for sentence in sentences], dtype=np.int64), self.settings.evaluation_batch_size
        for chosen in limit_places(sorted_batches(lengths, size), lengths, size * LONG):
            found = self.lattices([sentences[index] for index in chosen])
            yield chosen, -found.log_probabilities().double().cpu().numpy()

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        nats = sum(float(part.values.sum()) for part in self.scored(data, split).chunks(silent))
        tally = Tally(nats, len(data.tokens(split)))
        return {"perplexity": tally.perplexity, "nats": tally.nats, "tokens": tally.count}

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        return {"perplexity": unigram_tally(data.tokens("train"), data.tokens(split), len(self.vocabulary)).perplexity}


NOISE: Final = 0.1  # noise on each initial vector, as a share of the spread, so that words with the same sememes can diverge


@torch.no_grad()
def start_from_sememes(vectors: Tensor, entries: Entries, graph: SememeGraph, spread: float) -> None:
    """Give the copies of annotated words vectors (rows, E) made of sememes, in place.

    The vector of a sense is the sum of its k sememe vectors / sqrt(k), which keeps the variance, plus noise. Sememe vectors are
    uniform in +- ``spread``; they are not stored. Other rows stay unchanged."""
    sememes = torch.empty(graph.num_sememes, vectors.shape[1], dtype=vectors.dtype).uniform_(-spread, spread)
    for word in np.flatnonzero(graph.annotated).tolist():
        first = int(graph.sense_offsets[word])
        for copy in range(int(entries.num_copies[word])):
            begin, end = graph.set_offsets[graph.sense_set[first + copy] :][:2]
            own = sememes[graph.set_sememes[begin:end].tolist()]
            noise = torch.empty_like(vectors[0]).uniform_(-NOISE * spread, NOISE * spread)
            vectors[entries.rows[word, copy]] = own.sum(0) / len(own) ** 0.5 + noise
