"""The language model of an attack (``--lm``), for constraints and the report."""

from collections.abc import Sequence
from pathlib import Path

from sememekit.errors import ConfigError
from sememekit.runs.run import Run
from sememekit.runs.stream_nats import stream_nats, with_context
from sememekit.tasks.base import WordPredictor, require

_AT_ONCE = 256


class AttackLanguageModel:
    """A run that gives the nats of each prediction of a sentence, for constraints and the report.

    Words are segmented further like the model's text (characters, fmm, jieba); unknown words are tried in lower case.
    ``identity`` is for ``attack.json``: name of the run, snapshot, and SHA-256 of the weights. Raises ConfigError: a run that
    predicts no words, or a run on SentencePiece pieces."""

    def __init__(self, run: Run | Path | str, device: str = "auto") -> None:
        loaded = run if isinstance(run, Run) else Run.open(Path(run), device=device)
        self._task = require(loaded.task, WordPredictor, "attack --lm")
        self._end = loaded.vocabulary.end_id if loaded.signature.end_of_sentence else None
        self._vocabulary, self._form = loaded.vocabulary, loaded.form()
        self.identity = {"run": str(loaded.path), "snapshot": loaded.snapshot, "weights": loaded.weights_sha256}
        cut_by = loaded.signature.options.get("segmenter")
        if cut_by == "sentencepiece":
            raise ConfigError(
                f"attack --lm {run}: its text is of SentencePiece pieces, which depend on the blanks of a text; give a model "
                "of words or characters, of data by: sememekit preprocess plain TEXT --segmenter jieba --out DATA"
            )
        self._segmenter = None if cut_by == "none" else loaded.segmenter()

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the losses of each sentence's predictions in nats; the end counts if sentences of the model end."""
        streams = [with_context(self._ids(words), self._end) for words in sentences]
        order = sorted(range(len(streams)), key=lambda index: -len(streams[index]))
        found: dict[int, list[float]] = {}
        for begin in range(0, len(order), _AT_ONCE):
            part = order[begin : begin + _AT_ONCE]
            found |= zip(part, stream_nats(self._task, [streams[index] for index in part])[0], strict=True)
        return [found[index] for index in range(len(streams))]

    def _ids(self, words: Sequence[str]) -> list[int]:
        if self._segmenter is None:
            formed = [self._form.word(word) for word in words]
        else:
            formed = [piece for word in words for piece in self._form.cut(word, self._segmenter)]
        ids = self._vocabulary.encode(word if word in self._vocabulary else word.lower() for word in formed).tolist()
        return [*ids, self._end] if self._end is not None else ids
