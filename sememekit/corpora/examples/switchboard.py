"""Switchboard (Godfrey and Holliman 1997): answers, given the previous turns."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple, final

from sememekit.corpora.examples.rows import Opened, Row, is_json, json_records, numbered_lines
from sememekit.corpora.examples.sets import PairSet
from sememekit.errors import ConfigError, DataError
from sememekit.text.reading import FaultCounter

SAME: Final = "<same>"
OTHER: Final = "<other>"
CONTEXT: Final = 10  # number of turns before the answer, as in Zhao et al. (2017)


class _Turn(NamedTuple):
    line: int
    speaker: str
    text: str


@final
class Switchboard(PairSet):
    """Source: up to ``context`` previous turns, oldest first, each after ``<same>`` (the answering speaker) or ``<other>``.
    Target: the next turn.

    Two forms are read: JSON lines with a dialogue each, ``{"utts": [[speaker, text, ...], ...]}`` (Zhao et al. 2017), and text
    with ``speaker|utterance|tag`` lines, where ``# id`` opens a dialogue. A turn is an utterance of the file; the first turn of
    a dialogue is not a target. Utterances without words are counted and left out."""

    segmenters: ClassVar = ("english", "none", "english-cased", "jieba", "characters", "fmm", "sentencepiece")
    marks: ClassVar = (SAME, OTHER)
    held_out_stays_out: ClassVar = False  # an "uh-huh" after an "uh-huh" is no leak

    def __init__(self, context: int = CONTEXT) -> None:
        if context < 1:
            raise ConfigError(f"--turns {context}: 1 or more is needed")
        self.context = context
        self.normalisation = f"up to {context} turns before the answer; white space to one blank"

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        (file,) = files
        dialogues = _of_records(file, faults) if is_json(file) else _of_lines(file, faults)
        for turns in dialogues:
            before: deque[_Turn] = deque(maxlen=self.context)
            for turn in turns:
                text = " ".join(turn.text.split())
                if not text:
                    left_out["utterance without words"] += 1
                    continue
                if before:
                    source = " ".join(f"{SAME if past.speaker == turn.speaker else OTHER} {past.text}" for past in before)
                    yield Row(turn.line, (source, text), None, (text,))
                before.append(turn._replace(text=text))


def _of_records(file: Opened, faults: FaultCounter) -> Iterator[list[_Turn]]:
    for number, record in json_records(file, faults):
        where = f"{file.name}:{number}"
        utterances: Any = record.get("utts")
        if not isinstance(utterances, list):
            raise DataError(f"{where}: no list 'utts'; it has {', '.join(map(repr, record))}"[:300])
        turns = []
        for place, utterance in enumerate(utterances, start=1):
            good = isinstance(utterance, list) and len(utterance) >= 2 and all(isinstance(part, str) for part in utterance[:2])
            if not good:
                raise DataError(f"{where}: utterance {place} is not [speaker, text, ...]: {utterance!r}"[:300])
            turns.append(_Turn(number, utterance[0], utterance[1]))
        yield turns


def _of_lines(file: Opened, faults: FaultCounter) -> Iterator[list[_Turn]]:
    """Yield a dialogue at a time; a line that begins with ``#`` starts the next one."""
    turns: list[_Turn] = []
    for number, text in numbered_lines(file, faults):
        if text.startswith("#"):
            yield turns
            turns = []
            continue
        if not text.strip():
            continue
        fields = text.split("|")
        if len(fields) != 3:
            raise DataError(f"{file.name}:{number}: {len(fields)} fields with | between, 3 are needed: speaker|utterance|tag")
        if not fields[0].strip():
            raise DataError(f"{file.name}:{number}: the speaker is empty")
        turns.append(_Turn(number, fields[0].strip(), fields[1]))
    yield turns
