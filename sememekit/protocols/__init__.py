"""Scoring that adapts to the text it reads: a continuous cache, and dynamic evaluation."""
