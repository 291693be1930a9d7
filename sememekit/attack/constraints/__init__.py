"""Constraints on the changes of an attack."""

CONSTRAINTS: dict[str, str] = {
    "positions": "sememekit.attack.constraints.limits:Positions",
    "minimum_length": "sememekit.attack.constraints.limits:MinimumLength",
    "stop_words": "sememekit.attack.constraints.stop_words:StopWords",
    "protected": "sememekit.attack.constraints.protected:Protected",
    "part_of_speech": "sememekit.attack.constraints.part_of_speech:PartOfSpeech",
    "opposites": "sememekit.attack.constraints.pairs:Opposites",
    "paraphrases": "sememekit.attack.constraints.pairs:Paraphrases",
    "frequent_words": "sememekit.attack.constraints.limits:FrequentWords",
    "language_model": "sememekit.attack.constraints.language_model:LanguageModelConstraint",
    "similarity": "sememekit.attack.constraints.similarity:Similarity",
    "perplexity": "sememekit.attack.constraints.language_model:Perplexity",
    "share": "sememekit.attack.constraints.limits:Share",
}
"""Name of ``[constraints.NAME]`` -> "module:Class", in the order in which they are applied; classes of your own come last."""

STANDARD: tuple[str, ...] = ("stop_words", "protected", "part_of_speech", "opposites")
"""The preset ``standard``: what an attack leaves alone unless ``attack.constraints`` is ``none``, since replacing these changes
what a text says."""

__all__ = ["CONSTRAINTS", "STANDARD"]
