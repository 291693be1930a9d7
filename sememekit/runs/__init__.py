"""Trained runs: the plan, its model, the questions it answers. Functions that take a run raise as ``Run.open``."""
