"""A module that must never be imported because a file names it; whoever does leaves a trace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def act(*arguments: Any, **options: Any) -> Any:
    """Leave a trace."""
    Path(os.environ["FAULT_CANARY"]).touch()


act()
