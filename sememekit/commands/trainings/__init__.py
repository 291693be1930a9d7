"""Training for the commands that train: one run, several at once in processes or on an engine, several seeds."""
