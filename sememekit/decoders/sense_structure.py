"""Words, senses and sememes as index arrays."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from torch import Tensor

from sememekit.decoders.edge_blocks import EdgeBlocks, make_edge_blocks
from sememekit.decoders.sense_blocks import SenseArrays, SenseBlocks, make_blocks, ranges
from sememekit.layers import FixedTables
from sememekit.sememes import SememeGraph


@final
class SenseStructure(FixedTables):
    """Words, senses and sememes as index arrays on the device, without learned parameters.

    ``from_graph`` makes it from a sememe graph, and ``of_words`` restricts it to some words.

    >>> structure = SenseStructure.from_graph(graph, symmetric=False)
    >>> part, senses = structure.of_words(torch.tensor([3, 7]))
    >>> part.num_words, part.num_senses == len(senses)

    Attributes:
        sense_offsets: (V + 1,) bounds of the senses of each word.
        word_of_sense, set_of_sense: (S,).
        set_offsets, set_sememes: the sememes of each distinct set, one set after the other.
        squared_degree: (as set_sememes) 1 / C[k, s]^2, an integer: |E(s)|^2, or |E(s)| |D(k)| in the symmetric form.
        num_words, num_senses, num_sememes: V, S, K.
        most_senses: M, largest number of senses of a word in the graph.
    """

    sense_offsets: Tensor
    word_of_sense: Tensor
    set_of_sense: Tensor
    set_offsets: Tensor
    set_sememes: Tensor
    squared_degree: Tensor

    def __init__(
        self,
        sense_offsets: Tensor,
        set_of_sense: Tensor,
        set_offsets: Tensor,
        set_sememes: Tensor,
        squared_degree: Tensor,
        num_sememes: int,
        most_senses: int,
    ) -> None:
        super().__init__()
        self.num_words, self.num_senses, self.num_sememes = len(sense_offsets) - 1, len(set_of_sense), num_sememes
        self.most_senses = most_senses
        words = torch.arange(self.num_words, device=sense_offsets.device)
        for name, tensor in (
            ("sense_offsets", sense_offsets),
            ("word_of_sense", words.repeat_interleave(sense_offsets.diff(), output_size=self.num_senses)),
            ("set_of_sense", set_of_sense),
            ("set_offsets", set_offsets),
            ("set_sememes", set_sememes),
            ("squared_degree", squared_degree),
        ):
            self.register_tables(**{name: tensor})
        self._blocks: dict[tuple[torch.device, torch.dtype], SenseBlocks] = {}
        self._edge_blocks: dict[tuple[torch.device, torch.dtype, int], EdgeBlocks] = {}

    @classmethod
    def from_graph(cls, graph: SememeGraph, *, symmetric: bool) -> SenseStructure:
        """The whole graph, with C[k, s] in its left or its symmetric form."""
        set_sizes = np.diff(graph.set_offsets)
        own = np.repeat(set_sizes, set_sizes)
        squared_degree = own * (graph.senses_per_sememe[graph.set_sememes] if symmetric else own)
        arrays = (graph.sense_offsets, graph.sense_set, graph.set_offsets, graph.set_sememes, squared_degree)
        offsets, set_of_sense, set_offsets, members, degrees = (torch.from_numpy(array.astype(np.int64)) for array in arrays)
        most_senses = int(np.diff(graph.sense_offsets).max())
        return cls(offsets, set_of_sense, set_offsets, members, degrees, graph.num_sememes, most_senses)

    def of_words(self, words: Tensor) -> tuple[SenseStructure, Tensor]:
        """Return the structure of the distinct words (W,), and the numbers (S',) of their senses in the whole.

        Words and senses are renumbered; sets, sememes and C[k, s] (which counts the senses of the whole graph) stay.
        """
        sense_offsets, senses = ranges(self.sense_offsets, words)
        sets = (self.set_of_sense[senses], self.set_offsets, self.set_sememes, self.squared_degree)
        return SenseStructure(sense_offsets, *sets, self.num_sememes, self.most_senses), senses

    def senses_of(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return all senses of ``words`` (N,), padded to M: (M, N) senses, and (M, N) which are real.

        A fixed M makes the shape known in advance, without waiting for the device.
        """
        first = self.sense_offsets[words]
        count = self.sense_offsets[words + 1] - first
        rank = torch.arange(self.most_senses, device=words.device)[:, None]
        return first + torch.minimum(rank, count - 1), rank < count

    def onto_sememes(self, of_sense_SN: Tensor) -> Tensor:
        """Sum (S, N) over the senses of each sememe: (K, N)."""
        blocks = self.blocks(of_sense_SN.dtype)
        of_sense_SN = of_sense_SN.index_select(0, blocks.sense_at)
        parts = [block.sememes_of_sense.back(of_sense_SN[block.places]) for block in blocks.blocks]
        return torch.stack(parts).sum(dim=0)

    def blocks(self, dtype: torch.dtype) -> SenseBlocks:
        """The senses in blocks, with C[k, s] in ``dtype``: of some thousand senses on CPU, elsewhere in one.

        Built at the first call on a device, as ordinary tensors even in inference mode, so that training can use them.
        """
        key = (self.sense_offsets.device, dtype)
        if key not in self._blocks:
            with torch.inference_mode(False):
                self._blocks = {key: make_blocks(self._arrays(), dtype)}
        return self._blocks[key]

    def edge_blocks(self, dtype: torch.dtype, num_bases: int) -> EdgeBlocks:
        """The edges in blocks of some thousand, for R bases, with C[k, s] in ``dtype``; made like ``blocks``."""
        key = (self.sense_offsets.device, dtype, num_bases)
        if key not in self._edge_blocks:
            with torch.inference_mode(False):
                self._edge_blocks = {key: make_edge_blocks(self._arrays(), num_bases, dtype)}
        return self._edge_blocks[key]

    def edges_of_senses(self) -> Tensor:
        """Return (S,) the number of sememes of each sense."""
        return self.set_offsets.diff()[self.set_of_sense]

    def _arrays(self) -> SenseArrays:
        arrays = (self.sense_offsets, self.set_of_sense, self.set_offsets, self.set_sememes, self.squared_degree)
        return SenseArrays(*arrays, self.num_sememes)
