"""Attacks on trained runs and on classifiers of other libraries: victim, language model, the attack itself, its report."""
