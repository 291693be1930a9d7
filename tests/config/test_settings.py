"""Settings: how a wrong key is answered."""

from __future__ import annotations

from sememekit.config import nearest


def test_a_key_that_holds_the_word_is_nearer_than_one_spelled_alike() -> None:
    assert nearest("rate", ["name", "learning_rate"]) == " (did you mean 'learning_rate'?)"
    assert nearest("rate", ["learning_rate", "dropout_rate", "rat"]) == " (did you mean 'rat'?)"
    assert nearest("zzz", ["name", "learning_rate"]) == ""
