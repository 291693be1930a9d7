"""Senses of words in sentences: gold annotations, methods that tag, and how often they are right."""
