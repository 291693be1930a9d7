"""Commands that end with one clear line."""

from __future__ import annotations

from typer.testing import CliRunner

from sememekit.commands._program import app


def refusal(*arguments: str, stdin: str = "") -> str:
    """The one line that a command ends with; it shows nothing else, and it is no bug."""
    result = CliRunner().invoke(app, list(arguments), input=stdin)
    assert (result.exit_code, result.stdout) == (1, ""), result.stderr
    assert result.stderr.startswith("sememekit: error: ")
    assert result.stderr.count("\n") == 1
    assert "this is a bug" not in result.stderr
    return result.stderr
