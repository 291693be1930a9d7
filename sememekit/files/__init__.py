"""Files on the disk: written atomically, replaced only by their own kind, hashed once, one writer at a time."""

import warnings

from sememekit.files.lock import sole_writer
from sememekit.files.outputs import (
    CARD,
    CLUSTERS,
    FIGURE,
    GRAPH,
    OVERLAY,
    PAGE,
    SUGGESTIONS,
    TABLE,
    TEXTS,
    Kind,
    check_output,
    write_output,
)
from sememekit.files.packed import PACKED, CutArchiveError, DamagedArchiveError, packing_of, unpack_blocks, unpacked_name
from sememekit.files.reading import (
    at_home,
    by_its_beginning,
    decode,
    from_gb18030,
    is_there,
    may_be_gb18030,
    object_of,
    opening,
    read_bytes,
    read_object,
    read_sealed,
    read_text,
    refuse_odd_files,
    typed,
)
from sememekit.files.writing import (
    fits_seal,
    has_sha256,
    naming,
    remove_leftovers,
    replace_file,
    sealed,
    sync_to_disk,
    to_json,
    write_bytes,
    write_folder,
)


class RunWarning(UserWarning):
    """A remark for the user of a folder; the command goes on."""


def warn(message: str) -> None:
    """Warn with a RunWarning of what called the caller."""
    warnings.warn(message, RunWarning, stacklevel=3)
