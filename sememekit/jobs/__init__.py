"""The work of subcommands that need several packages, as plain functions without a command line."""
