"""Files of tensors in the safetensors format, written and read one tensor after the other.

``safetensors.torch.save`` makes the whole file in memory, beside the tensors; here a checkpoint needs no second copy of them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import safetensors
import torch
from torch import Tensor

from sememekit.layers import rows_of_ranks
from sememekit.ranks import ALONE, Ranks

RowsOf = Callable[[str, Sequence[int]], slice | None]
"""From the name and the shape of a stored tensor to the rows that are wanted; None for all."""

_TYPES: Final = {
    torch.int64: "I64",
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names of the types, in the order in which the library writes tensors: those of many bytes first."""


def tensor_pieces(tensors: Mapping[str, Tensor], ranks: Ranks = ALONE) -> Iterator[bytes | memoryview]:
    """The bytes of a file of tensors, those that ``safetensors.torch.save`` gives, piece by piece.

    Of a table in shards (``rows_of_ranks``) the file has the whole. All ranks go through the pieces; the first one gets them
    all, with the rows that the others send, and the others get nothing.
    """
    order = list(_TYPES)
    names = sorted(tensors, key=lambda name: (order.index(tensors[name].dtype), name))
    if ranks.leads:
        yield _header({name: tensors[name] for name in names})
    for name in names:
        tensor = tensors[name].detach()
        bounds = rows_of_ranks(tensors[name])
        if bounds is not None:
            for block in ranks.rows_in_turn(tensor, bounds):
                yield _bytes_of(block)
        elif ranks.leads and tensor.numel():
            yield _bytes_of(tensor)


def read_tensors(path: Path, rows: RowsOf | None = None) -> dict[str, Tensor]:
    """The tensors of a file by name; of a tensor for which ``rows`` gives a slice these rows alone.

    Each is copied by itself, so that the file is in memory once. Nothing in it is executed. Raises OSError, SafetensorError,
    or what the library raises where a file is not of this format.
    """
    found = {}
    with safetensors.safe_open(path, framework="pt") as opened:
        names = list(opened.keys())
    for name in names:
        with safetensors.safe_open(path, framework="pt") as opened:  # its pages of the file leave memory with it
            part = rows(name, opened.get_slice(name).get_shape()) if rows is not None else None
            found[name] = (opened.get_tensor(name) if part is None else opened.get_slice(name)[part]).clone()
    return found


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        shape, bounds = list(tensor.shape), rows_of_ranks(tensor)
        if bounds is not None:
            shape[0] = bounds[-1]
        size = tensor.element_size()
        for length in shape:
            size *= length
        table[name] = {"dtype": _TYPES[tensor.dtype], "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _bytes_of(tensor: Tensor) -> memoryview:
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
