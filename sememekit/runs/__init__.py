"""Trained runs: their plan, their model, and what commands can ask them. Functions that take a run raise as ``Run.open``."""
