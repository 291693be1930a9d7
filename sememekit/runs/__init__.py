"""Trained runs: the plan, the model that it builds, what a run can be asked for. What takes a run raises as ``Run.open``."""
