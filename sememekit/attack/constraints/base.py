"""The base class of constraints: each takes a space and gives a narrower one."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sememekit import config
from sememekit.attack.resources import AttackResources
from sememekit.attack.space import Space


class Constraint(ABC):
    """Takes something away from what an attack may do to one example.

    space = Space.open(Document.read(("not a good film",)), {"not": ("ever",), "good": ("fine",)})
    Protected(Protected.Settings(), resources).narrow(space).substitutes    # ((), (), ("fine",), ())
    """

    class Settings(config.Settings):
        """Settings of one constraint."""

    def __init__(self, settings: Settings, resources: AttackResources) -> None:
        self.settings = settings
        self.resources = resources
        self.hashes: dict[str, str] = {}

    @abstractmethod
    def narrow(self, space: Space) -> Space:
        """The space without what is forbidden; with a ``refusal`` where the whole example is out of bounds."""

    def sources(self) -> dict[str, str]:
        """Name -> SHA-256 of every file that decides what is forbidden."""
        return dict(self.hashes)
