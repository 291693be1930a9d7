"""Files of tensors in the safetensors format, written and read tensor by tensor.

Unlike ``safetensors.torch.save``, this needs no second copy of the tensors in memory.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import safetensors
import torch
from torch import Tensor

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
"""Names of the types, in the order in which the library writes tensors: types of many bytes first."""


def tensor_pieces(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file of tensors piece by piece, equal to those from ``safetensors.torch.save``."""
    order = list(_TYPES)
    names = sorted(tensors, key=lambda name: (order.index(tensors[name].dtype), name))
    yield _header({name: tensors[name] for name in names})
    for name in names:
        if tensors[name].numel():
            yield tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name.

    Each is copied alone, so that the file is in memory once. Nothing is executed. Raises OSError, SafetensorError, or another
    error of the library for a file of another format.
    """
    found = {}
    with safetensors.safe_open(path, framework="pt") as opened:
        names = list(opened.keys())
    for name in names:
        with safetensors.safe_open(path, framework="pt") as opened:  # its pages of the file leave memory with it
            found[name] = opened.get_tensor(name).clone()
    return found


def _header(tensors: Mapping[str, Tensor]) -> bytes:
    table: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        table[name] = {"dtype": _TYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
