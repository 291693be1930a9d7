"""The base class of constraints: each takes a space and gives a narrower one."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sememekit.attack.resources import AttackPart
from sememekit.attack.space import Space


class Constraint(AttackPart, ABC):
    """Takes something away from what an attack may do to one example.

    >>> space = Space.open(Document.read(("not good",)), {"not": ("ever",), "good": ("fine",)})
    >>> Protected(Protected.Settings(), resources).narrow(space).substitutes
    ((), ('fine',))
    """

    @abstractmethod
    def narrow(self, space: Space) -> Space:
        """The space without what is forbidden; with a ``refusal`` where the whole example is out of bounds."""
