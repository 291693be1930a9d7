"""Positions: which fields of an example may change."""

from __future__ import annotations

from typing import final

from sememekit.attack.constraints.base import Constraint
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space
from sememekit.errors import ConfigError


@final
class Positions(Constraint):
    """Words of some fields alone may change, and they alone count for length and share of changes."""

    class Settings(Constraint.Settings):
        """Settings of positions."""

        fields: tuple[str, ...]
        """Names of fields: text, or premise and hypothesis."""

    settings: Positions.Settings

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        super().__init__(settings, resources)
        strangers = [name for name in settings.fields if name not in resources.field_names]
        if strangers or not settings.fields:
            given = f"no field is called {strangers[0]!r}" if strangers else "no field is named"
            raise ConfigError(f"[constraints.positions] fields: {given}; these data have {', '.join(resources.field_names)}")
        self._fields = {resources.field_names.index(name) for name in settings.fields}

    def narrow(self, space: Space) -> Space:
        inside = [word.field in self._fields for word in space.document.words]
        return space.narrowed(
            substitutes=tuple(found if keep else () for found, keep in zip(space.substitutes, inside, strict=True)),
            scope=tuple(number for number in space.scope if inside[number]),
        )
