"""Language models that know what words are made of: sememes inside encoders, output layers and lattices.

    from sememekit import load_run, nn
    load_run("runs/sdlm").next_words("去年 美国")    # a trained run in a notebook
    nn.SememeSoftmax(512, senses)                   # the output layer, in a model of your own

The names below are imported when they are first used, so that ``import sememekit`` brings neither torch nor numpy.
"""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

__version__ = "0.1.0"

_PLACES = {
    "DECODERS": "decoders",
    "ENCODERS": "encoders",
    "Differentiated": "decoders.differentiated",
    "MoC": "decoders.mos",
    "MoS": "decoders.mos",
    "MoSSDLM": "decoders.mos_sdlm",
    "PreparedData": "data.prepared",
    "Resources": "decoders.base",
    "Run": "notebook.run",
    "SDLM": "decoders.sdlm",
    "SelfOrganized": "decoders.self_organized",
    "SememeGraph": "sememes",
    "SememekitError": "errors",
    "Vocabulary": "text.vocabulary",
    "attack": "notebook.attacks",
    "build_graph": "sememes",
    "explain": "notebook.run",
    "load_run": "notebook.run",
    "nn": "",
    "open_lexicon": "sememes",
}
"""Public name -> where it is defined, or nothing for a package; ``__init__.pyi`` says the same to type checkers."""

__all__ = [
    "DECODERS",
    "ENCODERS",
    "SDLM",
    "Differentiated",
    "MoC",
    "MoS",
    "MoSSDLM",
    "PreparedData",
    "Resources",
    "Run",
    "SelfOrganized",
    "SememeGraph",
    "SememekitError",
    "Vocabulary",
    "attack",
    "build_graph",
    "explain",
    "load_run",
    "nn",
    "open_lexicon",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'sememekit' has no attribute {name!r}; public names: {', '.join(__all__)}")
    place = _PLACES[name]
    return getattr(_import_module(f"sememekit.{place}"), name) if place else _import_module(f"sememekit.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(_ModuleType):
    """``sememekit.attack`` is the function. The package of the same name, which imports write over it, is ``from
    sememekit.attack import ...`` as before."""

    @property
    def attack(self) -> object:
        return __getattr__("attack")

    @attack.setter
    def attack(self, package: object) -> None:
        """Leave the function where it is."""


_sys.modules[__name__].__class__ = _Package
