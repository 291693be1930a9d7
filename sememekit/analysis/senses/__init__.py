"""Senses of words in sentences: gold annotations, tagging methods, and their accuracy."""
