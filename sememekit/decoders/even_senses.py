"""Any output layer seen through a lexicon: senses and sememes of a model that gives words a probability at once."""

from typing import final

from torch import Tensor, nn

from sememekit.decoders.base import Decoder, SenseAttribution, Sensed, SenseProbabilities
from sememekit.decoders.sense_structure import SenseStructure
from sememekit.sememes import SememeGraph


@final
class EvenSenses(Sensed):
    """The probabilities of another output layer, each shared evenly by the senses that a graph gives to the word.

    p(s) = p(w(s)) / n(w(s)), n being the number of senses of a word. There is nothing to train and nothing learned of senses:
    what differs from context to context is the probability of words. A sememe has no gate of its own, so its gate is its mass,
    the sum of p(s) over the senses that hold it, which may be above one where a sense holds several of one set.

    >>> seen = EvenSenses(run.task.decoder, graph)
    >>> seen.sense_probabilities(hidden_NH).log_senses_NS

    Shapes: contexts (..., H), log-probabilities (..., V), as the layer has them.
    """

    def __init__(self, layer: Decoder, graph: SememeGraph) -> None:
        nn.Module.__init__(self)
        self.layer, self.tables = layer, layer.tables
        self.structure = SenseStructure.from_graph(graph, symmetric=False)
        self.register_buffer("log_senses", self.structure.sense_offsets.diff().float().log(), persistent=False)

    log_senses: Tensor

    def log_probs(self, hidden: Tensor) -> Tensor:
        return self.layer.log_probs(hidden)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return self.layer.nll(hidden, target)

    def topk_words(self, hidden: Tensor, count: int) -> tuple[Tensor, Tensor]:
        return self.layer.topk_words(hidden, count)

    def sense_probabilities(self, hidden: Tensor) -> SenseProbabilities:
        of_word_NV = self.layer.log_probs(hidden) - self.log_senses
        log_senses_NS = of_word_NV.index_select(-1, self.structure.word_of_sense)
        return SenseProbabilities(log_senses_NS, self.structure.onto_sememes(log_senses_NS.exp().T).T)

    def sense_attribution(self, hidden: Tensor, words: Tensor) -> SenseAttribution:
        offsets = self.structure.sense_offsets
        senses = [range(*offsets[word : word + 2].tolist()) for word in words.tolist()]
        gates_K = self.sense_probabilities(hidden.reshape(1, -1)).gates_NK[0]
        return SenseAttribution(tuple(tuple((sense, 1 / len(own)) for sense in own) for own in senses), tuple(gates_K.tolist()))
