"""How a command ends.

==== ==========================================================================
0    done
1    an error that the user can fix, or a bug of ours, which says so
2    a command line that we do not understand
75   stopped by a signal, with a checkpoint to resume from
130  interrupted from the keyboard, with nothing to resume
==== ==========================================================================
"""

from typing import NoReturn

import typer

FAILED = 1
USAGE = 2
STOPPED = 75
INTERRUPTED = 130


def fail_usage(message: str) -> NoReturn:
    """End as for a wrong command line: for rules that one flag alone cannot state."""
    raise typer.BadParameter(message)
