"""One file a subcommand: ``command``, which typer reads; it calls a function of a room below and prints the report.

``_NAME.py`` has what several subcommands share. A file imports what it calls when ``command`` runs, so that help and completion
answer at once.
"""
