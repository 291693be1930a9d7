"""Where the files that ship with sememekit lie: recipes and the open lexicon."""

from __future__ import annotations

from pathlib import Path

from sememekit.errors import ConfigError


def resources_folder() -> Path:
    """The folder ``resources``: inside the installed package, or at the top of a source tree. Raises ConfigError when neither
    is there, which means a broken installation."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "resources", package.parent / "resources"):
        if (folder / "recipes").is_dir():
            return folder
    raise ConfigError(f"the folder 'resources' is missing beside {package}; install sememekit again")
