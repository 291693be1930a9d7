"""What ``preprocess`` made."""

from __future__ import annotations

from sememekit.config import Record
from sememekit.data.signature import Signature


class PreprocessReport(Record):
    """What ``preprocess`` did.

    Attributes:
        folder: the prepared-data folder.
        signature: its signature; ``signature.splits`` has tokens, types, ``<unk>`` rate and sizes of each split.
    """

    folder: str
    signature: Signature
