"""Function words stay."""

from __future__ import annotations

from pathlib import Path
from typing import Final, final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.errors import DataError

ENGLISH: Final = frozenset(
    """
    a about above after again against all am among an and another any are aren as at be because been before being
    below between both but by can cannot could couldn did didn do does doesn doing don down during each either else
    ever every few for from further had hadn has hasn have haven having he her here hers herself him himself his how
    however i if in into is isn it its itself just may me might more most must my myself neither no nobody none nor
    not nothing now of off on once one only or other our ours ourselves out over own per same shall she should shouldn
    so some somebody someone something such than that the their theirs them themselves then there these they this
    those though through thus to too under until up upon us very was wasn we were weren what whatever when where
    whether which while who whom whose why will with within without won would wouldn yet you your yours yourself
    yourselves 's 've 're 'll 'd 'm n't
    """.split()  # noqa: SIM905
)
"""Articles, pronouns, prepositions, conjunctions, auxiliaries, negations and clitics."""


@final
class StopWords(Constraint):
    """Words of a list are never touched, and never put in: closed-class English words, or those of a file."""

    class Settings(Constraint.Settings):
        """Settings of stop words."""

        file: str = ""
        """A word a line; empty for the English list."""

    settings: StopWords.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        self._words = _read(Path(settings.file).expanduser()) if settings.file else ENGLISH

    def narrow(self, space: Space) -> Space:
        """See ``Constraint.narrow``."""
        pairs = zip(space.document.words, space.substitutes, strict=True)
        return space.narrowed(substitutes=tuple(self._allowed(word.text, found) for word, found in pairs))

    def _allowed(self, word: str, found: tuple[str, ...]) -> tuple[str, ...]:
        if word.lower() in self._words:
            return ()
        return tuple(other for other in found if other.lower() not in self._words)


def _read(path: Path) -> frozenset[str]:
    try:
        return frozenset(path.read_text(encoding="utf-8").lower().split())
    except OSError as error:
        raise DataError(f"stop words {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"stop words {path}: not UTF-8 (byte {error.start})") from None
