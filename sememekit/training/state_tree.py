"""Nested state as JSON plus named tensors, without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

_TENSOR = "__tensor__"
_TUPLE = "__tuple__"
_INTEGER_KEYS = "__integer_keys__"


def flatten(tree: Any, tensors: dict[str, Tensor], path: str) -> Any:
    """The tree with every tensor replaced by a reference; the tensors are added to ``tensors`` under their paths.

    A tree has dicts with str or int keys, lists, tuples, tensors, numbers, strings, booleans, None; ``path`` names its root.
    Raises TypeError for anything else.
    """
    if isinstance(tree, Tensor):
        tensors[path] = tree
        return {_TENSOR: path}
    if isinstance(tree, dict):
        plain = {str(key): flatten(value, tensors, f"{path}.{key}") for key, value in tree.items()}
        if tree and all(isinstance(key, int) for key in tree):
            return {_INTEGER_KEYS: plain}
        return plain
    if isinstance(tree, list):
        return [flatten(value, tensors, f"{path}.{number}") for number, value in enumerate(tree)]
    if isinstance(tree, tuple):
        return {_TUPLE: flatten(list(tree), tensors, path)}
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(
        f"{path}: a {type(tree).__name__} cannot be stored in a checkpoint; allowed are dicts with str or int keys, lists, "
        "tuples, tensors, numbers, strings, booleans and None"
    )


def unflatten(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The inverse of ``flatten``."""
    if isinstance(plain, dict):
        if set(plain) == {_TENSOR}:
            return tensors[plain[_TENSOR]]
        if set(plain) == {_TUPLE}:
            return tuple(unflatten(plain[_TUPLE], tensors))
        if set(plain) == {_INTEGER_KEYS}:
            return {int(key): unflatten(value, tensors) for key, value in plain[_INTEGER_KEYS].items()}
        return {key: unflatten(value, tensors) for key, value in plain.items()}
    if isinstance(plain, list):
        return [unflatten(value, tensors) for value in plain]
    return plain
