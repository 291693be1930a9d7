"""The victim of an attack: a function from texts to probabilities, queried in large batches, with checked answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sememekit.attack.documents import Fields

Answer = NDArray[np.float64] | str  # (C,) probabilities of one text, or an error message

DECIMALS: Final = 9  # decimals to which probabilities are rounded, since further decimals depend on the other rows of the batch
SAME: Final = 1e-4
"""Largest difference of a probability between two calls of one victim, with other texts in the batch or on another machine."""
LENGTH: Final = 600
"""Longest text in characters for batches of ``batch_size``; batches of longer texts are smaller, to bound memory."""
_TOLERANCE: Final = 1e-3  # largest distance of a row's sum from 1; half precision needs it

_ROUNDED: Final = 0.1  # largest distance of the sum of rounded probabilities from 1

FAULT: Final = "the victim"  # prefix of errors caused by the victim; other errors are due to the example


def num_characters(text: Fields) -> int:
    """Characters of all fields."""
    return sum(map(len, text))


@final
class Victim:
    """A classifier behind one function.

    >>> victim = Victim(lambda texts: np.array([[0.25, 0.75]] * len(texts)), ["negative", "positive"], name="mine")
    >>> [[answer]] = victim.ask([[("a good film",)]])
    >>> victim.labels[answer.argmax()]
    'positive'

    The function gets a list of texts (strings, or tuples of strings for several fields) and returns an array (N, C) of
    probabilities. Equal texts are queried once, in batches of similar length. If a batch raises or has the wrong shape, its
    examples are queried one by one, so that a bad example does not affect others. Answers are rounded to ``DECIMALS``, so that
    small effects of the batch decide nothing.

    Args:
        labels: C names, in the order of the columns.
        batch_size: most texts in one call; fewer for texts longer than ``LENGTH`` characters.
        words: the words that the classifier knows, most frequent first, if declared."""

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
        self.batch_size = batch_size

    def ask(self, wanted: Sequence[Sequence[Fields]], should_stop: Callable[[], bool] = lambda: False) -> list[list[Answer]]:
        """Probabilities of all texts of all examples: for each example an answer for each of its texts, in order. None if
        ``should_stop`` becomes true before the last batch."""
        answers: dict[Fields, Answer] = {}
        failed: set[Fields] = set()
        for batch in self._batches({text for texts in wanted for text in texts}):
            if should_stop():
                return []
            found = self._call(batch)
            if isinstance(found, str):
                failed.update(batch)
            else:
                answers.update(zip(batch, found, strict=True))
        for texts in wanted if failed else ():
            own = [text for text in dict.fromkeys(texts) if text in failed and text not in answers]
            if own:
                found = self._call(own)
                answers.update(zip(own, [found] * len(own) if isinstance(found, str) else found, strict=True))
        return [[answers[text] for text in texts] for texts in wanted]

    def alone(self, text: Fields) -> Answer:
        """Return the answer to one text in a separate call, which is not counted."""
        counted = self.calls, self.texts_asked
        [[answer]] = self.ask([[text]])
        self.calls, self.texts_asked = counted
        return answer

    def _batches(self, texts: Iterable[Fields]) -> Iterator[list[Fields]]:
        """Yield texts of similar length, at most ``batch_size``, and no more padded than as many texts of ``LENGTH``."""
        batch: list[Fields] = []
        for text in sorted(texts, key=lambda text: (num_characters(text), text)):
            if batch and len(batch) >= min(self.batch_size, self.batch_size * LENGTH // max(num_characters(text), 1)):
                yield batch
                batch = []
            batch.append(text)
        if batch:
            yield batch

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
            kind = type(found).__name__ if array.dtype.kind == "O" else array.dtype
            return (
                f"{FAULT} must give an array {(len(batch), len(self.labels))} of floating-point probabilities, and gave {kind}"
            )
        if array.shape != (len(batch), len(self.labels)):
            return f"{FAULT} must give an array of shape {(len(batch), len(self.labels))}, and gave {array.shape}"
        rows = array.astype(np.float64)
        return [_checked(row) for row in rows.round(DECIMALS)]


def _checked(row: NDArray[np.float64]) -> Answer:
    if not np.isfinite(row).all():
        return f"{FAULT} gave a probability that is not finite"
    if (row < -_TOLERANCE).any() or abs(float(row.sum()) - 1.0) > _TOLERANCE:
        total, least = float(row.sum()), float(row.min())
        remedy = "if these are logits, say so by the option logits"
        if least >= 0.0 and abs(total - 1.0) <= _ROUNDED:
            remedy = "they seem to be rounded: normalise them, dividing each row by its sum"
        return f"{FAULT}'s numbers are no probabilities: sum {total:.4g}, least {least:.4g}; {remedy}"
    return row
