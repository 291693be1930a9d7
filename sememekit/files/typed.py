"""How a command stands in a message: as it can be typed, whatever blanks are in the names of folders."""

import shlex
from pathlib import Path


def typed(*words: str | Path) -> str:
    """The words of a command with blanks between them, quoted where a shell needs it: ``sememekit train --out 'my run'``.

    Placeholders (``FORMAT:PATH``) need no quotes and get none.
    """
    return shlex.join(str(word) for word in words)
