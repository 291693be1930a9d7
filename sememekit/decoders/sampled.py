"""The softmax trained with sampled words, under the name that earlier versions gave it."""

from __future__ import annotations

from typing import Any, ClassVar, final

from pydantic import Field, model_validator

from sememekit.decoders.softmax import Softmax

_EARLIER_NAMES = {"num_samples": "samples", "power": "samples_power"}
"""Keys of earlier versions, which plans of their runs still hold, and what they are called now."""


@final
class Sampled(Softmax):
    """``softmax`` with ``samples`` = 1000 by default: see ``sememekit.decoders.sampling`` for the estimate and its sources."""

    name: ClassVar[str] = "sampled"

    class Settings(Softmax.Settings):
        """Settings of the softmax trained with sampled words."""

        samples: int = Field(default=1000, ge=1)
        """S, words drawn for each training batch to estimate the normaliser."""

        @model_validator(mode="before")
        @classmethod
        def _rename(cls, table: Any) -> Any:
            if not isinstance(table, dict):
                return table
            renamed = {_EARLIER_NAMES.get(key, key): value for key, value in table.items()}
            if len(renamed) < len(table):
                raise ValueError("'num_samples' and 'power' are now called 'samples' and 'samples_power'; give each once")
            return renamed
