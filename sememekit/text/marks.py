"""Words of a Chinese text by rule: numbers, Latin letters and punctuation marks."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

_NUMBER: Final = r"[0-9０-９\u2160-\u2179%％.．+＋＞∶‰㈨℃]+"
_LATIN: Final = r"[A-Za-zＡ-Ｚａ-ｚ\u03b1-\u03d0＆]+"
_CHINESE: Final = r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ceaf\U0002f800-\U0002fa1f○]+"
_STRETCH: Final = re.compile(rf"(?P<mark>{_NUMBER}|{_LATIN})|(?P<text>{_CHINESE})|(?P<sign>\S)(?P=sign)*")


def split_marks(text: str) -> list[tuple[str, bool]]:
    """Split a text at white space and marks; return the parts, and whether each is a mark.

    A mark is a run of digits with their signs, a run of Latin or Greek letters, or a punctuation mark, a repeated one such as
    ``——`` together; the classes of characters follow Sun and Deng 2018 (``codes/tokenization.py`` of its release), with
    the narrow ``%`` beside the wide one.

    >>> split_marks("１９９８年，ＷＴＯ——")
    [('１９９８', True), ('年', False), ('，', True), ('ＷＴＯ', True), ('——', True)]
    """
    return [(match[0], match["text"] is None) for match in _STRETCH.finditer("".join(text.split()))]


def with_marks(text: str, words: Iterable[str]) -> list[str]:
    """Return the segmentation ``words`` of ``text`` with every mark as one word, and no word across its edges."""
    ends, place = set(), 0
    for word in words:
        place += len(word)
        ends.add(place)
    place = 0
    for stretch, is_mark in split_marks(text):
        ends.add(place)
        if is_mark:
            ends -= set(range(place + 1, place + len(stretch)))
        place += len(stretch)
        ends.add(place)
    cuts = sorted(ends | {0})
    bare = "".join(text.split())
    return [bare[begin:end] for begin, end in pairwise(cuts)]
