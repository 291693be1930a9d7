"""Use of a run, or of your own classifier, in a notebook: plain arguments in, tables and pages out.

Each method calls the function behind the command of the same name.
"""

from sememekit.notebook.attacks import AttackResult, attack_classifier
from sememekit.notebook.run import Run, explain, load_run
from sememekit.reports.table import Shown, Table

__all__ = ["AttackResult", "Run", "Shown", "Table", "attack_classifier", "explain", "load_run"]
