"""Analyses of trained models: perplexity, scores, explanations, influence. Functions that take a run raise as ``Run.open``."""
