"""Prepared data: the output folder of ``preprocess``, and batches from it. Nothing here imports torch."""
