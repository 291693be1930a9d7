"""Language models that know what words are made of: sememes inside encoders, output layers and lattices."""

__version__ = "0.1.0"
