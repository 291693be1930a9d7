"""Language models that know what words are made of: sememes inside encoders, output layers and lattices.

    from sememekit import Run, SDLM
    Run.open("runs/sdlm").task          # a trained model
    SDLM(SDLM.Settings(), resources)    # the output layer, in a model of your own

The names below are imported when they are first used, so that ``import sememekit`` brings neither torch nor numpy.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_PLACES = {
    "DECODERS": "decoders",
    "ENCODERS": "encoders",
    "Differentiated": "decoders.differentiated",
    "MoC": "decoders.moc",
    "MoS": "decoders.mos",
    "MoSSDLM": "decoders.mos_sdlm",
    "PreparedData": "data.prepared",
    "Resources": "decoders.base",
    "Run": "runs.run",
    "SDLM": "decoders.sdlm",
    "SelfOrganized": "decoders.self_organized",
    "SememeGraph": "sememes",
    "SememekitError": "errors",
    "Vocabulary": "text.vocabulary",
    "build_graph": "sememes",
    "open_lexicon": "sememes",
}
"""Public name -> where it is defined; ``__init__.pyi`` says the same to type checkers."""

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
    "build_graph",
    "open_lexicon",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'sememekit' has no attribute {name!r}; public names: {', '.join(__all__)}")
    return getattr(_import_module(f"sememekit.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
