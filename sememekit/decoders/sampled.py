"""The softmax trained with sampled words."""

from typing import ClassVar, final

from pydantic import Field

from sememekit.decoders.softmax import Softmax


@final
class Sampled(Softmax):
    """``softmax`` with ``samples`` = 1000 by default: see ``sememekit.decoders.sampling`` for the estimate and its sources."""

    name: ClassVar[str] = "sampled"

    class Settings(Softmax.Settings):
        """Settings of the softmax trained with sampled words."""

        samples: int = Field(default=1000, ge=1)
        """S, words drawn for each training batch to estimate the normaliser."""
