"""Results are frozen, refuse what they do not name, and are no settings."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from sememekit.config import Record, Settings


class Measured(Record):
    name: str
    value: float


def test_a_record_is_frozen_and_refuses_other_keys_and_numbers_that_json_cannot_write() -> None:
    record = Measured(name="one", value=1.0)
    with pytest.raises(ValidationError, match="frozen"):
        record.value = 2.0  # type: ignore[misc]
    with pytest.raises(ValidationError, match="more"):
        Measured.model_validate({"name": "one", "value": 1.0, "more": 1})
    with pytest.raises(ValidationError, match="finite"):
        Measured(name="one", value=float("nan"))


def test_a_record_is_no_settings() -> None:
    assert not issubclass(Record, Settings)
    assert not issubclass(Settings, Record)
