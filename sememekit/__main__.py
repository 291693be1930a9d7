"""``python -m sememekit`` and the console script: the command line program."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C before the imports are done ends without a traceback; see main()

from sememekit.commands._program import main

if __name__ == "__main__":
    main()
