"""Minimum length: short texts are skipped."""

from __future__ import annotations

from typing import final

from pydantic import Field

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.space import Space


@final
class MinimumLength(Constraint):
    """Examples with fewer words than ``words``, or more than ``at_most``, are skipped."""

    class Settings(Constraint.Settings):
        """Settings of length."""

        words: int = Field(default=10, ge=1)
        """Fewest words, marks included, in the fields that may change."""
        at_most: int = Field(default=0, ge=0)
        """Most words; 0 for no limit."""

    settings: MinimumLength.Settings

    def narrow(self, space: Space) -> Space:
        if space.num_words < self.settings.words:
            return space.narrowed(refusal=f"fewer than {self.settings.words} words")
        if self.settings.at_most and space.num_words > self.settings.at_most:
            return space.narrowed(refusal=f"more than {self.settings.at_most} words")
        return space
