"""Files on the disk: written atomically, replaced only by their own kind, hashed once, one writer at a time.

Everything here stands on the ground floor, so that every room writes and checks files in the same way.
"""

from sememekit.files.hashes import has_sha256
from sememekit.files.lock import sole_writer
from sememekit.files.outputs import CLUSTERS, FIGURE, GRAPH, OVERLAY, PAGE, TEXTS, Kind, check_output, write_output
from sememekit.files.reading import decode, read_bytes, read_object, read_text
from sememekit.files.writing import naming, remove_leftovers, replace_file, sync_folder, to_json, write_bytes, write_folder


class RunWarning(UserWarning):
    """Something that the user of a folder should know, though the command goes on."""


__all__ = [
    "CLUSTERS",
    "FIGURE",
    "GRAPH",
    "OVERLAY",
    "PAGE",
    "TEXTS",
    "Kind",
    "RunWarning",
    "check_output",
    "decode",
    "has_sha256",
    "naming",
    "read_bytes",
    "read_object",
    "read_text",
    "remove_leftovers",
    "replace_file",
    "sole_writer",
    "sync_folder",
    "to_json",
    "write_bytes",
    "write_folder",
    "write_output",
]
