"""Word classes and binary trees of words, from counts, sememes or a file. Nothing here imports torch."""
