"""What ``sweep`` tries and how: the values of ``--over``, and the study of Optuna."""
