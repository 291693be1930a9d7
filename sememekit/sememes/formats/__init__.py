"""One file for each lexicon format; the table of names stands in ``sememekit.sememes``."""
