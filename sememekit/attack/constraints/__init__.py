"""Constraints on the changes of an attack: each takes a space and gives a narrower one; some also look at whole texts."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.resources import AttackPart
from sememekit.attack.space import Rows, Space

CONSTRAINTS: dict[str, str] = {
    "positions": "sememekit.attack.constraints.limits:Positions",
    "minimum_length": "sememekit.attack.constraints.limits:MinimumLength",
    "stop_words": "sememekit.attack.constraints.words:StopWords",
    "protected": "sememekit.attack.constraints.words:Protected",
    "names": "sememekit.attack.constraints.lexical:Names",
    "part_of_speech": "sememekit.attack.constraints.lexical:PartOfSpeech",
    "first_senses": "sememekit.attack.constraints.lexical:FirstSenses",
    "opposites": "sememekit.attack.constraints.pairs:Opposites",
    "paraphrases": "sememekit.attack.constraints.pairs:Paraphrases",
    "common_words": "sememekit.attack.constraints.limits:CommonWords",
    "length": "sememekit.attack.constraints.limits:Length",
    "frequent_words": "sememekit.attack.constraints.limits:FrequentWords",
    "language_model": "sememekit.attack.constraints.language_model:LanguageModelConstraint",
    "similarity": "sememekit.attack.constraints.similarity:Similarity",
    "perplexity": "sememekit.attack.constraints.language_model:Perplexity",
    "share": "sememekit.attack.constraints.limits:Share",
}
"""Name of ``[constraints.NAME]`` -> "module:Class", in the order in which they are applied; classes of your own come last."""

_LOOSE = ("stop_words", "protected", "part_of_speech", "opposites")
PRESETS: dict[str, tuple[str, ...]] = {
    "standard": (*_LOOSE, "names", "first_senses", "common_words", "length"),
    "loose": _LOOSE,
    "none": (),
}
"""``attack.constraints`` -> the constraints that it adds. ``loose`` forbids what published attacks forbid, ``none`` nothing, as
the releases have it; ``standard`` what most often changes what a text says."""

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
        """Its note in the report besides its name: a threshold, its coverage; or an empty string."""
        return ""

    @abstractmethod
    def narrow(self, space: Space) -> Space:
        """The space without what is forbidden; with a ``refusal`` where the whole example is out of bounds."""

    def check(self, space: Space) -> Check | None:
        """Return the check of whole texts, for rows of the space that all constraints left; None if ``narrow`` is enough."""
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
