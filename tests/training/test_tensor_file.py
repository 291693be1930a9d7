"""Files of tensors written piece by piece: the bytes that the library writes, and one tensor at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from sememekit.training.snapshots import read_tensors, tensor_pieces

TYPES = [torch.int64, torch.float64, torch.float32, torch.int32, torch.bfloat16, torch.float16, torch.int16, torch.int8]


def some_tensors() -> dict[str, Tensor]:
    tensors = {f"{kind}".removeprefix("torch."): torch.arange(3).to(kind) for kind in [*TYPES, torch.uint8, torch.bool]}
    more = {"b": torch.rand(2, 3), "a": torch.rand(2), "\u8bcd": torch.rand(()), "none": torch.zeros(0), "k": torch.zeros(0, 4)}
    return {**tensors, **more}


@pytest.mark.parametrize("tensors", [{}, some_tensors()], ids=["empty", "every type"])
def test_the_bytes_are_those_of_the_library(tensors: dict[str, Tensor]) -> None:
    assert b"".join(tensor_pieces(tensors)) == safetensors.torch.save(tensors, metadata={"format": "pt"})


def test_a_view_is_stored_as_what_it_shows(tmp_path: Path) -> None:
    view = torch.arange(6.0).reshape(2, 3).T.requires_grad_()
    (tmp_path / "x").write_bytes(b"".join(tensor_pieces({"x": view, "row": view[1]})))
    found = read_tensors(tmp_path / "x")
    assert found["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert found["row"].tolist() == [1, 4]
    assert not found["x"].requires_grad
