"""The offline pipeline of ``preprocess``: shards, one vocabulary, ids on disk. Nothing here imports torch."""
