"""The tree-based softmax (Morin and Bengio 2005): a word is a path of left and right turns in a binary tree."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sememekit.decoders.base import Decoder, Resources
from sememekit.decoders.bias_start import BiasStart, BiasStartSettings
from sememekit.errors import ConfigError
from sememekit.layers import FixedTables, product_and_bias
from sememekit.word_classes.partition import WordTree, balanced_tree, huffman_tree, sememe_order


@final
class TreeHSM(Decoder, FixedTables):
    """log p(w | g) = sum over the inner nodes j on the path to w of log sigmoid(s_j (g . n_j + b_j)).

    s_j is +1 for a left turn and -1 for a right turn; n_j (H) and b_j belong to one of V - 1 nodes (Morin and Bengio 2005). The
    tree is Huffman's over the counts (Mikolov et al. 2013), with the shortest mean path, or a balanced tree over words sorted
    so that neighbours share sememes (``word_classes.partition``). Each node of the balanced tree divides a semantic field, as
    in the WordNet tree of Morin and Bengio.

    Words have no vectors to share with the input embedding, so this layer is never tied.

    The likelihood of N tokens is one product over the packed nodes of all their paths; each call reads the number of these
    nodes from the device once. The distribution over all words goes down the tree level by level in log space."""

    class Settings(BiasStartSettings):
        tree: Literal["huffman", "sememes"] = "huffman"
        """Huffman's tree over the counts, or a balanced tree over the order of the sememe graph (``--graph``)."""
        bias: bool = True
        """A bias for each node."""
        starts: ClassVar[Mapping[str, BiasStart]] = {}

    level_bounds: list[int]
    parent: Tensor
    sign: Tensor
    path_offsets: Tensor
    path_nodes: Tensor
    path_signs: Tensor

    @classmethod
    def needs(cls, settings: Settings) -> frozenset[str]:
        return frozenset({"graph"} if settings.tree == "sememes" else ())

    def __init__(self, settings: Settings, resources: Resources) -> None:
        super().__init__(settings, resources)
        self.num_words = len(resources.vocabulary)
        if self.num_words < 2:
            raise ConfigError("decoder 'tree_hsm': a tree needs two words or more, and the vocabulary has one")
        self._take(_tree(settings, resources))
        self.nodes = nn.Parameter(torch.empty(self.num_words - 1, resources.width).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(self.num_words - 1)) if settings.bias else None
        self.bias_start = settings.bias_start

    def room_for_words(self) -> Mapping[str, Any]:
        raise ConfigError(
            "decoder 'tree_hsm' has vectors of the nodes of its tree and none of words, so that no word can be added; train "
            "another output layer, such as --decoder softmax, or train this one on data with the words"
        )

    def begin_training(self, counts: NDArray[np.integer]) -> None:
        """Set the bias of each node to the log-odds of its two sides (each count plus 1) with "log_frequency"."""
        if self.bias is None or self.bias_start != "log_frequency":
            return
        words = torch.arange(self.num_words).repeat_interleave(self.path_offsets.cpu().diff())
        mass = torch.from_numpy(np.asarray(counts, dtype=np.float64) + 1.0)[words]
        nodes, left = self.path_nodes.cpu(), self.path_signs.cpu() > 0
        sides = [
            torch.zeros(len(self.bias), dtype=torch.float64).index_add(0, nodes[side], mass[side]) for side in (left, ~left)
        ]
        with torch.no_grad():
            self.bias.copy_(sides[0].log() - sides[1].log())

    def _take(self, tree: WordTree) -> None:
        """Store the tree as tensors: bounds of the levels of inner nodes, parent of each place, and all paths."""
        offsets, nodes, sides = tree.paths()
        inner_depth = tree.depth[: tree.num_words - 1]
        self.level_bounds = [0, *np.cumsum(np.bincount(inner_depth)).tolist()]
        signs, path_signs = torch.from_numpy(1 - 2 * tree.side), torch.from_numpy(1 - 2 * sides)
        self.register_tables(parent=torch.from_numpy(tree.parent), sign=signs, path_offsets=torch.from_numpy(offsets))
        self.register_tables(path_nodes=torch.from_numpy(nodes), path_signs=path_signs)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities, computed for each place from its parent and the turn."""
        scores = product_and_bias(hidden, self.nodes, self.bias)
        levels = [scores.new_zeros((*hidden.shape[:-1], 1))]
        for level in range(1, len(self.level_bounds) - 1):
            begin, end = self.level_bounds[level : level + 2]
            above = self.parent[begin:end]
            before = levels[-1].index_select(-1, above - self.level_bounds[level - 1])
            levels.append(before + self._turn(scores, above, self.sign[begin:end]))
        above = self.parent[self.num_words - 1 :]
        reached = torch.cat(levels, dim=-1)
        return reached.index_select(-1, above) + self._turn(scores, above, self.sign[self.num_words - 1 :])

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        rows, words = hidden.reshape(-1, hidden.shape[-1]), target.reshape(-1)
        first = self.path_offsets[words]
        length = self.path_offsets[words + 1] - first
        token = torch.arange(len(words), device=words.device).repeat_interleave(length)
        step = torch.arange(len(token), device=words.device) - (length.cumsum(0) - length)[token]
        place = first[token] + step
        nodes = self.path_nodes[place]
        scores = (functional.embedding(nodes, self.nodes) * rows.index_select(0, token)).sum(dim=-1)
        if self.bias is not None:
            scores = scores + self.bias[nodes]
        turns = -functional.logsigmoid(self.path_signs[place] * scores)  # softplus is linear from 20 on
        return turns.new_zeros(len(words)).index_add(0, token, turns).reshape(target.shape)

    @staticmethod
    def _turn(scores: Tensor, nodes: Tensor, sign: Tensor) -> Tensor:
        """Return log-probabilities of turning to the side ``sign`` at ``nodes``."""
        return functional.logsigmoid(scores.index_select(-1, nodes) * sign)


def _tree(settings: TreeHSM.Settings, resources: Resources) -> WordTree:
    if settings.tree == "huffman":
        return huffman_tree(resources.vocabulary.counts)
    assert resources.graph is not None
    resources.graph.check_vocabulary(resources.vocabulary)
    return balanced_tree(sememe_order(resources.graph), resources.vocabulary.counts)
