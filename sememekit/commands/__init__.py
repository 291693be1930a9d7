"""A file for each subcommand: ``command``, which typer reads, calls a function of another room and prints the report.

``_NAME.py`` is shared by several subcommands. Imports happen when ``command`` runs, so help and completion answer at once."""
