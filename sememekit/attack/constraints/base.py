"""The base classes of constraints: each takes a space and gives a narrower one; some also look at every text that is tried."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.resources import AttackPart
from sememekit.attack.space import Rows, Space

Check = Callable[[Rows], NDArray[np.bool_]]
"""(N, P) rows of a space -> (N,) whether their texts may be tried."""


class Constraint(AttackPart, ABC):
    """Takes something away from what an attack may do to one example.

    >>> space = Space.open(Document.read(("not good",)), {"not": ("ever",), "good": ("fine",)})
    >>> Protected(Protected.Settings(), resources).narrow(space).substitutes
    ((), ('fine',))
    """

    @property
    def told(self) -> str:
        """What the report says of it besides its name: a threshold, how much it knows; or an empty string."""
        return ""

    @abstractmethod
    def narrow(self, space: Space) -> Space:
        """The space without what is forbidden; with a ``refusal`` where the whole example is out of bounds."""

    def check(self, space: Space) -> Check | None:
        """What decides by whole texts, for rows of the space that all constraints left; None where ``narrow`` says it all."""
        return None


class TextConstraint(Constraint):
    """Decides by the whole text: a change that does not pass alone is out, and texts with several changes have to pass, too."""

    @abstractmethod
    def check(self, space: Space) -> Check: ...

    def narrow(self, space: Space) -> Space:
        singles = space.narrowed(max_changes=1)
        rows = singles.single_changes(singles.origin()[0])
        passes = iter(self.check(singles)(rows).tolist()) if len(rows) else iter(())
        return space.narrowed(substitutes=tuple(tuple(other for other in found if next(passes)) for found in space.substitutes))
