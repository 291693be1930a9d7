"""Words in classes and in binary trees, from counts, from sememes or from a file. Nothing here imports torch."""
