"""What commands give back: frozen values with names, which a file may hold."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of every result, report and summary: frozen, and a key that it does not have is refused. Inputs are ``Settings``."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)
