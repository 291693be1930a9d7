"""Resources from which a task is built."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from sememekit.decoders.base import Decoder, Resources
from sememekit.encoders.base import Encoder, EncoderResources
from sememekit.errors import ConfigError
from sememekit.sememes import SememeGraph
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

Part = TypeVar("Part", Encoder, Decoder)


@dataclass(frozen=True)
class Chosen(Generic[Part]):
    """An encoder or an output layer that a plan names, not built yet."""

    name: str
    kind: type[Part]
    settings: Any


@dataclass(frozen=True)
class TaskResources:
    """Arguments of ``Task.build``: the words, data about them, and the parts that the plan names.

    A task builds its parts in the order embedding, encoder, output layer, task, so that one seed gives one model."""

    task: str
    vocabulary: Vocabulary
    encoder: Chosen[Encoder]
    decoder: Chosen[Decoder] | None = None
    graph: SememeGraph | None = None
    clusters: NDArray[np.int64] | None = None
    """(V,) the cluster of each word, if the run has a file of word clusters."""
    labels: tuple[str, ...] = ()
    """Names of the labels of the data, by id; none for data without labels."""
    chunks: ChunkVocabulary | None = None
    """Words and n-grams, if the data have them."""
    kept: bytes | None = None
    """The result of ``Encoder.keep`` when the run began, if any."""

    def make_encoder(self, input_size: int) -> Encoder:
        """Build the encoder of the plan for input vectors of ``input_size``; ConfigError if it does not fit."""
        return self.encoder.kind(self.encoder.settings, EncoderResources(input_size, self.vocabulary, self.graph, self.kept))

    def make_decoder(self, width: int, embedding: nn.Embedding | None, entries: Vocabulary | None = None) -> Decoder:
        """Build the output layer of the plan; ConfigError if it does not fit or needs an absent part.

        ``embedding``: (V, E) table of a tied output layer; None if untied. ``entries``: names of the classes if they are not
        the words; ``embedding`` has a row for each. Graph and clusters belong to single words, so then there are none."""
        if self.decoder is None:
            raise ConfigError(
                f"task {self.task!r} takes no output layer (takes_decoder is False) and asks for one when it is built"
            )
        settings = self.decoder.settings
        if entries is None:
            return self.decoder.kind(settings, Resources(width, self.vocabulary, self.graph, embedding, self.clusters))
        if (needs := self.decoder.kind.needs(settings) & {"graph", "clusters"}) != frozenset():
            raise ConfigError(
                f"task {self.task!r} chooses from chunks of words, and decoder {self.decoder.name!r} with these settings "
                f"needs the {min(needs)} of single words; take one that does not, such as --decoder softmax or --decoder mos"
            )
        return self.decoder.kind(settings, Resources(width, entries, None, embedding))
