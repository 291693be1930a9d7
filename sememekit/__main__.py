"""``python -m sememekit`` and the console script: the command line program."""

import gc
import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C before the imports are done ends without a traceback; see main()

from sememekit.commands._program import main


def _search_as_usual(phase: str, info: dict[str, int]) -> None:
    gc.callbacks.remove(_search_as_usual)
    gc.set_threshold(*_usual)


# The imports of a command with torch make 340,000 objects, all of them kept: the first search for garbage comes after them.
_usual = gc.get_threshold()
gc.set_threshold(400_000)
gc.callbacks.append(_search_as_usual)

if __name__ == "__main__":
    main()
