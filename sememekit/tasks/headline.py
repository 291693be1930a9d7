"""Headlines: a short text that says what a longer one is about."""

from __future__ import annotations

from typing import ClassVar, Literal, final

from sememekit.tasks.seq2seq import SequenceToSequence


@final
class HeadlineWriter(SequenceToSequence):
    """Headline generation (Sec. 4.2, Gu et al. 2018; Sec. 5, Shen et al. 2017): from an article or its first sentence."""

    judged_by: ClassVar[Literal["rouge", "bleu"]] = "rouge"

    class Settings(SequenceToSequence.Settings):
        """Settings of headline generation."""
