"""Trained runs: the plan, the model that it builds, and what a run folder can be asked for."""
