"""Trained runs: their plan, their model, and their answers to commands. A run as an argument: errors as ``Run.open``."""
