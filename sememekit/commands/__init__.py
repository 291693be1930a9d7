"""One file a subcommand: ``command``, which the shell calls, and a plain function for Python, which prints nothing.

A file imports what its plain function needs when that is called, so that help and completion answer at once.
"""
