"""The call of an attack, and its examples divided among processes, which are played: shares, progress, queries, and a stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit import signals
from sememekit.config import trusted_code
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.jobs import attack as module
from sememekit.jobs.attack import Share, run_on_engine
from sememekit.signals import StopRequest
from tests.commands import attacks


@pytest.mark.parametrize(
    ("left", "workers", "most", "shares"),
    [
        (7, 3, 32, [3, 3, 1]),
        (7, 2, 32, [4, 3]),
        (7, 2, 3, [3, 3, 1]),
        (7, 9, 32, [1] * 7),
        (0, 2, 32, []),
    ],
)
@pytest.mark.parametrize("lost", [0, 1])
def test_examples_are_divided_and_their_queries_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, workers: int, most: int, shares: list[int], lost: int
) -> None:
    """Three examples were finished before. A share that does not return all its results was stopped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_EXAMPLES", most)
    told: list[tuple[Any, ...]] = []
    tasks: list[Share] = []
    folder = Path("attack", ".parts")
    asked = lost > 0
    finished: list[bool] = []
    victim = SimpleNamespace(texts_asked=100, calls=10)

    def play(work: Any, given: list[Share], look: Callable[[], None]) -> Iterator[tuple[int, tuple[int, int]]]:
        assert work == Share.run
        tasks.extend(given)
        look()
        assert (folder / "stop").exists() == asked
        for number, task in enumerate(given):
            task.path.write_bytes(b"{}\n" * len(task.numbers))
            yield number, (5, 1)
        look()

    def open_engine(*given: Any) -> Any:
        assert given == ("slurm", workers, folder)
        return nullcontext(SimpleNamespace(map=play))

    monkeypatch.setattr(module, "open_engine", open_engine)
    monkeypatch.setattr(module, "gather", lambda begun: left - lost)
    folder.parent.mkdir()
    begun: Any = SimpleNamespace(
        folder=SimpleNamespace(path=folder.parent, seal="9f", finish=lambda: finished.append(True)),
        left=lambda: [SimpleNamespace(index=20 + number) for number in range(left)],
        parts=SimpleNamespace(
            chosen=range(3 + left), data=SimpleNamespace(sha256="0a1b"), named=SimpleNamespace(victim=victim)
        ),
    )
    call: Any = "the call"
    stopped = run_on_engine(begun, call, "slurm", workers, lambda: asked, lambda *one: told.append(one))
    assert [len(task.numbers) for task in tasks] == shares
    assert [number for task in tasks for number in task.numbers] == [*range(20, 20 + left)]
    first = [sum(shares[:number]) for number in range(len(shares))]
    assert [task.path for task in tasks] == [tmp_path / folder / f"{number}.jsonl" for number in first]
    assert {task[:2] for task in tasks} <= {("the call", "0a1b")}
    assert told == [("examples", done, 3 + left) for done in (3, 3 + left, 3 + left - lost)]
    assert (victim.texts_asked, victim.calls) == (100 + 5 * len(shares), 10 + len(shares))
    assert (stopped, finished) == (lost > 0, [] if lost else [True])


def test_a_share_attacks_what_its_file_lacks_and_counts_its_own_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = SimpleNamespace(texts_asked=100, calls=10)
    attacked: list[Any] = []

    def run(left: list[Any], stop: Callable[[], bool]) -> Iterator[str]:
        for example in left:
            attacked.append((example.index, stop()))
            victim.texts_asked += 3
            victim.calls += 1
            (tmp_path / "stop").touch()
            print("a victim that prints")
            yield f"result {example.index}"

    opened = SimpleNamespace(
        data=SimpleNamespace(sha256="0a1b"),
        engine=SimpleNamespace(victim=victim, run=run),
        chosen=[SimpleNamespace(index=number) for number in range(9)],
    )
    written: list[tuple[Any, ...]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_opened", lambda call: opened)
    monkeypatch.setattr(module, "whole_results", lambda path, seal: {4: "a result"})
    monkeypatch.setattr(module, "append_result", lambda *given: written.append(given))
    (tmp_path / "there").mkdir()
    call: Any = SimpleNamespace(folder=str(tmp_path / "there"), data="data.tsv")
    share = Share(call, "0a1b", (2, 4, 5), tmp_path / "2.jsonl", "9f")
    assert share.run() == (6, 2)
    assert attacked == [(2, False), (5, True)]
    assert written == [(share.path, "result 2", "9f"), (share.path, "result 5", "9f")]
    assert Path.cwd() == tmp_path / "there"
    with pytest.raises(DataError, match=r"data\.tsv: changed while the attack ran"):
        share._replace(sha256="2c3d").run()


class CalledError(Exception):
    """An attack would begin now."""


def begins(*given: Any, **more: Any) -> Any:
    raise CalledError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "none"}, "engine 'none'"),
        ({"out": "taken"}, "taken"),
        ({"data": "absent.tsv"}, "absent.tsv"),
        ({"data": None}, "attack needs a victim and --data FILE"),
        ({"victim": None}, "attack needs a victim and --data FILE"),
        ({"out": None}, "attack needs --out DIR"),
        ({"table": {"constraints": {"perplexity": {"most": 2.0}}}}, "needs a language model: .* --lm RUN"),
    ],
)
def test_what_is_wrong_is_told_before_the_victim_is_opened(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "open_victim", begins)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    whole: dict[str, Any] = {"victim": attacks.VICTIM, "data": files["data"], "out": "out", "table": attacks.table_of(files)}
    with pytest.raises(CalledError):
        module.attack(**{**whole, "out": tmp_path / "out"})
    whole |= {**given, "table": {**whole["table"], **given.get("table", {})}}
    places = {key: None if whole[key] is None else tmp_path / whole[key] for key in ("data", "out")}
    with pytest.raises((ConfigError, DataError, CheckpointError), match=message):
        module.attack(**{**whole, **places})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({}, {}),
        ({"victim": "other:function", "labels": ["c"]}, {"victim": "other:function", "labels": ("c",)}),
        ({"victim": "runs/one"}, {"victim": "runs/one", "labels": ()}),
        ({"data": Path("other.tsv"), "language_model": Path("runs/lm2")}, {"data": "other.tsv", "language_model": "runs/lm2"}),
        ({"table": {"goal": {"name": "c"}}}, {"table": '{"attack": {"seed": 2}, "goal": {"name": "c"}}'}),
        (
            {"logits": False, "which": "last", "device": "cpu", "trust_code": True},
            {"which": "last", "device": "cpu", "trust": True},
        ),
    ],
)
def test_a_resumed_attack_takes_from_its_folder_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], changed: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    identity = {
        "victim": {"name": "module:function", "labels": ["a", "b"], "logits": True},
        "data": {"path": "data.tsv"},
        "plan": {"attack": {"seed": 2}, "goal": {"name": "g"}},
        "language_model": {"run": "runs/lm"},
    }
    named: list[Any] = []
    folder = SimpleNamespace(identity=identity, refuse_code=lambda names, trust: named.append((list(names), trust)))
    calls: list[dict[str, Any]] = []

    def call(**more: Any) -> None:
        calls.append(more)
        raise CalledError

    monkeypatch.setattr(module, "AttackFolder", SimpleNamespace(open=lambda out: folder))
    monkeypatch.setattr(module, "read_attack_plan", lambda table, where: SimpleNamespace(table=lambda: table))
    monkeypatch.setattr(module, "AttackCall", call)
    with pytest.raises(CalledError):
        module.attack(out=tmp_path, resume=True, **given)
    assert calls == [
        {
            "victim": "module:function",
            "data": "data.tsv",
            "table": '{"attack": {"seed": 2}, "goal": {"name": "g"}}',
            "labels": ("a", "b"),
            "logits": True,
            "language_model": "runs/lm",
            "which": "best",
            "device": "auto",
            "trust": False,
            "trusted": trusted_code(),
            "folder": str(tmp_path),
            **changed,
        }
    ]
    assert [trust for _, trust in named] == [given.get("trust_code", False)]


def test_once_an_attack_is_stopped_further_signals_are_ignored(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "SAME_SIGNAL", -1.0)
    asked = StopRequest()
    began = time.perf_counter()
    report = attacks.run(files, tmp_path / "whole", asked_to_stop=asked)
    assert not report.stopped
    assert 0 < report.seconds < time.perf_counter() - began
    asked.note()
    assert asked.note(), "a second signal acts"
    assert attacks.run(files, tmp_path / "stopped", asked_to_stop=asked).stopped
    assert not asked.note()
    assert [(tmp_path / name / "report.html").exists() for name in ("whole", "stopped")] == [True, False]
