"""Lexicons of sememes and the graph that a model reads: words -> senses -> sememes. Nothing here imports torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sememekit.config import load_variant, read_settings
from sememekit.errors import ConfigError
from sememekit.files import at_home, typed
from sememekit.sememes.building import build_graph
from sememekit.sememes.format_guess import likely_format
from sememekit.sememes.graph import SememeGraph
from sememekit.sememes.lemmas import open_lemmas
from sememekit.sememes.lexicon import Lexicon, LexiconReader, LexiconReport, Sense, Side
from sememekit.sememes.statistics import graph_statistics

LEXICON_FORMATS: dict[str, str] = {
    "open": "sememekit.sememes.formats.open_lexicon:OpenLexiconReader",
    "hownet": "sememekit.sememes.formats.records:HowNetReader",
    "hownet2000": "sememekit.sememes.formats.records:HowNet2000Reader",
    "list": "sememekit.sememes.formats.records:WordListReader",
    "words": "sememekit.sememes.formats.records:WordsReader",
    "se-wrl": "sememekit.sememes.formats.records:SenseFileReader",
    "table": "sememekit.sememes.formats.records:TableReader",
    "openhownet": "sememekit.sememes.formats.openhownet:OpenHowNetReader",
    "function-words": "sememekit.sememes.formats.open_lexicon:FunctionWordsReader",
    "dictionary": "sememekit.sememes.formats.dictionary:DictionaryReader",
    "wordnet": "sememekit.sememes.formats.wordnet:WordNetReader",
    "random": "sememekit.sememes.formats.controls:RandomReader",
    "single": "sememekit.sememes.formats.controls:SingleReader",
    "bare": "sememekit.sememes.formats.controls:BareReader",
    "shuffled": "sememekit.sememes.formats.controls:ShuffledReader",
}
"""Format of ``--source`` -> "module:Class"."""


def lexicon_reader(spec: str) -> tuple[type[LexiconReader], Path]:
    """The reader class of ``FORMAT:PATH`` and the path to read. Raises ConfigError: an unknown format, or no path."""
    name, _, rest = spec.partition(":")
    if rest.startswith("//"):
        raise ConfigError(f"lexicon {spec!r}: URLs are not read; download it (curl -O {typed(spec)}), then give FORMAT:FILE")
    drive = len(name) == 1 and rest.startswith(("\\", "/"))
    if drive or (name not in LEXICON_FORMATS and at_home(spec).exists()):
        like = f"{likely_format(at_home(spec))}:{spec}"
        raise ConfigError(f"lexicon {spec!r}: say its format, as in {like}; allowed: {', '.join(LEXICON_FORMATS)}")
    reader: type[LexiconReader] = load_variant("lexicon format", name, LEXICON_FORMATS)
    path = rest or reader.default_path
    if path is None:
        raise ConfigError(f"lexicon {spec!r}: give a path, as in {name}:PATH")
    return reader, at_home(path)


def _read(spec: str, options: Mapping[str, object]) -> Lexicon:
    reader, path = lexicon_reader(spec)
    return reader(path, read_settings(reader.Settings, options, f"lexicon {spec}")).read()


def open_lexicon(spec: str, **options: object) -> Lexicon:
    """Read a lexicon ``FORMAT:PATH``, with a format of ``LEXICON_FORMATS`` that has sememes.

    ``open`` alone is the lexicon that ships with sememekit, and ``openhownet`` alone the folder into which that package
    downloads. ``options`` are settings of the format: ``side`` for hownet and openhownet, ``yes_download`` for openhownet.
    Raises ConfigError: an unknown format or option, or no path where the format needs one. Raises DataError: the file is absent
    or has another format."""
    if not lexicon_reader(spec)[0].has_sememes:
        raise ConfigError(
            f"lexicon {spec!r}: a list of words has no sememes; use it for a segmenter: --segmenter fmm --lexicon {typed(spec)}"
        )
    return _read(spec, options)


def words_of_lexicons(specs: str | Sequence[str]) -> frozenset[str]:
    """All words of one lexicon, ``FORMAT:PATH``, or of several together; errors as ``open_lexicon``."""
    return frozenset(word for spec in ([specs] if isinstance(specs, str) else specs) for word in _read(spec, {}).words)


def open_lexicons(
    specs: Sequence[str],
    side: Side = "chinese",
    yes_download: bool = False,
    *,
    lemmas: str | None = None,
    defining_words: int = 2000,
    seed: int = 0,
) -> list[Lexicon]:
    """Read several lexicons, each with the options that its format has; errors as ``open_lexicon``.

    ``side`` and ``yes_download`` are for hownet and openhownet, ``lemmas`` (as in ``open_lemmas``) and ``defining_words`` for
    dictionary, ``seed`` for random."""
    options: dict[str, object] = {"side": side, "yes_download": yes_download, "lemmas": lemmas}
    options |= {"defining_words": defining_words, "seed": seed}
    known = [lexicon_reader(spec)[0].Settings.model_fields for spec in specs]
    for name, default in (("side", "chinese"), ("defining_words", 2000)):
        if options[name] != default and not any(name in fields for fields in known):
            having = [kind for kind in LEXICON_FORMATS if name in lexicon_reader(f"{kind}:FILE")[0].Settings.model_fields]
            raise ConfigError(
                f"--{name.replace('_', '-')} {options[name]}: this is for {', '.join(having)}, not for {', '.join(specs)}; "
                "leave it out"
            )
    own = [{name: value for name, value in options.items() if name in fields} for fields in known]
    return [open_lexicon(spec, **given) for spec, given in zip(specs, own, strict=True)]
