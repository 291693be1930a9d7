"""Coverage of a graph, and averages over its senses and sememes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sememekit.config import Record
from sememekit.errors import ConfigError, GraphError
from sememekit.files import warn
from sememekit.sememes.definitions import ROOT
from sememekit.sememes.graph import SememeGraph
from sememekit.sememes.lexicon import Lexicon, LexiconReport
from sememekit.sememes.overlay import ChangedSense, near
from sememekit.sememes.word_entry import Source
from sememekit.text.vocabulary import END, STOP

_UNPLACED: Final = "no structure"
_DEPTHS: Final = (_UNPLACED, ROOT, "depth 1", "depth 2", "depth 3 or more")


class GraphStatistics(Record):
    """Coverage of a graph, with averages over annotated words and their senses; rules count as annotation.

    Gu et al. 2018, Sec. 3.3, on People's Daily with HowNet: 3.4 sememes a word, 22 senses a sememe."""

    words: int
    senses: int
    sememes: int
    sememe_sets: int
    edges: int
    """Number of pairs of a sense and a sememe."""
    edges_with_structure: int
    """Edges whose depth and role in the definition of the sense are known; 0 where no lexicon has definitions."""
    edges_by_depth: dict[str, int]
    """Edges by the depth of the sememe in the definition; empty without structure."""
    edges_by_role: dict[str, int]
    """Edges by the role of the sememe in the definition, most first; empty without structure."""
    tokens: int
    """Number of tokens by the counts of the vocabulary; for pairs, of the predicted tokens."""
    annotated_words: int
    unannotated_words: int
    annotated_tokens: int
    type_coverage: float
    """Share of words that are annotated, 0 to 1."""
    token_coverage: float
    """Share of tokens whose word is annotated."""
    lexicon_coverage: float
    """Share of tokens (without sentence ends) whose word a lexicon knows; an encoder reads sememes for these tokens."""
    senses_per_word: float
    sememes_per_sense: float
    sememes_per_word: float
    """Distinct sememes of all senses of a word, averaged over words."""
    senses_per_sememe: float
    words_with_one_sense: int
    words_by_source: dict[str, int]
    """Counts by lexicon or rule, and "none"."""
    tokens_by_source: dict[str, int]
    words_without_annotation: tuple[str, ...]
    """Most frequent first, then by spelling."""


class LexiconUse(Record):
    """One ``--source`` of a graph: its report, and the numbers of words and tokens with senses from this source."""

    source: str
    name: str
    sha256: str
    report: LexiconReport
    words_used: int
    tokens_used: int


class GraphReport(Record):
    """The result of ``build-sememe-graph``."""

    out: str
    fingerprint: str
    vocabulary_fingerprint: str
    lexicons: tuple[LexiconUse, ...]
    statistics: GraphStatistics
    history: tuple[str, ...]
    """Remarks: words known by their lemma, edges dropped."""


def source_remarks(uses: Sequence[LexiconUse], lexicons: Sequence[Lexicon], by_hand: Sequence[bool]) -> list[str]:
    """Return remarks on sources that gave no word, and on sememes that other sources spell differently."""
    remarks = [
        f"{use.source}: no word has its senses from it: sources before it know them all, or it has none; leave it out, or name "
        "it first"
        for use in uses
        if not use.words_used
    ]
    names = [{name for word in one.words for sense in one.senses(word) for name in sense.sememes} for one in lexicons]
    for use, own, hand in zip(uses, names, by_hand, strict=True):
        others = set[str]().union(*(other for other in names if other is not own))
        alone = sorted(own - others) if hand else []
        like = [name + found for name in alone[:200] if (found := near(name, others))][:3]  # compares 200 at most
        if like:
            told = f"{len(alone):,} of its {len(own):,} sememes are in no other source, so that no word of these shares them"
            remarks.append(f"{use.source}: {told}; see whether others spell them otherwise: {', '.join(like)}")
    return remarks


def graph_statistics(graph: SememeGraph, counts: Sequence[int] | NDArray[np.integer]) -> GraphStatistics:
    """Coverage and averages of a graph of V words; ``counts`` (V,) follow ``graph.words``. GraphError: they are not V."""
    counts = np.asarray(counts, dtype=np.int64)
    if counts.shape != (graph.num_words,):
        raise GraphError(f"statistics need one count for each of the {graph.num_words} words, given shape {counts.shape}")
    annotated = graph.annotated
    senses_of_word = np.diff(graph.sense_offsets)
    sense_sizes = np.diff(graph.set_offsets)[graph.sense_set]
    of_annotated = annotated[graph.word_of_sense]
    entries = list(graph.entries())
    bags = [entry.sememes() for entry in entries if entry.is_annotated]
    names = [lexicon.name for lexicon in graph.lexicons] + [*Source.RULES, Source.NONE]
    of_source = {name: np.array([source == name for source in graph.word_sources]) for name in names}
    without = [(-count, word) for word, count, has in zip(graph.words, counts.tolist(), annotated, strict=True) if not has]
    num_annotated = int(annotated.sum())
    words = np.array([word not in (END, STOP) for word in graph.words])
    places = [place for entry in entries for one in entry.senses for _, place in one.edges()]
    placed = places if graph.has_structure else []
    by_depth = Counter(_UNPLACED if place is None else _DEPTHS[min(place.depth + 1, len(_DEPTHS) - 1)] for place in placed)
    by_role = Counter(_UNPLACED if place is None else place.role for place in placed)
    return GraphStatistics(
        words=graph.num_words,
        senses=graph.num_senses,
        sememes=graph.num_sememes,
        sememe_sets=graph.num_sets,
        edges=int(sense_sizes.sum()),
        edges_with_structure=sum(place is not None for place in places),
        edges_by_depth={name: by_depth[name] for name in _DEPTHS if by_depth[name]},
        edges_by_role=dict(sorted(by_role.items(), key=lambda one: (-one[1], one[0] != _UNPLACED, one[0] != ROOT, one[0]))),
        tokens=int(counts.sum()),
        annotated_words=num_annotated,
        unannotated_words=graph.num_words - num_annotated,
        annotated_tokens=int(counts[annotated].sum()),
        type_coverage=_ratio(num_annotated, graph.num_words),
        token_coverage=_ratio(counts[annotated].sum(), counts.sum()),
        lexicon_coverage=_ratio(counts[graph.from_lexicon & words].sum(), counts[words].sum()),
        senses_per_word=_ratio(senses_of_word[annotated].sum(), num_annotated),
        sememes_per_sense=_ratio(sense_sizes[of_annotated].sum(), of_annotated.sum()),
        sememes_per_word=_ratio(sum(map(len, bags)), num_annotated),
        senses_per_sememe=_ratio(sense_sizes[of_annotated].sum(), len(set().union(*bags))),
        words_with_one_sense=int((senses_of_word[annotated] == 1).sum()),
        words_by_source={name: int(there.sum()) for name, there in of_source.items()},
        tokens_by_source={name: int(counts[there].sum()) for name, there in of_source.items()},
        words_without_annotation=tuple(word for _, word in sorted(without)),
    )


def _ratio(part: float | np.integer, whole: float | np.integer) -> float:
    return float(part) / float(whole) if whole else 0.0


FEW: Final = 20  # the gate of a sememe with fewer tokens than this is hardly trained


def counts_of_added(
    graph: SememeGraph, counts: NDArray[np.integer], senses: Iterable[ChangedSense], overlay: Path, where: Path
) -> dict[str, int]:
    """Return sememe -> tokens that had it before, by the ``counts`` (V,), for the sememes that an overlay adds to ``senses``; a
    RunWarning names sememes below ``FEW``. ``overlay`` and ``where`` are the file and the run, for messages.
    Raises ConfigError: no token has the sememe at all."""
    every = dict(zip(graph.sememes, sememe_counts(graph, counts).tolist(), strict=True))
    found = {name: every[name] for name in sorted({name for sense in senses for name in sense.added})}
    for name, count in found.items():
        if not count:
            raise ConfigError(
                f"--overlay {overlay}: no word with the sememe {name!r} occurs in the text that the vocabulary of {where} was "
                "counted in, so its gate was trained on no example of it; take another sememe"
            )
        if count < FEW:
            times = "once" if count == 1 else f"{count} times"
            warn(
                f"words with the sememe {name} occur only {times} in the text that the vocabulary of {where} was counted in: "
                "its gate was trained on few examples, so its figures are uncertain"
            )
    return found


def sememe_counts(graph: SememeGraph, counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return (K,) the tokens, by ``counts`` (V,), whose word has the sememe in any sense."""
    words, sememes = word_sememes(graph)
    weights = np.asarray(counts, dtype=np.float64)[words]
    return np.bincount(sememes, weights, minlength=graph.num_sememes).astype(np.int64)


def word_sememes(graph: SememeGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every pair of a word and a sememe of any of its senses, once: words (n,), rising, and sememes (n,), rising in a word."""
    sense, sememe = graph.edges()
    keys = np.unique(graph.word_of_sense[sense] * graph.num_sememes + sememe)
    return keys // graph.num_sememes, keys % graph.num_sememes
