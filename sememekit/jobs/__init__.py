"""The work of the subcommands that join several rooms, as plain functions without a command line."""
