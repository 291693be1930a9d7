"""Output layers whose weights mean something only with the senses, classes or tree that the layer was built with."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sememekit.errors import CheckpointError
from sememekit.nn.output_layer import OutputLayer
from sememekit.sememes import SememeGraph

_KEY: Final = "_extra_state"
"""torch's name for what ``get_extra_state`` returns."""


class StructuredLayer(OutputLayer):
    """An output layer whose state dict has a fingerprint of its structure, and which refuses the weights of another one."""

    def _built(self, graph: SememeGraph | None) -> None:
        digest = hashlib.sha256()
        for array in self._structure(graph):
            digest.update(str(array.shape).encode() + np.ascontiguousarray(array, dtype=np.int64).tobytes())
        digest.update(repr(self.sememes).encode())
        self._fingerprint = np.frombuffer(digest.digest(), dtype=np.uint8).astype(np.int64)

    @abstractmethod
    def _structure(self, graph: SememeGraph | None) -> Iterable[NDArray[Any]]:
        """Arrays of whole numbers that say which words, senses or classes the weights belong to."""

    def get_extra_state(self) -> Tensor:
        """The fingerprint as 32 numbers: a tensor, so that any format of weights takes it."""
        return torch.from_numpy(self._fingerprint.copy())

    def set_extra_state(self, state: Any) -> None:
        """Compare the fingerprint of a state dict with that of this layer.

        Raises:
            CheckpointError: the weights belong to other senses, classes or another tree.
        """
        found = state.cpu().long().numpy() if isinstance(state, Tensor) else np.zeros(0, dtype=np.int64)
        if not np.array_equal(found, self._fingerprint):
            raise CheckpointError(
                f"{type(self).__name__}: the state dict belongs to a layer with other senses, classes or another tree "
                f"(fingerprint {_short(found)}, this layer {_short(self._fingerprint)}); build it from the counts, senses, "
                "clusters and settings of the layer that was stored"
            )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """A state dict of a former version has no fingerprint, and is taken as it is."""
        state_dict.setdefault(f"{prefix}{_KEY}", self.get_extra_state())
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _short(fingerprint: NDArray[Any]) -> str:
    return "".join(f"{number & 255:02x}" for number in fingerprint[:4].tolist()) or "unreadable"
