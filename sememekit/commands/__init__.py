"""One file a subcommand: ``command``, which the shell calls, and a plain function for Python, which prints nothing.

``_NAME.py`` has what several subcommands share; a folder has the parts of one job, such as ``trainings/`` and ``explaining/``.
A file imports what its plain function needs when that is called, so that help and completion answer at once.
"""
