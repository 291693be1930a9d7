"""What a trained model does: perplexity, scores, explanations, influence. What takes a run raises as ``Run.open``."""
