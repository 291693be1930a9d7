"""Every block of the README and of the pages, and every example of ``--help``, is run as printed, from where its page starts.

Records of measurements (docs/results) are not run; their commands are parsed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer

from sememekit.commands._program import PANELS
from tests.printed import Block, blocks_of, commands_in, loaded_program, missing_lines, parse, run_page, start_of

ROOT = Path(__file__).resolve().parents[2]
RECORDS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "results").rglob("*.md"))
PAGES = [
    *("README.md", "README.zh.md"),
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if "results" not in path.parts),
]
WITH_BLOCKS = [page for page in PAGES if any(not block.not_run for block in blocks_of(page))]
TWIN = "docs/tutorials/raw-text-zh.md"
"""Its blocks equal the blocks of the English tutorial: tests/docs/test_tutorials.py."""
FAST = {"README.md", "docs/index.md", "docs/lexicons.md", "docs/lattices.md"}
SMALL = "task.embedding_size=16 encoder.hidden_size=16 encoder.num_layers=1 schedule.epochs=1 run.stall_epochs=0"
NEEDS = {
    "attack": "a classifier, or a function",
    "clusters": "a model with clusters",
    "cluster-update": "a model with clusters",
    "extend": "words of yours",
    "predict": "a classifier",
    "quickstart": "minutes, or a text of yours",
    "pull": "a run that somebody shares",
    "serve": "a browser; docs/workbench.md runs it",
}
"""Commands whose examples are parsed alone -> what they need."""
ABSENT = (
    *("hf://", "hownet", "mos", "nli", "headlines", "CORPORA", "novel", "snli", "mine.toml", "jsonl", "pd", "a1,", "overlay"),
    *("merged", "mixture", "gold.tsv", "--data d ", "reproduce report"),
)
"""Words of an example that name what no folder has at the start."""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with loaded_program(tmp_path_factory.mktemp("program")) as folder:
        yield folder


def quickstart(folder: Path, program: Path, *options: str) -> Path:
    """Run quickstart in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [str(program / "sememekit"), "quickstart", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """A folder in which quickstart trained models of a few thousand numbers on 561 paragraphs."""
    settings = [word for setting in SMALL.split() for word in ("--set", setting)]
    return quickstart(tmp_path_factory.mktemp("small"), program, "--share", "0.03", *settings)


@pytest.fixture(scope="session")
def toured(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """A folder in which quickstart ran as printed, or the one that QUICKSTART_FOLDER names."""
    if found := os.environ.get("QUICKSTART_FOLDER"):
        return Path(found)
    return quickstart(tmp_path_factory.mktemp("toured"), program)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if page in FAST])
def test_the_blocks_of_a_first_page_run_as_printed(page: str, small: Path, program: Path, tmp_path: Path) -> None:
    failed = run_page(page, tmp_path, small, program, small=True)
    assert not failed, "\n\n".join(failed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if page != TWIN])
def test_the_blocks_of_a_page_run_as_printed(page: str, toured: Path, program: Path, tmp_path: Path) -> None:
    failed = run_page(page, tmp_path, toured, program, small=False)
    assert not failed, "\n\n".join(failed)


@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_a_page_says_where_it_starts(page: str) -> None:
    assert start_of(page)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_can_be_parsed(page: str) -> None:
    """Commands of blocks that are not run, too; ``text`` is output."""
    for block in blocks_of(page):
        if block.language == "text":
            assert not list(commands_in(block.code)), f"{page}:{block.line}: commands stand in blocks of sh"
        for words in commands_in(block.code) if block.language == "sh" else ():
            assert not parse(words), f"{page}:{block.line}: {' '.join(words)}: {parse(words)}"


@pytest.mark.parametrize("page", RECORDS)
def test_commands_of_records_can_be_parsed(page: str) -> None:
    for block in blocks_of(page):
        for words in commands_in(block.code):
            assert "..." in words or "[" in " ".join(words) or not parse(words), f"{page}:{block.line}: {parse(words)}"


def examples() -> list[tuple[str, str]]:
    """Each example of ``--help`` with the command that has it."""
    found = []
    for name in PANELS:
        module = import_module(f"sememekit.commands.{name.replace('-', '_')}")
        lines = list(getattr(module, "EXAMPLES", ()))
        if isinstance(module.command, typer.Typer):
            texts = [info.epilog for info in module.command.registered_commands] + [module.command.info.epilog]
            lines += [line.strip() for text in texts if isinstance(text, str) for line in text.splitlines()]
        found += [(name, line) for line in lines if line.startswith(("sememekit ", "echo "))]
    return list(dict.fromkeys(found))


def run_here(name: str, line: str) -> bool:
    """Return whether an example is run: nothing is absent that it names."""
    return name not in NEEDS and not any(word in line for word in ABSENT)


@pytest.mark.parametrize(("name", "line"), examples())
def test_an_example_of_help_can_be_parsed(name: str, line: str) -> None:
    for words in commands_in(line):
        assert not parse(words), f"{line}: {parse(words)}"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [name for name in PANELS if any(run_here(*one) for one in examples() if one[0] == name)])
def test_the_examples_of_help_run_where_quickstart_ran(name: str, toured: Path, program: Path, tmp_path: Path) -> None:
    """One after the other."""
    shutil.copytree(toured / "quickstart", tmp_path / "quickstart")
    lines = [line for command, line in examples() if command == name and run_here(command, line)]
    for line in lines:
        path = os.pathsep.join([str(program), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", line],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"


def test_output_that_a_page_shows_is_compared() -> None:
    """Figures of deterministic commands must be printed; figures of models may differ, their words may not."""
    read = Block(1, "sh", "sememekit lookup 希望\n", "", "a   1.5\nb   2\n")
    assert missing_lines(read, "a 1.5\nb 2\n", small=False) == []
    assert missing_lines(read, "a 1.5\nb 3\n", small=True) == ["b   2"]
    model = Block(1, "sh", "sememekit evaluate-ppl quickstart/sdlm\n", "", "Perplexity of it\n perplexity   1.5\n nats   3\n")
    assert missing_lines(model, "Perplexity of it\nperplexity 9\nnats 7\n", small=False) == []
    assert missing_lines(model, "Perplexity of it\nppl 9\nloss 7\n", small=False) == [" perplexity   1.5", " nats   3"]
    assert missing_lines(model, "Perplexity\nperplexity 9\nnats 7\n", small=True) == ["Perplexity of it"]


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("sememekit train --data d --out o --epochs 3", "--epochs"),
        ("sememekit recipes shwo x", "shwo"),
        ("echo a | sememekit tag quickstart/sdlm > out.tsv  # a remark", ""),
    ],
)
def test_wrong_options_of_a_line_are_seen(code: str, wrong: str) -> None:
    (words,) = commands_in(code)
    assert wrong in parse(words)
    assert bool(wrong) == bool(parse(words))


def test_a_failing_line_fails_its_page(tmp_path: Path, program: Path) -> None:
    """Here with a page of one line, which reads a run that is not there."""
    page = tmp_path / "page.md"
    page.write_text("**Start from here:** an empty folder.\n\n```sh\nsememekit report no/run\n```\n", encoding="utf-8")
    (tmp_path / "place").mkdir()
    (failed,) = run_page(os.path.relpath(page, ROOT), tmp_path / "place", tmp_path, program, small=True)
    assert "no/run" in failed
