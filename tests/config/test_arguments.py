"""Arguments of public functions are checked by their signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sememekit.config.settings import checked_arguments
from sememekit.errors import ConfigError


def first(text: str, *, top: int = 3, data: Path | None = None, tell: Callable[..., None] = print) -> None: ...
def second(*, names: tuple[str, ...] = ()) -> None: ...


def test_what_is_given_comes_as_the_functions_take_it_and_nothing_else() -> None:
    found = checked_arguments("f", {"data": "folder", "top": "4", "names": ["a"], "tell": print}, first, second)
    assert found == {"data": Path("folder"), "top": 4, "names": ("a",), "tell": print}
    assert checked_arguments("f", {}, first) == {}


def test_every_wrong_argument_is_named_with_what_is_allowed() -> None:
    with pytest.raises(ConfigError, match=r"f: key 'top': input should be a valid integer.*given 'x'; unknown key 'naems'"):
        checked_arguments("f", {"top": "x", "naems": ()}, first)
    with pytest.raises(ConfigError, match=r"unknown key 'text'.*; allowed: data, names, tell, top"):
        checked_arguments("f", {"text": "of the first"}, first, second)
