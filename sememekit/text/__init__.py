"""Text: vocabulary, corpus readers, normalisation, segmenters and the prepared-data folder. Nothing here imports torch."""

from sememekit.text.prepared import PreparedData, Signature
from sememekit.text.vocabulary import END, STOP, UNKNOWN, Vocabulary

__all__ = ["END", "STOP", "UNKNOWN", "PreparedData", "Signature", "Vocabulary"]
