"""The reports of ``sememekit lookup`` as lines and tables."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sememekit.reports.table import Parts, Table, fields
from sememekit.sememes.lookup import AnnotationReport, ChangeReport, CheckReport, DefinitionTree, LookupReport
from sememekit.sememes.searching import DiffReport, DumpReport, PairsReport, SearchReport
from sememekit.sememes.suggesting import SuggestReport


def parts(report: Any, top: int = 20) -> Parts:
    """Yield lines and tables of a report, with the first ``top`` rows of long lists."""
    return _diff(report, top) if isinstance(report, DiffReport) else _VIEWS[type(report)](report)


def _pairs(report: PairsReport) -> Parts:
    with_gold = any(pair.gold is not None for pair in report.pairs)
    rows = []
    for pair in report.pairs:
        sememes = (" ".join(f"[{name}]" if name in pair.shared else name for name in one) for one in pair.sememes)
        rows.append((pair.first, pair.second, f"{pair.similarity:.2f}", *((pair.gold,) if with_gold else ()), *sememes))
    columns = ("", "", "similarity", *(("gold",) if with_gold else ()), "sememes of the first", "of the second")
    yield Table(columns, rows, f"Similarity of the best pair of senses ({', '.join(report.sources)})", numbers=())
    if report.unknown:
        named = ", ".join(f"{first} {second}" for first, second in report.unknown[:5])
        yield f"{len(report.unknown):,} pairs have a word without sememes: {named}"
    if report.spearman is not None:
        yield f"Spearman's rho over {report.judged:,} pairs: {report.spearman:.3f}"
    elif report.judged:
        why = "that is fewer than three" if report.judged < 3 else "their judgements or their similarities are all equal"
        yield f"no Spearman's rho over {report.judged:,} pairs: {why}"


def _annotation(report: AnnotationReport) -> Parts:
    rows = [(f"{report.word}#{each.sense}", each.label, " ".join(each.sememes)) for each in report.senses]
    changed = "" if report.overlay is None else f" with {report.overlay}"
    title = f"{report.word} in {report.graph}{changed} ({report.source})"
    yield Table(("sense", "label", "sememes"), rows, title, numbers=())


def _found(report: SearchReport) -> Parts:
    alike = any(sense.similarity is not None for sense in report.senses)
    rows = []
    for sense in report.senses:
        similarity = () if sense.similarity is None else (f"{sense.similarity:.2f}",)
        sememes = " ".join(f"[{name}]" if name in sense.shared else name for name in sense.sememes)
        rows.append((sense.word, *similarity, sense.part_of_speech, sense.gloss, sememes))
    columns = ("word", *(("similarity",) if alike else ()), "part of speech", "gloss", "sememes")
    listed = len({sense.word for sense in report.senses})
    yield Table(columns, rows, f"{' '.join(report.asked)}: {report.num_words:,} words, {listed:,} listed", numbers=())


def _diff(report: DiffReport, top: int) -> Parts:
    rows = [(name, *getattr(report, name)) for name in ("words", "senses", "sememes")]
    only = (len(report.sememes_first_only), len(report.sememes_second_only))
    rows += [("words of it alone", report.num_first_only, report.num_second_only), ("sememes of it alone", *only)]
    yield Table(("", report.first, report.second), rows, numbers=(1, 2))
    yield f"words in both: {report.num_same:,} with the same sememes, {report.num_changed:,} with others"
    changed = [(each.word, "; ".join(each.first_only), "; ".join(each.second_only)) for each in report.changed[:top]]
    if changed:
        yield Table(("word", report.first, report.second), changed, f"the first {len(changed):,}", numbers=())


def _changed(report: ChangeReport) -> Parts:
    yield f"{report.word}#{report.sense}: {' '.join(report.before)} -> {' '.join(report.after)}"
    yield f"{report.overlay}: {report.changes} change{'s' if report.changes > 1 else ''}"


def _checked(report: CheckReport) -> Parts:
    yield from (f"{fault.place}: {fault.message}" for fault in report.faults)
    yield fields(f"The open lexicon in {report.folder}", report, skip=("folder", "faults", "files"))


def _suggested(report: SuggestReport) -> Parts:
    rows = [
        (one.word if place == 0 else "", found.sememe, f"{found.score:.2f}", "; ".join(found.evidence))
        for one in report.words
        for place, found in enumerate(one.sememes)
    ]
    title = f"Suggested by {' and '.join(report.methods)} out of {', '.join(report.sources)}"
    yield Table(("word", "sememe", "score", "evidence"), rows, title, numbers=())


def _looked_up(report: LookupReport) -> Parts:
    if report.senses:
        yield report.word
    for sense in report.senses:
        last = sense is report.senses[-1]
        labels = " ".join(part for part in (sense.part_of_speech, sense.gloss, f"({sense.source})") if part)
        nodes = sense.tree or tuple(DefinitionTree(sememe=name, relation="", children=()) for name in sense.sememes)
        yield f"{'└── ' if last else '├── '}{labels}"
        yield from _branches(nodes, "    " if last else "│   ")


def _branches(nodes: tuple[DefinitionTree, ...], indent: str) -> Iterator[str]:
    """The lines of a tree below a line that begins with ``indent``."""
    for node in nodes:
        last = node is nodes[-1]
        yield f"{indent}{'└── ' if last else '├── '}{f'{node.relation} = ' if node.relation else ''}{node.sememe}"
        yield from _branches(node.children, indent + ("    " if last else "│   "))


_VIEWS: Final[Mapping[type[Any], Callable[[Any], Parts]]] = {
    PairsReport: _pairs,
    AnnotationReport: _annotation,
    SearchReport: _found,
    DumpReport: lambda report: iter([f"{report.file}: {report.words:,} words, {report.senses:,} senses"]),
    ChangeReport: _changed,
    CheckReport: _checked,
    SuggestReport: _suggested,
    LookupReport: _looked_up,
}
