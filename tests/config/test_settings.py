"""Settings: how a wrong key is answered."""

from __future__ import annotations

import pytest

from sememekit.config import Settings, differences, nearest, read_settings
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


def test_differences_of_two_tables_name_other_variants_first_and_few_settings() -> None:
    there = {
        "encoder": {"hidden_size": 4, "dropout": 0.5},
        "decoder": {"name": "mos", "num_components": 3},
        "data": {"prepare": "a"},
    }
    given = {"encoder": {"hidden_size": 8, "num_layers": 2}, "decoder": {"name": "sdlm"}, "data": {"prepare": "b"}}
    assert differences(there, given) == (
        "decoder.name is 'mos' there, given 'sdlm'; encoder.hidden_size is 4 there, given 8; "
        "encoder.dropout is 0.5 there, and here not set; encoder.num_layers is not set there, given 2"
    )
    assert differences(there, there) == ""
    many = {"task": {f"key{number}": number for number in range(9)}}
    assert differences({}, many).endswith("task.key5 is not set there, given 5, and 3 more")


def test_tables_that_say_the_same_do_not_differ_by_the_order_of_their_keys_or_the_type_of_a_number() -> None:
    typed = {"task": {"search": {"num_best": 1, "beam_size": 3}}, "optimizer": {"learning_rate": 1}}
    stored = {"optimizer": {"learning_rate": 1.0}, "task": {"search": {"beam_size": 3, "num_best": 1}}}
    assert differences(stored, typed) == ""
    path = "folder/" * 20
    assert differences({"graph": {"path": path}}, {}) == f"graph.path is '{path}' there, and here not set"
    assert differences({"graph": {"path": path * 9}}, {}) == f"graph.path is '{(path * 9)[:199]}… there, and here not set"
