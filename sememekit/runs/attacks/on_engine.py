"""An attack whose examples are divided among the processes of an engine.

Each process opens the victim, substitutes and constraints for all examples, as the command does, and attacks a share of them.
So a result depends on its example alone. Results are added to ``OUT/.parts/NUMBER.jsonl`` line by line; lines of a lost process
count.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from sememekit.attack import check_parts, choose_examples, read_attack_plan, read_examples
from sememekit.attack.folder import append_result, whole_results
from sememekit.config import trusting_code
from sememekit.engines.base import open_engine
from sememekit.errors import DataError
from sememekit.files import opening
from sememekit.progress import Progress, silent
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.running import AttackedData, AttackParts, OpenAttack, attack_parts, check_labels
from sememekit.runs.attacks.victims import check_kind, open_victim
from sememekit.runs.run import Which

_SHARES: Final = ".parts"
_STOP: Final = "stop"
_EXAMPLES: Final = 32
"""Examples of a share, which bounds how long the other processes wait for a slow one."""


class AttackCall(NamedTuple):
    """The arguments of an attack as plain values. ``table`` is the plan's table as text, so that calls can be compared."""

    victim: str
    data: str
    table: str
    labels: tuple[str, ...]
    logits: bool
    language_model: str
    which: Which
    device: str
    trust: bool
    trusted: frozenset[str] | None
    folder: str

    def open(self, progress: Progress = silent) -> AttackParts:
        """Open the victim, read the examples, and look substitutes up. Raises ConfigError, DataError, CheckpointError."""
        plan = read_attack_plan(json.loads(self.table), "the attack")
        with trusting_code(True if self.trusted is None else self.trusted), trusting_code(self.trust):
            check_kind(self.victim)  # a run that is no classifier needs no lexicon
            check_parts(plan, language_model=bool(self.language_model))
            with opening(Path(self.data), DataError):  # a wrong name is told before the victim is opened
                os.stat(self.data)
            named = open_victim(
                self.victim,
                labels=self.labels,
                batch_size=plan.attack.batch_size,
                which=self.which,
                device=self.device,
                segmenter=plan.attack.segmenter,
                lexicon=plan.attack.lexicon,
                logits=self.logits,
            )
            nats = AttackLanguageModel(self.language_model, self.device) if self.language_model else None
        examples, file = read_examples(Path(self.data), named.kind)
        chosen = choose_examples(examples, plan.attack.limit, plan.attack.sample, plan.attack.seed)
        check_labels(named, chosen, self.data)
        data = AttackedData(self.data, file.sha256, file.texts)
        return attack_parts(plan, named, nats, data, examples, chosen, progress)


class Share(NamedTuple):
    """The numbers of some examples, for one process of an engine; ``sha256`` is the hash of the data that the command read."""

    call: AttackCall
    sha256: str
    numbers: tuple[int, ...]
    path: Path

    def run(self) -> tuple[int, int]:
        """Attack the examples that the file of the share lacks; return the number of queried texts and of calls.

        Raises DataError: the data differ from the data of the command.
        """
        os.chdir(self.call.folder)
        with redirect_stdout(sys.stderr):  # what a victim prints is no result
            return self._attack(_opened(self.call))

    def _attack(self, opened: AttackParts) -> tuple[int, int]:
        if opened.data.sha256 != self.sha256:
            raise DataError(f"{self.call.data}: changed while the attack ran; start anew with another --out")
        done = whole_results(self.path)
        victim = opened.engine.victim
        before = victim.texts_asked, victim.calls
        left = [example for example in opened.chosen if example.index in set(self.numbers) - set(done)]
        for result in opened.engine.run(left, self.path.with_name(_STOP).exists):
            append_result(self.path, result)
        return victim.texts_asked - before[0], victim.calls - before[1]


@lru_cache(maxsize=1)
def _opened(call: AttackCall) -> AttackParts:
    """The attack at hand, opened once in a process."""
    return call.open()


def run_on_engine(
    begun: OpenAttack, call: AttackCall, engine: str, workers: int, should_stop: Callable[[], bool], progress: Progress
) -> bool:
    """Attack the unfinished examples on an engine; return whether a signal came.

    Raises EngineError: a process was lost; ``--resume`` continues from there.
    """
    folder = begun.folder.path / _SHARES
    folder.mkdir()
    left = [example.index for example in begun.left()]
    total = len(begun.parts.chosen)
    done = total - len(left)
    size = max(1, min(_EXAMPLES, -(-len(left) // workers)))
    tasks = [
        Share(call, begun.parts.data.sha256, tuple(left[first : first + size]), folder.absolute() / f"{first}.jsonl")
        for first in range(0, len(left), size)
    ]

    def look() -> None:
        if should_stop():
            (folder / _STOP).touch()
        progress("examples", done + sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl")), total)

    try:
        with open_engine(engine, workers, folder) as opened:
            for _, (texts, calls) in opened.map(Share.run, tasks, look):
                begun.parts.named.victim.texts_asked += texts
                begun.parts.named.victim.calls += calls
    finally:
        found = gather(begun)
    progress("examples", done + found, total)
    if done + found < total:
        return True
    begun.folder.finish()
    return False


def gather(begun: OpenAttack) -> int:
    """Move the results of all shares, also of a killed attack, into the folder of the attack; return their number."""
    folder, taken = begun.folder.path / _SHARES, set[int]()
    if not folder.exists():
        return 0
    wanted = {example.index for example in begun.left()}
    for path in sorted(folder.glob("*.jsonl")):
        for number, result in whole_results(path).items():
            if number in wanted - taken:
                begun.folder.append(result)
                taken.add(number)
    shutil.rmtree(folder)
    return len(taken)
