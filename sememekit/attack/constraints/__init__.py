"""Constraints on the changes of an attack."""

CONSTRAINTS: dict[str, str] = {
    "positions": "sememekit.attack.constraints.limits:Positions",
    "minimum_length": "sememekit.attack.constraints.limits:MinimumLength",
    "stop_words": "sememekit.attack.constraints.stop_words:StopWords",
    "protected": "sememekit.attack.constraints.protected:Protected",
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

__all__ = ["CONSTRAINTS", "PRESETS"]
