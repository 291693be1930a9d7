"""What ROUGE and BLEU share: what their signatures say of references, and unknown words, which match nothing."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Final

UNKNOWN: Final = re.compile(r"(?<!\S)(?:<unk>|UNK)(?!\S)")
"""A word of a scored text that matches nothing."""

NEVER_WORD: Final = "zqunknownqz"
"""What is scored in its place: a word that no reference has."""


def spread_of(references: Sequence[Sequence[str]]) -> str:
    """The number of references of a text, or the smallest and the largest: "4", "1-3"."""
    counts = sorted({len(own) for own in references})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"


def digest_of(references: Sequence[Sequence[str]]) -> str:
    """The start of the SHA-256 of all references as they were written, in their order.

    It does not depend on the vocabulary or the segmenter of a model, and sources, which are not scored, have no part in it.
    """
    digest = hashlib.sha256()
    for own in references:
        digest.update(json.dumps([*own]).encode() + b"\n")
    return digest.hexdigest()[:12]
