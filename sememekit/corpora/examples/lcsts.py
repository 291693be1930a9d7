"""LCSTS (Hu et al. 2015): short texts of Sina Weibo and their headlines, in the XML-like form in which it is given out."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, final

from sememekit.corpora.examples.rows import Opened, Row, numbered_lines
from sememekit.corpora.examples.sets import PairSet
from sememekit.errors import DataError
from sememekit.text.form import to_half_width
from sememekit.text.reading import FaultCounter

WORST: Final = 3
"""Pairs below this score are left out of valid and test, as the authors of the set advise."""

_FIELDS: Final = ("summary", "short_text")
_TAG: Final = re.compile(r"<(/?)([a-z_]+)(?: [^>]*)?>")


@final
class Lcsts(PairSet):
    """PART_I is train, PART_II valid, PART_III test; of the latter two, pairs of score 3 to 5 (Gu et al. 2018, appendix B)."""

    segmenters: ClassVar = ("jieba", "characters", "fmm", "sentencepiece", "none")
    normalisation = "full-width letters, digits, % . / to half width; white space to one blank"
    parts: ClassVar = ("PART_I.txt", "PART_II.txt", "PART_III.txt")
    part_begins: ClassVar = b"<doc"
    split_names: ClassVar = {"train": ("train", "i"), "valid": ("valid", "ii"), "test": ("test", "iii")}

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        (file,) = files
        for line, score, fields in _documents(file, faults):
            if split != "train":
                if score is None:
                    raise DataError(
                        f"{file.name}:{line}: no <human_label>; valid and test are PART_II and PART_III, which have scores, "
                        "and PART_I is train (--train FILE)"
                    )
                if score < WORST:
                    left_out[f"score below {WORST}"] += 1
                    continue
            source, target = (to_half_width(" ".join(fields[name].split())) for name in ("short_text", "summary"))
            yield Row(line, (source, target), None, (target,))


def _documents(file: Opened, faults: FaultCounter) -> Iterator[tuple[int, int | None, dict[str, str]]]:
    """(line, score, fields) of every ``<doc>``."""
    opened = 0  # line of the <doc> that is open
    score: int | None = None
    fields: dict[str, str] = {}
    inside = ""  # the field that is open
    number = 0
    for number, text in numbered_lines(file, faults):
        where, position = f"{file.name}:{number}", 0
        for found in [*_TAG.finditer(text), None]:
            between = text[position : found.start() if found else None].strip()
            if between and inside == "human_label":
                if between not in ("1", "2", "3", "4", "5"):
                    raise DataError(f"{where}: unknown score {between[:20]!r}; allowed are 1, 2, 3, 4, 5")
                score = int(between)
            elif between and inside:
                fields[inside] = f"{fields[inside]} {between}".strip()
            elif between:
                raise DataError(
                    f"{where}: text outside <summary> and <short_text>: {between[:40]!r}; is this a PART file of LCSTS?"
                )
            if found is None:
                break
            position = found.end()
            closes, tag = bool(found[1]), found[2]
            if tag == "doc" and not closes:
                if opened:
                    raise DataError(f"{where}: <doc> within the <doc> of line {opened}")
                opened, score, fields = number, None, {}
            elif not opened:
                raise DataError(f"{where}: <{found[1]}{tag}> outside a <doc>")
            elif tag == "doc":
                missing = [field for field in _FIELDS if field not in fields]
                if missing or inside:
                    raise DataError(f"{file.name}:{opened}: the <doc> has no {f'</{inside}>' if inside else f'<{missing[0]}>'}")
                yield opened, score, fields
                opened = 0
            elif closes != (inside == tag) or (inside and not closes) or tag not in (*_FIELDS, "human_label"):
                allowed = f"</{inside}>" if inside else "<human_label>, <summary>, <short_text>, </doc>"
                raise DataError(f"{where}: <{found[1]}{tag}> is not expected here; allowed: {allowed}")
            elif closes:
                inside = ""
            else:
                inside = tag
                if tag in _FIELDS:
                    fields[tag] = ""
    if opened:
        raise DataError(f"{file.name}:{opened}: the <doc> is not closed at the end of the file, line {number}")
