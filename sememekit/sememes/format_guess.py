"""What format a lexicon file seems to have."""

from __future__ import annotations

from pathlib import Path


def likely_format(path: Path) -> str:
    """The format to name as an example for a file, by its first two lines; the reader of it says what else it seems to be."""
    try:
        with path.open("rb") as stream:
            first, second = (stream.readline(4096).removeprefix(b"\xef\xbb\xbf") for _ in range(2))
    except OSError:  # such as a folder
        return "table"
    if first.startswith(b"NO."):
        return "hownet"
    word = first if first.strip() else second  # released lists begin with a blank line
    return "list" if word.strip() and b"\t" not in word else "table"
