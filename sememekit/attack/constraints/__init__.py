"""Constraints on the changes of an attack: each narrows the space of texts; some also check whole texts."""

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
    "agreement": "sememekit.attack.constraints.lexical:Agreement",
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
"""Name of ``[constraints.NAME]`` -> "module:Class", in the order of application; classes of your own come last."""

_LOOSE = ("stop_words", "protected", "part_of_speech", "opposites")
PRESETS: dict[str, tuple[str, ...]] = {
    "standard": (*_LOOSE, "names", "first_senses", "agreement", "common_words", "length"),
    "loose": _LOOSE,
    "none": (),
}
"""``attack.constraints`` -> the constraints that it adds. ``loose`` has the constraints of published attacks; ``none`` adds
none, as in the released code; ``standard`` also forbids changes that often change the meaning of a text or its grammar."""

Check = Callable[[Rows], NDArray[np.bool_]]
"""A function from (N, P) rows of a space to (N,) booleans: whether the text of each row may be tried."""


class Constraint(AttackPart, ABC):
    """A constraint on what an attack may do to one example.

    >>> space = Space.open(Document.read(("not good",)), {"not": ("ever",), "good": ("fine",)})
    >>> Protected(Protected.Settings(), resources).narrow(space).substitutes
    ((), ('fine',))"""

    @property
    def told(self) -> str:
        """Return a note for the report, such as a threshold or its coverage; or an empty string."""
        return ""

    @abstractmethod
    def narrow(self, space: Space) -> Space:
        """Return the space without forbidden changes, with a ``refusal`` if the whole example is excluded."""

    def check(self, space: Space) -> Check | None:
        """Return a check of whole texts, for rows of the space after all constraints; None if ``narrow`` is enough."""
        return None


class TextConstraint(Constraint):
    """A constraint on the whole text: each single change must pass alone, and each text with several changes must pass, too."""

    @abstractmethod
    def check(self, space: Space) -> Check: ...

    def narrow(self, space: Space) -> Space:
        singles = space.narrowed(max_changes=1)
        blocks = singles.single_changes(singles.origin()[0])
        passes = (one for rows in blocks for one in self.check(singles)(rows).tolist())
        return space.narrowed(substitutes=tuple(tuple(other for other in found if next(passes)) for found in space.substitutes))
