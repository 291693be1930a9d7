"""Measured accuracies of tagging senses, kept beside the run, so that ``tag`` can say how far to trust it."""

from pathlib import Path
from typing import Final

from sememekit.config import Record
from sememekit.errors import CheckpointError
from sememekit.figures import percent
from sememekit.files.reading import read_object
from sememekit.files.writing import replace_file, to_json
from sememekit.measure.intervals import Interval
from sememekit.runs.run import Run

FILE: Final = "senses.json"
"""In the folder of the run."""


class Measurement(Record):
    """Measured accuracy of a method on a gold set.

    Attributes:
        weights: SHA-256 of the weights that tagged.
        method, sources: as ``evaluate_senses`` was given them; another method or lexicon is another measurement.
        gold, gold_sha256: name and hash of the file.
        targets, micro, macro: as in ``SenseScores``.
    """

    weights: str
    method: str
    sources: tuple[str, ...]
    gold: str
    gold_sha256: str
    targets: int
    micro: Interval
    macro: Interval

    @property
    def sentence(self) -> str:
        """Return the measurement as a line of text."""
        return f"{percent(self.micro.value)} micro, {percent(self.macro.value)} macro of {self.targets:,} words in {self.gold}"


def remember(run: Path, measured: Measurement) -> bool:
    """Store a measurement beside a run, in place of the same one; whether it could be, as a folder may be read-only."""
    same = {"weights", "method", "sources", "gold_sha256"}
    kept = [one for one in _read(run) if one.model_dump(include=same) != measured.model_dump(include=same)]
    try:
        replace_file(run / FILE, to_json({"measured": [one.model_dump() for one in (*kept, measured)]}))
    except OSError:
        return False
    return True


def recall(run: Run, method: str, sources: tuple[str, ...]) -> list[Measurement]:
    """The measurements of these weights with this method and these lexicons, the newest last.

    Raises:
        CheckpointError: the file beside the run is damaged.
    """
    wanted = run.weights_sha256, method, sources
    return [one for one in _read(run.path) if (one.weights, one.method, one.sources) == wanted]


def _read(run: Path) -> list[Measurement]:
    file, remedy = run / FILE, "remove it, and measure again: sememekit eval RUN --senses GOLD"
    if not file.is_file():
        return []
    found = read_object(file, lambda why: CheckpointError(f"{why}; {remedy}"))
    try:
        return [Measurement(**one) for one in found["measured"]]
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{file}: holds no measurements of senses; {remedy}") from None
