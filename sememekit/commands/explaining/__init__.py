"""What ``explain`` prints, one file for each kind of run."""
