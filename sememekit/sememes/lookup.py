"""Reports of ``lookup``: senses of a word in lexicons or a graph, changes by an overlay, and faults of the open lexicon."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sememekit.config import Record, resources_folder
from sememekit.errors import ConfigError, DataError, GraphError
from sememekit.files import OVERLAY, check_output
from sememekit.sememes import Sense, Side, build_graph, open_lexicons
from sememekit.sememes.building import spellings
from sememekit.sememes.definitions import DefinitionNode, parse_definition
from sememekit.sememes.formats.open_lexicon import MAX_SEMEMES, Fault, scan_open_lexicon
from sememekit.sememes.graph import graph_at
from sememekit.sememes.overlay import (
    ChangedSense,
    apply_changes,
    near,
    near_spellings,
    parse_change,
    read_overlay,
    write_overlay,
)
from sememekit.sememes.special_tokens import SpecialTokens
from sememekit.sememes.statistics import counts_of_added
from sememekit.sememes.word_entry import Source
from sememekit.text.scripts import traditional_hint
from sememekit.text.vocabulary import Vocabulary


class DefinitionTree(Record):
    """One node of a DEF: ``relation`` is its relation to its parent (``agent``, ``#``, or empty)."""

    relation: str
    sememe: str
    """``english|中文``; a sign such as ``~`` that refers to another node; or empty for a bracket around several nodes."""
    children: "tuple[DefinitionTree, ...]" = ()


class LookupSense(Record):
    """One sense in one lexicon."""

    source: str
    """``format:file``, or "special token"."""
    word: str
    """The word as the lexicon spells it; a full-width word may be found in half width."""
    part_of_speech: str
    gloss: str
    sememes: tuple[str, ...]
    definition: str
    tree: tuple[DefinitionTree, ...]
    """Trees of the definition; empty if the lexicon has none."""
    definition_fault: str
    """Reason why the definition is not a tree, or empty."""
    gloss_zh: str = ""
    """Chinese gloss; empty if the lexicon has none."""
    example: str = ""
    """Words in which the sense is meant; empty if the lexicon has none."""


class LookupReport(Record):
    """The entries of a word in lexicons. A graph takes the senses from the first source in which the word has sememes."""

    word: str
    sources: tuple[str, ...]
    """The lexicons of the call."""
    senses: tuple[LookupSense, ...]
    nearest: tuple[str, ...]
    """Similar words of the lexicons, best first; only when the word is unknown."""


class CheckReport(Record):
    """The content of the open lexicon, and its faults."""

    folder: str
    ok: bool
    """True if there is no fault."""
    faults: tuple[Fault, ...]
    files: tuple[str, ...]
    entries: int
    words: int
    senses: int
    """Number of senses in a graph: entries of a word with different sememes."""
    sememes: int
    max_sememes: int
    incomplete: int
    """Entries without a Chinese gloss or an example."""
    unused_sememes: tuple[str, ...]
    """Sememes of the inventory without a sense; not listed for single files."""
    entries_by_part_of_speech: dict[str, int]


def lookup(word: str, sources: Sequence[str] = ("open",), *, side: Side = "chinese") -> LookupReport:
    """Look a word up in each lexicon; repeated entries are shown once.

    ASCII in half and full width is the same. Special tokens such as ``<N>`` have senses, too. Raises ConfigError, DataError: as
    ``open_lexicon``."""
    word = word.strip()
    lexicons = open_lexicons(sources, side)
    senses: list[LookupSense] = []
    special = SpecialTokens(lexicons).sememes_of(word)
    if special is not None:
        senses.append(_describe(Source.SPECIAL, Sense(word, special)))
    for lexicon in lexicons:
        for spelling in spellings(word):
            senses.extend(_describe(lexicon.name, sense) for sense in dict.fromkeys(lexicon.senses(spelling)))
    return LookupReport(
        word=word,
        sources=tuple(lexicon.name for lexicon in lexicons),
        senses=tuple(senses),
        nearest=() if senses else near_spellings(word, (other for lexicon in lexicons for other in lexicon.words)),
    )


def check_open_lexicon(*paths: Path) -> CheckReport:
    """Read open lexicons, folders or single files (default: sememekit's own, Chinese and English), and list all faults.

    In a single file of ``zh`` or ``en``, words that other files of the language have are faults, too. Raises DataError: there
    is no such file or folder, no inventory, no file of entries, or a file is not UTF-8."""
    home = resources_folder() / "lexicon"
    given, paths = paths, tuple(path.absolute() if path.is_file() else path for path in paths)
    scans = [scan_open_lexicon(path) for path in paths or (Path("zh"), home / "en")]
    faults = {(fault.place, fault.message): fault for scan in scans for fault in scan.faults}
    for path in paths:
        if path.is_file():
            around = path.parent
            of_zh = Path("zh") if around.parent == home else around.parent
            whole = scan_open_lexicon(of_zh if around.name == "zh" else around)
            faults |= {
                (one.place, one.message): one for one in whole.faults if Path(one.place.rpartition(":")[0]).name == path.name
            }
    senses = [sense for scan in scans for sense in scan.senses]
    used = {name for sense in senses for name in sense.sememes}
    return CheckReport(
        folder=" ".join(map(str, given)) or str(home),
        ok=not faults,
        faults=tuple(faults.values()),
        files=tuple(file.name for scan in scans for file in scan.files),
        entries=len(senses),
        words=len({sense.word for sense in senses}),
        senses=len({(sense.word, sense.sememes) for sense in senses}),
        sememes=len(scans[0].inventory),
        max_sememes=MAX_SEMEMES,
        incomplete=sum(not (sense.gloss_zh and sense.example) for sense in senses),
        unused_sememes=() if any(map(Path.is_file, paths)) else tuple(name for name in scans[0].inventory if name not in used),
        entries_by_part_of_speech=dict(sorted(Counter(sense.part_of_speech for sense in senses).items())),
    )


def _describe(source: str, sense: Sense) -> LookupSense:
    tree: tuple[DefinitionTree, ...] = ()
    fault = ""
    if sense.definition:
        try:
            tree = tuple(_tree(node) for node in parse_definition(sense.definition))
        except DataError as error:
            fault = str(error)
    return LookupSense(source=source, tree=tree, definition_fault=fault, **vars(sense))


def _tree(node: DefinitionNode) -> DefinitionTree:
    """Convert a node: a sign ``~`` or ``?`` becomes the sememe of a node without a name, otherwise a part of the relation."""
    has_name = bool(node.sememe) or node.is_group
    relation = " ".join(part for part in (node.relation, node.marks if has_name else "") if part)
    return DefinitionTree(
        relation=relation,
        sememe=node.sememe if has_name else node.marks,
        children=tuple(_tree(child) for child in node.children),
    )


class GraphSense(Record):
    """One sense in a graph."""

    sense: int
    """The number of the sense among the senses of the word, from 1: WORD#NUMBER in an overlay."""
    label: str
    """Parts of speech and glosses from the lexicon, or else the sememes."""
    sememes: tuple[str, ...]
    """The sememes of the sense."""


class AnnotationReport(Record):
    """The annotation of a word in a graph."""

    word: str
    graph: str
    overlay: str | None
    """The changes of the overlay."""
    source: str
    """The lexicon or rule that gave the senses; "none" for an unannotated word, whose one sense is ``<unk>``."""
    senses: tuple[GraphSense, ...]


class ChangeReport(ChangedSense):
    """A change that was added to an overlay; ``before`` has the changes that the file had before."""

    overlay: str
    changes: int
    """Number of changes in the file now."""
    checked_with: str
    """The graph or lexicons of the senses."""


def annotation(word: str, graph: Path, overlay: Path | None = None) -> AnnotationReport:
    """Return the numbered senses of a word in a graph (a file, or a run's), with sememes and the changes of an overlay.

    Raises ConfigError, DataError, GraphError: the graph or the overlay cannot be used, or the graph does not have the word."""
    found = graph_at(graph)
    if overlay is not None:
        found, _, _ = apply_changes(found, read_overlay(overlay))
    word = next((form for form in spellings(word.strip()) if form in found.words), word.strip())
    if word not in found.words:
        told = f"{graph}: no word {word!r} in the graph{near(word, found.words)}; to ask a lexicon leave out --graph"
        raise GraphError(told + traditional_hint([word]))
    entry = found.entry(found.words.index(word))
    senses = enumerate(entry.senses, start=1)
    return AnnotationReport(
        word=word,
        graph=str(graph),
        overlay=None if overlay is None else str(overlay),
        source=entry.source,
        senses=tuple(GraphSense(sense=number, label=sense.label, sememes=sense.sememes) for number, sense in senses),
    )


def add_change(
    sense: str,
    text: str,
    overlay: Path,
    *,
    graph: Path | None = None,
    sources: Sequence[str] = ("open",),
    side: Side = "chinese",
) -> ChangeReport:
    """Check a change and append it to the overlay file.

    ``sense`` is ``WORD#NUMBER``, from 1, or ``WORD`` if it has one sense; ``text`` is ``+sememe -sememe``. Senses are numbered
    as in ``graph`` (a file or a run folder); without it, as in a graph of the ``sources``. A RunWarning names a sememe that the
    run hardly trained. Raises ConfigError, DataError, GraphError, with nothing written: the change, the file, the graph or a
    lexicon cannot be used, or the run never trained an added sememe."""
    new = parse_change(sense, text, f"--change {sense}")
    check_output(overlay, OVERLAY)
    earlier = read_overlay(overlay) if overlay.exists() and overlay.stat().st_size else ()
    if graph is not None:
        base, checked = graph_at(graph), str(graph)
    else:
        lexicons = open_lexicons(sources, side)
        base = build_graph(Vocabulary.from_counts({word: 1 for one in lexicons for word in one.words}), lexicons)
        checked = ", ".join(one.name for one in lexicons)
    try:
        before, _, _ = apply_changes(base, earlier)
    except (ConfigError, GraphError) as error:
        raise type(error)(f"{error}; the changes of another graph go into another file: --overlay FILE") from None
    _, (changed,), (spelled,) = apply_changes(before, [new])
    if graph is not None and graph.is_dir():
        counts_of_added(base, Vocabulary.load(graph / "vocabulary.tsv").counts, [changed], overlay, graph)
    write_overlay(overlay, [*earlier, spelled])
    return ChangeReport(**dict(changed), overlay=str(overlay), changes=len(earlier) + 1, checked_with=checked)
