"""What a trained model does: perplexity, scores, explanations, influence of words and sememes."""
