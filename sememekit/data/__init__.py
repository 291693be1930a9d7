"""Prepared data: the folder that ``preprocess`` writes, and batches out of it. Nothing here imports torch."""
