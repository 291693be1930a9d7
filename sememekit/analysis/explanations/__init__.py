"""Explanations of predictions, one file for each kind of run, and scores of how well they fit the next word."""
