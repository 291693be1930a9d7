"""Readers of the lexicon formats; the table of names is in ``sememekit.sememes``."""
