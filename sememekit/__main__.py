"""``python -m sememekit`` is the ``sememekit`` command."""

from sememekit.cli import main

if __name__ == "__main__":
    main()
