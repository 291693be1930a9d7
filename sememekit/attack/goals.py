"""Goals: any wrong label (untargeted), or a chosen label (targeted)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sememekit import config
from sememekit.errors import ConfigError


class Aim(NamedTuple):
    """The goal for one example: the number of its true label, and of the ``target`` label (None for any other label)."""

    label: int
    target: int | None

    def scores(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (N,) the objective of a search: p(target), or 1 - p(label)."""
        return probabilities[:, self.target] if self.target is not None else 1.0 - probabilities[:, self.label]

    def reached(self, probabilities: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return (N,) whether the most probable label (first of ties) is the target or, without a target, is wrong."""
        predicted = probabilities.argmax(axis=1)
        return predicted == self.target if self.target is not None else predicted != self.label


class Goal(ABC):
    """Chooses an ``Aim`` for each example.

    >>> aim = Untargeted(Untargeted.Settings(), ("negative", "positive")).aim(1, np.random.default_rng(1))
    >>> aim.scores(np.array([[0.75, 0.25]])), aim.reached(np.array([[0.75, 0.25]]))
    (array([0.75]), array([ True]))"""

    class Settings(config.Settings):
        """Settings of a goal; most have none."""

    def __init__(self, settings: Settings, labels: Sequence[str]) -> None:
        self.settings = settings
        self.labels = tuple(labels)

    @abstractmethod
    def aim(self, label: int, generator: np.random.Generator) -> Aim:
        """The aim for an example with this label; ``generator`` belongs to the example."""


@final
class Untargeted(Goal):
    """Any wrong label is a success."""

    def aim(self, label: int, generator: np.random.Generator) -> Aim:
        return Aim(label, None)


@final
class Targeted(Goal):
    """A target label from ``targets``, or else another label at random.

    Alzantot et al. 2018 and the sememe RNN paper: entailment <-> contradiction; neutral becomes one of the two at random."""

    class Settings(Goal.Settings):
        targets: dict[str, tuple[str, ...]] = Field(default_factory=dict)
        """Label -> its target labels, one drawn at random; a label that is not listed may become any other."""

    settings: Settings

    def __init__(self, settings: Settings, labels: Sequence[str]) -> None:
        super().__init__(settings, labels)
        named = {*settings.targets, *(name for names in settings.targets.values() for name in names)}
        if strangers := sorted(named - set(labels)):
            raise ConfigError(f"[goal] targets: the victim has no label {strangers[0]!r}; its labels: {', '.join(labels)}")
        if loops := [name for name, others in settings.targets.items() if name in others or not others]:
            raise ConfigError(f"[goal] targets: label {loops[0]!r} must have at least one target, and never itself")

    def aim(self, label: int, generator: np.random.Generator) -> Aim:
        name = self.labels[label]
        choices = self.settings.targets.get(name) or tuple(other for other in self.labels if other != name)
        return Aim(label, self.labels.index(choices[int(generator.integers(len(choices)))]))
