"""An output layer in which a process signals itself: ``--decoder tests.distributed.ending:Ending``."""

from __future__ import annotations

import os
import signal

from sememekit.decoders.softmax import Softmax


class Ending(Softmax):
    """A softmax. ``ENDING="RANK STEP SIGNAL"`` says which rank signals itself after which step, unless it was started anew."""

    def after_step(self, step: int) -> dict[str, float] | None:
        rank, at, name = os.environ["ENDING"].split()
        first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        if first and step == int(at) and os.environ.get("RANK") == rank:
            os.kill(os.getpid(), getattr(signal, name))
        return super().after_step(step)
