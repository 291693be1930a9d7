"""Words of a text: vocabulary, normalisation, reading of lines, segmenters, word vectors. Nothing here imports torch."""
