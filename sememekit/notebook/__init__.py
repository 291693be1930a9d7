"""Use of a run, or of your own classifier, in a notebook: plain arguments in, tables and pages out.

Each method calls the function behind the command of the same name."""

from typing import TYPE_CHECKING, Any

from sememekit.notebook.run import Run, explain, load_run
from sememekit.reports.table import Shown, Table

if TYPE_CHECKING:
    from sememekit.notebook.attacks import AttackResult, attack_classifier

__all__ = ["AttackResult", "Run", "Shown", "Table", "attack_classifier", "explain", "load_run"]


def __getattr__(name: str) -> Any:
    """Import what attacks need when it is first used: 60 modules that no other command reads."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public names: {', '.join(__all__)}")
    from sememekit.notebook import attacks

    return getattr(attacks, name)
