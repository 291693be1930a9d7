"""Questions to a run, or to a classifier of your own, from a notebook: plain arguments in, tables and pages out.

Nothing is computed here: each method calls the function that the command of its name calls.
"""

from sememekit.notebook.attacks import AttackResult, attack_classifier
from sememekit.notebook.run import Run, explain, load_run
from sememekit.reports.table import Shown, Table

__all__ = ["AttackResult", "Run", "Shown", "Table", "attack_classifier", "explain", "load_run"]
