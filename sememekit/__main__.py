"""``python -m sememekit`` is the ``sememekit`` command."""

from sememekit.commands._program import main

if __name__ == "__main__":
    main()
