"""LCSTS (Hu et al. 2015): short texts of Sina Weibo and their headlines, in the released XML-like format."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, final

from sememekit.corpora.examples.rows import Opened, Row, numbered_lines
from sememekit.corpora.examples.sets import PairSet
from sememekit.errors import DataError
from sememekit.text.form import to_half_width
from sememekit.text.reading import FaultCounter

WORST: Final = 3  # pairs below this score are left out of valid and test, as the authors of the set advise

_DOCUMENT: Final = re.compile(
    r"\s*<doc[^>]*>\s*(?:<human_label>\s*([1-5])\s*</human_label>\s*)?"
    r"<summary>(.*)</summary>\s*<short_text>(.*)</short_text>\s*</doc>\s*",
    re.DOTALL,
)
_FORM: Final = "<doc>, <human_label> of 1 to 5 in valid and test, <summary>, <short_text> and </doc>"


@final
class Lcsts(PairSet):
    """PART_I is train, PART_II valid, PART_III test; valid and test have pairs of score 3 to 5 (Gu et al. 2018, appendix B)."""

    segmenters: ClassVar = ("jieba", "characters", "fmm", "sentencepiece", "none")
    normalisation = "full-width letters, digits, % . / to half width; white space to one blank"
    parts: ClassVar = ("PART_I.txt", "PART_II.txt", "PART_III.txt")
    part_begins: ClassVar = b"<doc"
    split_names: ClassVar = {"train": ("train", "i"), "valid": ("valid", "ii"), "test": ("test", "iii")}

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        (file,) = files
        for line, (score, *fields) in _documents(file, faults):
            if split != "train":
                if score is None:
                    raise DataError(
                        f"{file.name}:{line}: no <human_label>; valid and test are PART_II and PART_III, which have scores, "
                        "and PART_I is train (--train FILE)"
                    )
                if int(score) < WORST:
                    left_out[f"score below {WORST}"] += 1
                    continue
            target, source = (to_half_width(" ".join(text.split())) for text in fields)
            yield Row(line, (source, target), None, (target,))


def _documents(file: Opened, faults: FaultCounter) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield line, score (None without one), headline and text of every ``<doc>``; its tags begin and end a line."""
    begun, lines = 0, list[str]()
    for number, text in numbered_lines(file, faults):
        if not lines and not text.strip():
            continue
        if text.lstrip().startswith("<doc") == bool(lines):
            why = f"the <doc> of line {begun} is not closed" if lines else "text outside a <doc>"
            raise DataError(f"{file.name}:{number}: {why}; a PART file of LCSTS has {_FORM}")
        begun = begun or number
        lines.append(text)
        if text.rstrip().endswith("</doc>"):
            if (found := _DOCUMENT.fullmatch("\n".join(lines))) is None:
                raise DataError(f"{file.name}:{begun}: this <doc> is of another form; a PART file of LCSTS has {_FORM}")
            yield begun, found.groups()
            begun, lines = 0, []
    if lines:
        raise DataError(f"{file.name}:{begun}: the <doc> is not closed at the end of the file")
