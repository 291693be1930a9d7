"""Files on disk: atomic writes, replaced only by files of their kind, hashed once, with one writer at a time."""

import warnings

from sememekit.files.lock import LOCK, sole_command, sole_writer
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
from sememekit.files.packages import needed
from sememekit.files.packed import PACKED, CutArchiveError, DamagedArchiveError, packing_of, unpack_blocks, unpacked_name
from sememekit.files.reading import (
    at_home,
    by_its_beginning,
    decode,
    how_to_convert,
    is_there,
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
    """A remark for the user; the command continues."""


def warn(message: str) -> None:
    """Warn with a RunWarning at the caller's caller."""
    warnings.warn(message, RunWarning, stacklevel=3)
