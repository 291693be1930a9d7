"""The signatures of a perplexity and of an accuracy: one line of all that must agree before two figures can be compared."""

import hashlib
from collections.abc import Mapping

from sememekit.data.prepared import PreparedData
from sememekit.measure import PROTOCOL_VERSION
from sememekit.tasks.scoring import Scoring

_OF_THE_MODEL = ("marginal",)
_LEARNED_WHILE_READING = ("cache", "dynamic")


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
    return _line(parts)


def signature_of(scoring: Scoring, data: PreparedData, split: str, tokens: int) -> str:
    """The signature of the figure of a scored split: of ``tokens`` predictions, or of labels."""
    if scoring.figure == "accuracy":
        return label_signature(data, split)
    return perplexity_signature(data, split, tokens, scoring.columns, scoring.reading)


def of_text(signature: str, *, adapted: bool = True) -> str:
    """A signature without what belongs to the model: how the paths of a lattice are summed, and what differs by design.

    Args:
        adapted: keep what a cache or dynamic evaluation adds.
    """
    left_out = _OF_THE_MODEL if adapted else (*_OF_THE_MODEL, *_LEARNED_WHILE_READING)
    return "|".join(part for part in signature.split("|") if part.split(":", 1)[0] not in left_out)


def label_signature(data: PreparedData, split: str) -> str:
    """One line of all that must agree before two accuracies can be compared: the examples of the split with their right labels.

    ``text`` is the start of the SHA-256 over those of the files that the split was read from; ``examples`` has that over the
    lengths of the texts in words and their labels, and their number. The vocabulary is not part of it: classifiers that know
    other words label the same texts. ``data`` are of examples with labels.
    """
    signature, summary = data.signature, data.signature.examples
    assert summary is not None
    assert summary.labels is not None
    found = summary.splits[split]
    files = [source.sha256 for source in signature.sources if source.split in (split, "all")]
    return _line(
        {
            "metric": "accuracy",
            "data": signature.dataset,
            "split": split,
            "text": hashlib.sha256("\n".join(files).encode()).hexdigest()[:12],
            "examples": f"{found.sha256[:12]}/{found.examples}",
            "labels": "/".join(summary.labels),
            "segmenter": signature.segmenter,
        }
    )


def _line(parts: Mapping[str, object]) -> str:
    return "|".join(f"{name}:{str(value).replace('|', '/')}" for name, value in parts.items())
