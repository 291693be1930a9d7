"""``python -m sememekit.commands._with_parent ...``: the ``sememekit`` command, which ends when its parent does.

Its standard input is a pipe that the parent holds open and writes nothing to. A parent that is killed lets go of it, and this
process lets go of its folders at once: whoever continues the work may write to them.
"""

import os
import threading

from sememekit.commands._program import main


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()
