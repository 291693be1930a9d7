"""``python -m sememekit.commands._with_parent ...``: the ``sememekit`` command, which ends when its parent does.

Its standard input is an empty pipe that the parent holds open. If the parent is killed, the pipe closes and this process ends
at once, so that another process may write to its folders."""

import os
import threading

from sememekit.commands._program import main


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()
