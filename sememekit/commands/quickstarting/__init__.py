"""The folder, the text and the steps of ``quickstart``."""
