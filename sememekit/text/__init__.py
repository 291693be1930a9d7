"""Words of a text: vocabulary, normalisation, lines out of bytes, segmenters, word vectors. Nothing here imports torch."""
