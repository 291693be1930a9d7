"""The edges of senses and sememes in blocks that stay in the cache, in an order in which the edges of a sense need no index."""

from itertools import pairwise
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.nn import functional

from sememekit.decoders.sense_blocks import SenseArrays, inverse, inverse_root, ranges
from sememekit.layers import Incidence

EDGES_PER_BLOCK = 7680
"""So many edges times 128 tokens are an array of 4 MB. A half and a quarter of it are slower, for the calls of torch."""


@final
class EdgeBlock(NamedTuple):
    """The edges of some senses, which are sorted by falling number of edges.

    First the first edge of each sense, then the second of each sense that has one, and so on: the senses that have a j-th edge
    are the first ones of the block. s is the number of senses, e the number of edges.

    Attributes:
        senses, edges: which, as slices of the order of all blocks.
        ranks: how many senses have a first, a second ... edge.
        sememe_of_edge: (e,) int64.
        edges_of_sememe: Incidence (K x e).
    """

    senses: slice
    edges: slice
    ranks: tuple[int, ...]
    sememe_of_edge: Tensor
    edges_of_sememe: Incidence

    @property
    def num_edges(self) -> int:
        return self.edges.stop - self.edges.start


@final
class EdgeBlocks(NamedTuple):
    """All edges in blocks.

    Attributes:
        sense_at: (S,) the sense at each place of the order of the blocks.
        place_of: (S,) the place of each sense.
        sememe_of_edge: (edges,) in the order of the blocks.
        constant: (edges,) C[k, s].
        bases_of_edge: Incidence (edges x V R): the products of the bases with the word of each edge, word after word.
    """

    blocks: tuple[EdgeBlock, ...]
    sense_at: Tensor
    place_of: Tensor
    sememe_of_edge: Tensor
    constant: Tensor
    bases_of_edge: Incidence

    @property
    def most_edges(self) -> int:
        """Edges of the block that has most."""
        return max(block.num_edges for block in self.blocks)


def make_edge_blocks(arrays: SenseArrays, num_bases: int, dtype: torch.dtype) -> EdgeBlocks:
    """All edges in blocks of some thousand, with C[k, s] in ``dtype``."""
    device, num_words = arrays.set_of_sense.device, len(arrays.sense_offsets) - 1
    count_S, sense_at = arrays.set_offsets.diff()[arrays.set_of_sense].sort(descending=True, stable=True)
    ends_S = count_S.cumsum(0)
    number = max(1, round(int(ends_S[-1]) / EDGES_PER_BLOCK))
    cuts = torch.arange(1, number, device=device) * int(ends_S[-1]) // number
    bounds = sorted({0, *torch.searchsorted(ends_S, cuts).tolist(), len(sense_at)})
    offsets, members = ranges(arrays.set_offsets, arrays.set_of_sense[sense_at])
    blocks, order, done = [], [], 0
    for begin, end in pairwise(bounds):
        first_s, count_s = offsets[begin:end], count_S[begin:end]
        of_rank = [first_s[: int((count_s > rank).sum())] + rank for rank in range(int(count_s[0]))]
        edges = torch.cat(of_rank)
        sememe = arrays.set_sememes[members[edges]]
        of_sememe = sememe.argsort(stable=True)
        sememe_offsets = functional.pad(sememe.bincount(minlength=arrays.num_sememes).cumsum(0), (1, 0))
        edges_of_sememe = Incidence(sememe_offsets, of_sememe, len(edges))
        sizes = tuple(map(len, of_rank))
        blocks.append(EdgeBlock(slice(begin, end), slice(done, done + len(edges)), sizes, sememe, edges_of_sememe))
        order.append(edges)
        done += len(edges)
    order_e = torch.cat(order)
    words = torch.arange(num_words, device=device).repeat_interleave(arrays.sense_offsets.diff())
    word_of_edge = words[sense_at].repeat_interleave(count_S)[order_e]
    columns = word_of_edge[:, None] * num_bases + torch.arange(num_bases, device=device)
    row_offsets = torch.arange(len(columns) + 1, device=device) * num_bases
    return EdgeBlocks(
        blocks=tuple(blocks),
        sense_at=sense_at,
        place_of=inverse(sense_at),
        sememe_of_edge=arrays.set_sememes[members[order_e]],
        constant=inverse_root(arrays.squared_degree[members[order_e]], dtype),
        bases_of_edge=Incidence(row_offsets, columns.flatten(), num_bases * num_words),
    )
