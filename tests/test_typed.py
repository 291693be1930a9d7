"""Commands in messages can be typed as they stand, also where the name of a folder has a blank."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from sememekit.attack.folder import AttackFolder
from sememekit.data.signature import SIGNATURE, read_signature
from sememekit.errors import SememekitError
from sememekit.files import typed
from sememekit.training import RunFolder
from sememekit.training.tracking import _failures_of

PACKAGE = Path(__file__).resolve().parent.parent / "sememekit"


def taken(path: Path) -> None:
    path.mkdir()
    (path / "plan.json").touch()
    RunFolder.create(path, {}, {}, {"words.tsv": b""})


def torn(path: Path) -> None:
    path.mkdir()
    (path / SIGNATURE).write_text("{", encoding="utf-8")
    read_signature(path)


def tracked(path: Path) -> None:
    with _failures_of("log", path):
        raise OSError("full")


CASES: list[tuple[Callable[[Path], object], tuple[str, ...]]] = [
    (taken, ("sememekit", "train", "--out", "PATH", "--resume")),
    (torn, ("sememekit", "preprocess", "DATASET", "SOURCE", "--force", "--out", "PATH")),
    (read_signature, ("sememekit", "preprocess", "DATASET", "SOURCE", "--out", "PATH")),
    (AttackFolder.open, ("sememekit", "attack", "VICTIM", "--data", "FILE", "--out", "PATH")),
    (tracked, ("sememekit", "train", "--out", "PATH", "--resume", "--set", "run.track=[]")),
]


@pytest.mark.parametrize(("call", "words"), CASES)
def test_a_command_in_a_message_can_be_typed(call: Callable[[Path], object], words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "my run"
    with pytest.raises(SememekitError) as caught:
        call(path)
    command = re.search(r"sememekit (train|preprocess|attack) [^;()]*", str(caught.value))
    assert command is not None
    assert shlex.split(command[0]) == [str(path) if word == "PATH" else word for word in words]


def test_the_command_that_resumes_an_attack(tmp_path: Path) -> None:
    folder = AttackFolder(tmp_path / "my run", {"victim": {"kind": "run", "name": "runs/x"}})
    assert shlex.split(folder.resume_command) == ["sememekit", "attack", "--out", str(tmp_path / "my run"), "--resume"]


def test_what_is_quoted() -> None:
    assert typed("sememekit", "train", "--out", Path("my run")) == "sememekit train --out 'my run'"
    assert typed("--source", "FORMAT:PATH", "a/b-c_1.tsv") == "--source FORMAT:PATH a/b-c_1.tsv"


def test_no_command_has_a_path_without_quotes() -> None:
    """``typed`` writes them; a path right in the text of a command is not quoted."""
    bare = re.compile(r"sememekit [a-z].*(--(out|data|from|graph|overlay|compare|resume|recipe)|table:) ?\{(?!typed)")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if bare.search(line)
    ]
    assert found == []
