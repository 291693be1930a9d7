"""A run as the segmenter of an attack: a lattice model that finds words, or the segmenter of a run's data."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, final

from sememekit.attack import Cutter
from sememekit.errors import ConfigError
from sememekit.runs.lattices import LatticeReader, segment_lines
from sememekit.runs.run import Run
from sememekit.tasks.lattice.model import Lattice

CUTS_WORDS: Final = ("characters", "fmm", "jieba")
"""Segmenters whose words are the text from left to right. Those of English change it, and SentencePiece cuts below words."""


@final
class LatticeCutter:
    """Cuts a text by the best path of a lattice model, whose ``weights`` are a SHA-256. Texts are kept in memory, since an
    attack cuts each several times; those given ``ahead`` go through the model together, which is many times quicker than one by
    one."""

    def __init__(self, reader: LatticeReader, weights: str) -> None:
        self.weights = weights
        self._reader = reader
        self._words: dict[str, list[str]] = {}

    def ahead(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._words]
        self._words |= zip(new, segment_lines(self._reader, new), strict=True)

    def __call__(self, text: str) -> list[str]:
        self.ahead([text])
        return self._words[text]


def run_cutter(path: Path, lexicon: str = "") -> tuple[Cutter, str]:
    """What cuts texts into the words that may be replaced, and the same in words.

    A lattice model of characters or pieces cuts by its best path; of another run the segmenter of its data cuts. Raises
    ConfigError: words are given besides, or the run reads text cut by blanks or into pieces. Raises CheckpointError: no run.
    """
    if lexicon:
        raise ConfigError(f"--lexicon {lexicon}: the run {path} has its own words; leave --lexicon out")
    run = Run.open(path)
    if isinstance(run.task, Lattice):
        reader = LatticeReader(run, run.task, run.segmenter())
        if reader.finds_words:
            return LatticeCutter(reader, run.weights_sha256), f"the lattice model {path}, {run.snapshot}"
    name = str(run.signature.options.get("segmenter"))
    if name not in CUTS_WORDS and ":" not in name:
        raise ConfigError(
            f"--segmenter {path}: the run reads text cut by: {run.signature.segmenter}; give a lattice model of characters, or "
            "a run on text cut by jieba, fmm or characters"
        )
    own = run.segmenter()
    return own.segment, f"the segmenter of {path}: {own.description}"
