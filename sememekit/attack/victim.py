"""The victim of an attack: a function from texts to probabilities, queried in large batches, with checked answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.documents import Fields

Answer = NDArray[np.float64] | str
"""(C,) probabilities of one text, or what was wrong with them."""

DECIMALS: Final = 9
"""Digits of a probability that decide and are stored: the last bits depend on what else is in the batch."""
_BATCHES_AT_ONCE: Final = 8
_TOLERANCE: Final = 1e-3
"""How far from 1 a row may sum: half precision is not exact."""

FAULT: Final = "the victim"
"""How every answer begins that says what was wrong: examples with another error cannot be attacked whatever the victim does."""


@final
class Victim:
    """A classifier behind one function.

    >>> victim = Victim(lambda texts: np.array([[0.25, 0.75]] * len(texts)), ["negative", "positive"], name="mine")
    >>> [[answer]] = victim.ask([[("a good film",)]])
    >>> victim.labels[answer.argmax()]
    'positive'

    The function gets a list of texts (strings, or tuples of strings where an example has several fields) and gives an array
    (N, C) of probabilities. It is asked once for texts that are equal, in batches of texts of similar length. Where a batch
    raises or has the wrong shape, its examples are asked one by one, so that one bad example costs no other its answer. Answers
    are rounded to ``DECIMALS``, so that the rest of the batch decides nothing where it moves the numbers by much less.

    Args:
        predict: texts -> probabilities.
        labels: C names, in the order of the columns.
        batch_size: texts in one call at most.
        words: the words that the classifier knows, most frequent first, where it tells.
    """

    def __init__(
        self,
        predict: Callable[[list[Any]], Any],
        labels: Sequence[str],
        *,
        name: str,
        batch_size: int = 512,
        words: Sequence[str] | None = None,
    ) -> None:
        self.labels = tuple(labels)
        self.name = name
        self.words = tuple(words) if words is not None else None
        self.calls = 0
        self.texts_asked = 0
        self._predict = predict
        self._batch_size = batch_size

    def ask(self, wanted: Sequence[Sequence[Fields]]) -> list[list[Answer]]:
        """Probabilities of all texts of all examples: for each example an answer for each of its texts, in order."""
        return list(self.answers(wanted))

    def answers(
        self, wanted: Sequence[Sequence[Fields]], should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[list[Answer]]:
        """The same, an example as soon as some batches have all of its texts; no further batch once ``should_stop`` is true."""
        answers: dict[Fields, Answer] = {}
        for examples in self._groups(wanted):
            missing = {text for texts in examples for text in texts} - answers.keys()
            distinct = sorted(missing, key=lambda text: (sum(map(len, text)), text))
            failed: set[Fields] = set()
            for begin in range(0, len(distinct), self._batch_size):
                if should_stop():
                    return
                batch = distinct[begin : begin + self._batch_size]
                found = self._call(batch)
                if isinstance(found, str):
                    failed.update(batch)
                else:
                    answers.update(zip(batch, found, strict=True))
            for texts in examples if failed else ():
                own = [text for text in dict.fromkeys(texts) if text in failed and text not in answers]
                if own:
                    found = self._call(own)
                    answers.update(zip(own, [found] * len(own) if isinstance(found, str) else found, strict=True))
            yield from ([answers[text] for text in texts] for texts in examples)

    def _groups(self, wanted: Sequence[Sequence[Fields]]) -> Iterator[list[Sequence[Fields]]]:
        """Examples whose texts make some batches: enough of them to sort by length, few enough to lose at a stop."""
        group: list[Sequence[Fields]] = []
        num_texts = 0
        for texts in wanted:
            group.append(texts)
            num_texts += len(texts)
            if num_texts >= _BATCHES_AT_ONCE * self._batch_size:
                yield group
                group, num_texts = [], 0
        yield group

    def _call(self, batch: list[Fields]) -> list[Answer] | str:
        self.calls += 1
        self.texts_asked += len(batch)
        try:
            found = self._predict([text[0] if len(text) == 1 else text for text in batch])
        except (Exception, SystemExit) as error:  # whatever a stranger's function raises must not end the attack on the others
            return f"{FAULT} raised {type(error).__name__}: {error}"
        try:
            array = np.asarray(found.detach().cpu() if callable(getattr(found, "detach", None)) else found)
        except Exception as error:
            return f"{FAULT}'s answer is no array: {error}"
        if array.dtype.kind != "f":
            return f"{FAULT} must give floating-point probabilities, and gave {array.dtype}"
        if array.shape != (len(batch), len(self.labels)):
            return f"{FAULT} must give an array of shape {(len(batch), len(self.labels))}, and gave {array.shape}"
        rows = array.astype(np.float64)
        return [_checked(row) for row in rows.round(DECIMALS)]


def _checked(row: NDArray[np.float64]) -> Answer:
    if not np.isfinite(row).all():
        return f"{FAULT} gave a probability that is not finite"
    if (row < -_TOLERANCE).any() or abs(float(row.sum()) - 1.0) > _TOLERANCE:
        found = f"sum {float(row.sum()):.4g}, least {float(row.min()):.4g}"
        return f"{FAULT}'s numbers are no probabilities: {found}; if these are logits: --logits"
    return row
