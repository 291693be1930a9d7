"""The signature of a perplexity: one line of all that must agree before two figures can be compared."""

from __future__ import annotations

from collections.abc import Mapping

from sememekit.data.prepared import PreparedData
from sememekit.measure import PROTOCOL_VERSION

PAIRS = {"columns": "pairs", "state": "source", "eos": "predicted"}
"""In the signature of pairs: predicted are the words of targets and their ends, each from the source and those before it."""


def perplexity_signature(
    data: PreparedData, split: str, tokens: int, columns: int, adaptation: Mapping[str, str] | None = None
) -> str:
    """One line of all that must agree before two perplexities can be compared, as ``name:value|name:value``.

    The text is named by the start of the SHA-256 of its ids, the vocabulary by its fingerprint. ``chunk:any`` says that the
    value does not depend on how many tokens are read at once, ``log_shift:none`` that nothing is added to a probability.
    ``adaptation`` has what a cache or dynamic evaluation adds or puts in the place of another part; a model that stays as it
    was trained has none of it.
    """
    signature, size = data.signature, data.signature.splits[split]
    parts = {
        "protocol": PROTOCOL_VERSION,
        "data": signature.dataset,
        "split": split,
        "text": size.sha256[:12],
        "tokens": tokens,
        "vocabulary": f"{signature.vocabulary}/{signature.vocabulary_size}",
        "unk": f"{size.unknown_rate:.4f}",
        "segmenter": signature.segmenter,
        "lexicon": signature.lexicon[:12] if signature.lexicon else "none",
        "eos": "predicted" if signature.end_of_sentence else "none",
        "columns": columns,
        "state": "carried",
        "chunk": "any",
        "log_shift": "none",
        **(adaptation or {}),
    }
    return "|".join(f"{name}:{str(value).replace('|', '/')}" for name, value in parts.items())
