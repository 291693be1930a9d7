"""Share: how much of a text may change."""

from __future__ import annotations

import math
from typing import final

from pydantic import Field

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.space import Space


@final
class Share(Constraint):
    """At most the share ``most`` of the words may differ, rounded down.

    The public codes search without a limit and throw a success away that changed more; here no such text is ever tried.
    """

    class Settings(Constraint.Settings):
        """Settings of the share of changes."""

        most: float = Field(default=0.25, gt=0.0, le=1.0)
        """Share of the words in the fields that may change, marks included."""
        at_least: int = Field(default=0, ge=0)
        """So many words may always change, however short the text."""

    settings: Share.Settings

    def narrow(self, space: Space) -> Space:
        allowed = max(math.floor(self.settings.most * space.num_words + 1e-9), self.settings.at_least)
        return space.narrowed(max_changes=min(space.max_changes, allowed))
