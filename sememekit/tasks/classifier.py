"""Text classification and natural language inference: encoder, pooling and classifier, for one text or a pair."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Final, Literal, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from sememekit import config
from sememekit.corpora.examples.base import START, STOP
from sememekit.data.batching import bucketed_batches, padded, sorted_batches
from sememekit.data.examples import Examples
from sememekit.data.prepared import PreparedData
from sememekit.encoders.base import Encoder
from sememekit.errors import ConfigError
from sememekit.layers import at_least_single, evaluating
from sememekit.measure.classes import Accuracy, accuracy_of
from sememekit.tasks.base import BatchLoss, Carry, Divided, Kind, LabelPredictor, PrimaryMetric
from sememekit.tasks.resources import TaskResources
from sememekit.tasks.vectors import VectorCoverage, load_vectors, vector_coverage
from sememekit.text.vocabulary import Vocabulary

_HOW: Final = "sememekit preprocess snli|sst2|imdb|classification SOURCE --out DIR"
_LONG: Final = 1000  # words of a text above which ``train`` warns
_TIMES_USUAL: Final = 20  # length of a text over the median length above which it warns


class TextBatch(NamedTuple):
    """B examples of N texts."""

    tokens: Tensor  # (T, N * B) word ids, all first texts before all second ones, each text between ``<s>`` and ``</s>``
    lengths: Tensor  # (N * B,) on the CPU: number of words of each text, marks included
    labels: Tensor  # (B,) ids of labels


class TextClassifier(LabelPredictor, Divided):
    """Word vectors -> dropout -> encoder -> one vector a text -> features of the example -> tanh layers -> label.

    >>> batch = task.batch_of([(premise_ids, hypothesis_ids)], np.array([0]))
    >>> logits_BC = task.logits(batch)
    >>> nats = task.loss(batch, ()).nats    # cross entropy, summed over the batch

    One encoder reads every text of an example. The vector of a text is the last hidden state (bidirectional: the last forward
    and the first backward state), or the maximum over its words. The loss is the mean over the examples of a batch. A subclass
    defines the number of texts in an example and their features."""

    kind: ClassVar[Kind] = "influence"
    kinds: ClassVar[frozenset[Kind]] = LabelPredictor.kinds | {"influence"}
    summary, trained_by = "a classifier that words can be taken from", "nli|classification"
    metric: ClassVar[PrimaryMetric] = PrimaryMetric("accuracy", lower_is_better=False)
    word_tables: ClassVar[tuple[str, ...]] = ("read_as", "has_vector")
    """Buffers of ids and marks of words, which a larger vocabulary takes by ``read_words_of``."""

    class Settings(config.Settings):
        vectors: str = ""
        """File of pretrained word vectors (``word number number ...``, also ``.xz``); empty for none."""
        tune_vectors: bool = False
        """True if vectors from a file are trained further. Vectors without a file always are."""
        outside: Literal["random", "unknown", "drop"] = "random"
        """Words without a pretrained vector: draw one at random, read the word as ``<unk>``, or drop it from the text."""
        embedding_size: int = Field(default=300, ge=1)
        """E, the size of the word vectors (with a file: its size)."""
        spread: float = Field(default=0.1, gt=0.0)
        """Standard deviation of random word vectors (with a file: the deviation of its numbers)."""
        input_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the input word vectors."""
        pooling: Literal["last", "max"] = "last"
        """The vector of a text: the last hidden state, or the maximum of each unit over its words."""
        classifier_size: int = Field(default=512, ge=1)
        """Size of the layers between features and labels."""
        classifier_layers: int = Field(default=2, ge=0)
        """Number of layers before the labels, each with tanh."""
        classifier_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
        """Rate on the features and on the output of each layer."""
        max_length: int = Field(default=0, ge=0)
        """Number of words that are read from the start of a text; 0 reads all."""
        batch_size: int = Field(default=64, ge=1)
        """B, examples in training."""
        evaluation_batch_size: int = Field(default=256, ge=1)
        """Examples read at once in evaluation: memory and speed only."""

        only_with: ClassVar[Mapping[str, config.OnlyWith]] = {
            "tune_vectors": config.OnlyWith("vectors", other_than=("",)),
            "outside": config.OnlyWith("vectors", other_than=("",)),
            "classifier_size": config.OnlyWith("classifier_layers", other_than=(0,)),
        }

    def __init__(
        self, settings: Settings, vocabulary: Vocabulary, embedding: nn.Embedding, encoder: Encoder, labels: Sequence[str]
    ) -> None:
        super().__init__()
        if len(labels) < 2:
            raise ConfigError(
                f"a task on labels needs data with two labels or more, and these have {len(labels)}; write such data "
                f"with: {_HOW}"
            )
        self.settings = settings
        self.vocabulary = vocabulary
        self.labels = tuple(labels)
        self.embedding = embedding
        if settings.vectors and not settings.tune_vectors:
            embedding.weight.requires_grad_(False)
        self.encoder = encoder
        sizes = [self.num_features(encoder.output_size), *[settings.classifier_size] * settings.classifier_layers]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.choice = nn.Linear(sizes[-1], len(labels))
        self.register_buffer("read_as", torch.arange(len(vocabulary), dtype=torch.int32))
        self.read_as: Tensor
        """(V,) the word that each word is read as: itself, ``<unk>``, or -1 for dropped words."""
        for mark in (START, STOP):
            if mark not in vocabulary:
                raise ConfigError(f"the vocabulary has no {mark!r}, so its data have no labels; prepare such data with: {_HOW}")
        self.register_buffer("has_vector", torch.zeros(len(vocabulary), dtype=torch.int8))
        self.has_vector: Tensor
        """(V,) 1 if the word has a pretrained vector."""
        self._read_as_copy: tuple[int, npt.NDArray[np.int32]] | None = None
        self._marks = (vocabulary.id(START), vocabulary.id(STOP))

    @classmethod
    def build(cls, settings: Settings, resources: TaskResources) -> Self:
        embedding = nn.Embedding(len(resources.vocabulary), settings.embedding_size)
        nn.init.normal_(embedding.weight, std=settings.spread)
        encoder = resources.make_encoder(settings.embedding_size)
        return cls(settings, resources.vocabulary, embedding, encoder, resources.labels)

    def begin_training(self, data: PreparedData) -> None:
        settings = self.settings
        if not settings.vectors:
            return
        known = load_vectors(settings.vectors, self.vocabulary, self.embedding, settings.spread)
        self.has_vector.copy_(known)
        known[list(self._marks)] = True
        if settings.outside == "unknown":
            self.read_as[~known] = self.vocabulary.id("<unk>")
        elif settings.outside == "drop":
            self.read_as[~known] = -1

    def read_words_of(self, before: "TextClassifier", ids: npt.NDArray[np.int64]) -> None:
        """Read old words (ids here: ``ids``) like the smaller model ``before``, and new words unchanged."""
        self.read_as.copy_(torch.arange(len(self.vocabulary)))
        self.has_vector.zero_()
        read = before.read_as.cpu().numpy()
        self.read_as[ids] = torch.from_numpy(np.where(read < 0, -1, ids[read])).to(self.read_as)
        self.has_vector[ids] = before.has_vector.to(self.has_vector)

    def vector_coverage(self, data: PreparedData, split: str) -> VectorCoverage | None:
        if not self.settings.vectors:
            return None
        counts = np.bincount(np.asarray(data.tokens(split)), minlength=len(self.vocabulary))
        counts[list(self._marks)] = 0
        has_vector = self.has_vector.cpu().numpy().astype(bool)
        return vector_coverage(counts, has_vector, split=split, file=self.settings.vectors, outside=self.settings.outside)

    @classmethod
    @abstractmethod
    def num_features(cls, size: int) -> int:
        """Return the number of features of an example, from texts of ``size`` numbers each."""

    @abstractmethod
    def features(self, texts: Sequence[Tensor]) -> Tensor:
        """Features (B, F) of examples, from the vectors (B, H) of each of their texts."""

    def text_vectors(self, tokens: Tensor, lengths: Tensor, x: Tensor | None = None) -> Tensor:
        """Return the vectors (B, H) of texts from word ids (T, B), or from ``x`` (T, B, E) in place of the word vectors."""
        x_TBE = functional.dropout(self.embedding(tokens) if x is None else x, self.settings.input_dropout, self.training)
        encoded = self.encoder(x_TBE, tokens, self.encoder.start(tokens.shape[1]), lengths)
        if self.settings.pooling == "last":
            return self.encoder.last(encoded, lengths)
        padding_TB = torch.arange(len(tokens), device=tokens.device)[:, None] >= lengths.to(tokens.device)
        return encoded.hidden.masked_fill(padding_TB.unsqueeze(-1), float("-inf")).amax(0)

    def logits(self, batch: TextBatch) -> Tensor:
        """(B, C) unnormalised log-probabilities of the labels."""
        return self.choose(self.text_vectors(batch.tokens, batch.lengths).chunk(self.num_texts))

    def choose(self, texts: Sequence[Tensor]) -> Tensor:
        """Return the logits (B, C) from the vectors (B, H) of each text."""
        rate = self.settings.classifier_dropout
        x_BF = functional.dropout(self.features(texts), rate, self.training)
        for layer in self.hidden:
            x_BF = functional.dropout(torch.tanh(layer(x_BF)), rate, self.training)
        return self.choice(x_BF)

    def batch_of(self, texts: Sequence[Sequence[npt.NDArray[np.integer]]], labels: npt.NDArray[np.integer]) -> TextBatch:
        """A padded batch of B examples of N arrays of word ids, with labels (B,)."""
        rows = [self._read(example[number]) for number in range(self.num_texts) for example in texts]
        tokens, lengths = self.padded(rows)
        return TextBatch(tokens, lengths, torch.from_numpy(labels.astype(np.int64)).to(self.device, non_blocking=True))

    def _read(self, text: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
        """Return the ids of a text as the model reads it: without dropped words, cut to ``max_length``."""
        ids = self._read_as()[np.asarray(text, dtype=np.int64)]  # as ``places_read``, with one look at the table
        return ids[ids >= 0][: self.settings.max_length or None]

    def places_read(self, text: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return the positions of the words that the model reads: without dropped words, up to ``max_length``."""
        return np.flatnonzero(self._read_as()[np.asarray(text, dtype=np.int64)] >= 0)[: self.settings.max_length or None]

    def word_read(self, word: int) -> int:
        """Return the id of the word that the model reads in place of ``word``; -1 for a dropped word."""
        return int(self._read_as()[word])

    def padded(self, rows: Sequence[npt.NDArray[np.integer]]) -> tuple[Tensor, Tensor]:
        """Ids (T, B) with the marks around each row, on the device, and the lengths (B,) on the CPU."""
        tokens, lengths = padded(rows, self._marks[:1], self._marks[1:])
        return torch.from_numpy(tokens).to(self.device, non_blocking=True), torch.from_numpy(lengths)

    def _read_as(self) -> npt.NDArray[np.int32]:
        """``read_as`` on the CPU, copied once after each change."""
        if self._read_as_copy is None or self._read_as_copy[0] != self.read_as._version:
            self._read_as_copy = self.read_as._version, self.read_as.cpu().numpy()
        return self._read_as_copy[1]

    def _gather(self, examples: Examples, chosen: npt.NDArray[np.int64]) -> TextBatch:
        texts = [examples.texts(int(index)) for index in chosen]
        return self.batch_of(texts, np.asarray(examples.labels[chosen]))

    def remarks(self, data: PreparedData) -> list[str]:
        """Warn of a text so long that its batch would seem to hang."""
        lengths = self.examples(data, "train").lengths().max(1)
        longest, usual = int(lengths.max()), int(np.median(lengths))
        if self.settings.max_length or longest <= max(_LONG, _TIMES_USUAL * usual):
            return []
        return [
            f"example {int(lengths.argmax()) + 1:,} of train has {longest:,} words, where the usual one has {usual:,}: a batch "
            "takes the time and memory of its longest text, and a signal waits for its end; cut long texts with "
            f"--set task.max_length={max(_LONG, 2 * usual)}"
        ]

    def num_batches(self, data: PreparedData, epoch_seed: int) -> int:
        return -(-len(self.examples(data, "train")) // self.settings.batch_size)

    def batches(self, data: PreparedData, epoch_seed: int, first: int) -> Iterator[TextBatch | None]:
        examples = self.examples(data, "train")
        for chosen in bucketed_batches(examples.lengths().max(1), self.settings.batch_size, epoch_seed)[first:]:
            mine = self.ranks.of(chosen)
            yield self._gather(examples, mine) if len(mine) else None

    def loss(self, batch: TextBatch, carry: Carry) -> BatchLoss:
        nats = functional.cross_entropy(at_least_single(self.logits(batch)), batch.labels, reduction="sum")
        return BatchLoss(nats, len(batch.labels), None, ())

    @torch.no_grad()
    def probabilities(self, texts: Sequence[Sequence[npt.NDArray[np.integer]]]) -> npt.NDArray[np.float64]:
        """(n, C) probabilities of the labels. Equal texts, as in attacks on pairs, are encoded once."""
        if not len(texts):
            return np.zeros((0, len(self.labels)))
        place: dict[bytes, int] = {}
        read = [[self._read(example[number]).tobytes() for number in range(self.num_texts)] for example in texts]
        where = np.array([[place.setdefault(text, len(place)) for text in example] for example in read])
        rows = [np.frombuffer(text, dtype=np.int32) for text in place]
        size = self.settings.evaluation_batch_size
        vectors, result = None, []
        with evaluating(self):
            for chosen in sorted_batches(np.array([len(row) for row in rows]), size * self.num_texts):
                found = self.text_vectors(*self.padded([rows[index] for index in chosen]))
                if vectors is None:
                    vectors = found.new_zeros(len(rows), found.shape[1])
                vectors[torch.from_numpy(chosen).to(found.device)] = found
            assert vectors is not None
            for begin in range(0, len(texts), size):
                part = torch.from_numpy(where[begin : begin + size]).to(vectors.device)
                result.append(self.choose([vectors[part[:, number]] for number in range(self.num_texts)]))
            return torch.cat(result).double().softmax(-1).cpu().numpy()

    @torch.no_grad()
    def evaluate_labels(self, data: PreparedData, split: str) -> tuple[Accuracy, float]:
        examples = self.examples(data, split)
        confusion = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        nats = 0.0
        with evaluating(self):
            for chosen in sorted_batches(examples.lengths().max(1), self.settings.evaluation_batch_size):
                batch = self._gather(examples, chosen)
                logits = self.logits(batch).double()
                nats += float(functional.cross_entropy(logits, batch.labels, reduction="sum"))
                np.add.at(confusion, (batch.labels.cpu().numpy(), logits.argmax(-1).cpu().numpy()), 1)
        return accuracy_of(confusion, self.labels), nats

    def evaluate(self, data: PreparedData, split: str) -> dict[str, float]:
        accuracy, nats = self.evaluate_labels(data, split)
        return {"accuracy": accuracy.accuracy, "nats": nats, "examples": accuracy.examples}

    def unigram_baseline(self, data: PreparedData, split: str) -> dict[str, float]:
        """Return the share of the most frequent label of train."""
        train, other = self.examples(data, "train").labels, self.examples(data, split).labels
        usual = int(np.bincount(train).argmax())
        return {"accuracy": max(float(np.mean(other == usual)), 1e-9)}


@final
class SingleTextClassifier(TextClassifier):
    """One text, one label: the vector of the text is the input of the classifier."""

    num_texts: ClassVar[int] = 1

    class Settings(TextClassifier.Settings):
        classifier_layers: int = Field(default=1, ge=0)
        """Number of layers with tanh between the vector of the text and the labels."""

    @classmethod
    def num_features(cls, size: int) -> int:
        return size

    def features(self, texts: Sequence[Tensor]) -> Tensor:
        return texts[0]


@final
class TextPairClassifier(TextClassifier):
    """Pairs of sentences, encoded apart; features [u, v, |u - v|, u * v] (Conneau et al. 2017; Qin et al. 2020, Sec. IV-C)."""

    num_texts: ClassVar[int] = 2

    @classmethod
    def num_features(cls, size: int) -> int:
        return 4 * size

    def features(self, texts: Sequence[Tensor]) -> Tensor:
        u, v = texts
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
