"""A streamed attack on one text, and the file of ratings of its substitutes."""

import csv
import json
from collections.abc import Iterator
from difflib import SequenceMatcher
from hashlib import sha256
from io import StringIO
from typing import Any, Final

from sememekit.attack import Example, ExampleResult, read_attack_plan
from sememekit.config import Record
from sememekit.errors import DataError
from sememekit.files import is_there, read_text, replace_file
from sememekit.files.tables import csv_text, guarded
from sememekit.progress import silent
from sememekit.runs.attacks.running import AttackedData, attack_parts
from sememekit.serve.questions import AttackQuestion, RatingQuestion
from sememekit.serve.runs import Bench

RATINGS: Final = "ratings.csv"
COLUMNS: Final = ("run", "text", "changed", "old", "new", "same meaning", "fluent")


class Piece(Record):
    """A part of a text; ``old`` is the replaced text, or None."""

    text: str
    """The text of the piece."""
    old: str | None
    """The text that it replaces; None where nothing was replaced."""


class Step(Record):
    """A step of a search: pieces of the best text, probability of the true label, queries in all, and ``tried`` here."""

    queries: int
    """Number of queries so far."""
    tried: int
    """Number of texts tried in this step."""
    fields: tuple[tuple[Piece, ...], ...]
    """The best texts so far, in pieces."""
    probability: float
    """Probability of the true label for the best texts."""


class AttackEvent(Record):
    """A line of the stream: a step, or finally the result, or an error."""

    step: Step | None = None
    """A step of the search."""
    result: ExampleResult | None = None
    """The outcome, as the command gives it."""
    error: str | None = None
    """The reason for an early end of the stream."""


def attack(bench: Bench, question: AttackQuestion) -> Iterator[AttackEvent]:
    """Replace words of a text until the classifier errs, like ``sememekit attack``, step by step."""
    run = bench.run(question.run, "attack")
    named, fields = run.victim, tuple(question.texts)
    victim, texts = named.victim, run.signature.examples.texts if run.signature.examples else ()
    if question.label is not None and question.label not in victim.labels:
        raise DataError(f"attack: no label {question.label!r}; there are {', '.join(victim.labels)}")
    answer = victim.alone(fields)
    if isinstance(answer, str):
        raise DataError(f"attack: {answer}")
    label = question.label or victim.labels[int(answer.argmax())]
    candidates = {"name": "sememe", "sources": list(bench.sources)}
    running = {"query_budget": question.query_budget}
    plan = read_attack_plan({"search": {"name": question.search}, "candidates": candidates, "attack": running}, "attack")
    example, digest = Example(0, fields, label), sha256(json.dumps([fields, label]).encode()).hexdigest()
    parts = attack_parts(plan, named, None, AttackedData("the text", digest, tuple(texts)), [example], [example], silent)
    asking, place, queries, best = parts.engine.attack_one(example), victim.labels.index(label), 0, (2.0, fields)
    answers: Any = None
    while True:
        try:
            wanted = asking.send(answers)
        except StopIteration as end:
            yield AttackEvent(result=parts.engine.confirmed(end.value))
            return
        [answers] = victim.ask([wanted])
        queries += len(wanted)
        shares = [2.0 if isinstance(one, str) else float(one[place]) for one in answers]
        lowest = min(range(len(shares)), key=shares.__getitem__)
        if shares[lowest] < best[0]:
            best = shares[lowest], wanted[lowest]
        pieces = tuple(_pieces(*pair) for pair in zip(fields, best[1], strict=True))
        yield AttackEvent(step=Step(queries=queries, tried=len(wanted), fields=pieces, probability=best[0]))


def _pieces(old: str, new: str) -> tuple[Piece, ...]:
    """Return the new text in pieces, with the old text of each difference."""
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return tuple(
        Piece(text=new[begin:end], old=None if kind == "equal" else old[first:last]) for kind, first, last, begin, end in found
    )


class RatingAnswer(Record):
    """The file of ratings, and their number."""

    file: str
    """The file of ratings."""
    ratings: int
    """Number of its ratings."""


def rate(bench: Bench, question: RatingQuestion) -> RatingAnswer:
    """Add a rating of a substitute to the file of ratings, or replace its earlier rating."""
    run = bench.run(question.run)
    with bench.saving() as folder:
        file = folder / RATINGS
        text = read_text(file, DataError) if is_there(file, DataError) else ""
        try:
            header, *stored = [*csv.reader(StringIO(text, newline=""))] or [[*COLUMNS]]
        except csv.Error as error:
            raise DataError(f"{file} is no CSV of the workbench ({error}); move it away") from None
        if tuple(header) != COLUMNS or any(len(row) != len(COLUMNS) for row in stored):
            raise DataError(f"{file} was not written by the workbench; move it away, so that a new one can be made")
        rows = {tuple(map(guarded, row[:5])): tuple(row[5:]) for row in stored}
        given = (run.name, question.text, question.changed, question.old, question.new)
        said = tuple("yes" if value else "no" for value in (question.same_meaning, question.fluent))
        rows[tuple(map(guarded, given))] = said
        replace_file(file, csv_text([COLUMNS, *((*key, *value) for key, value in rows.items())]).encode())
    return RatingAnswer(file=str(file), ratings=len(rows))
