"""Settings: how a wrong key is answered."""

from __future__ import annotations

import pytest

from sememekit.config import Settings, nearest, read_settings
from sememekit.errors import ConfigError


class Place(Settings):
    path: str


@pytest.mark.parametrize(("slot", "end"), [("candidates", "; give it with --set candidates.path=VALUE"), ("", "")])
def test_a_missing_key_is_told_with_what_to_type(slot: str, end: str) -> None:
    with pytest.raises(ConfigError) as told:
        read_settings(Place, {}, "the attack [candidates]", slot)
    assert str(told.value) == f"the attack [candidates]: key 'path' is required and was not given{end}"


def test_a_key_that_holds_the_word_is_nearer_than_one_spelled_alike() -> None:
    assert nearest("rate", ["name", "learning_rate"]) == " (did you mean 'learning_rate'?)"
    assert nearest("rate", ["learning_rate", "dropout_rate", "rat"]) == " (did you mean 'rat'?)"
    assert nearest("zzz", ["name", "learning_rate"]) == ""
    assert nearest("lambda", ["rate", "decay"]) == " (did you mean 'decay'?)", "papers call it so"
