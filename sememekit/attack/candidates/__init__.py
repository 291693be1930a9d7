"""Sources of substitutes for a word."""

CANDIDATES: dict[str, str] = {
    "sememe": "sememekit.attack.candidates.sememe:SememeCandidates",
    "embedding": "sememekit.attack.candidates.embedding:EmbeddingCandidates",
    "wordnet": "sememekit.attack.candidates.wordnet:WordNetCandidates",
    "table": "sememekit.attack.candidates.table:TableCandidates",
}
"""Name of ``--candidates`` -> "module:Class"."""

__all__ = ["CANDIDATES"]
