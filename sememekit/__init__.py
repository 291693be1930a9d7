"""Language models that know what words are made of: sememes inside encoders, output layers and lattices.

    from sememekit import load_run, nn, train
    train(table, "runs/sdlm")                       # a model, from a table of settings
    load_run("runs/sdlm").next_words("去年 美国")    # a trained run in a notebook
    nn.SememeSoftmax(512, senses)                   # the output layer, in a model of your own

The names below are imported when they are first used, so that ``import sememekit`` brings neither torch nor numpy."""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_PLACES = {
    "DECODERS": "decoders",
    "ENCODERS": "encoders",
    "Differentiated": "decoders.differentiated",
    "MoC": "decoders.mos",
    "MoS": "decoders.mos",
    "MoSSDLM": "decoders.mos_sdlm",
    "PreparedData": "data.prepared",
    "PreprocessSettings": "prepare.settings",
    "Resources": "decoders.base",
    "Run": "notebook.run",
    "SDLM": "decoders.sdlm",
    "SelfOrganized": "decoders.self_organized",
    "SememeGraph": "sememes",
    "SememekitError": "errors",
    "Vocabulary": "text.vocabulary",
    "attack_classifier": "notebook.attacks",
    "build_graph": "sememes",
    "build_sememe_graph": "jobs.build_sememe_graph",
    "compare": "analysis.compare_runs",
    "evaluate": "analysis.evaluate",
    "explain": "notebook.run",
    "load_run": "notebook.run",
    "nn": "",
    "open_lexicon": "sememes",
    "preprocess": "jobs.preprocess",
    "train": "jobs.train",
}
"""Public name -> its module; empty for a package. ``__init__.pyi`` has the same names for type checkers."""

__all__ = [*_PLACES]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'sememekit' has no attribute {name!r}; public names: {', '.join(__all__)}")
    place = _PLACES[name]
    return getattr(_import_module(f"sememekit.{place}"), name) if place else _import_module(f"sememekit.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
