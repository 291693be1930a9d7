"""Analyses of trained models: perplexity, scores, explanations, influence. A run as an argument: errors as ``Run.open``."""
