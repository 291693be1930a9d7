"""``sememekit eval --baseline lead``: the lead baseline of headline generation; ``sememekit baseline`` is its earlier name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememekit.commands._options import Json, Split, Texts, option
from sememekit.commands._printing import in_per_cent, print_json, print_table, say
from sememekit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from sememekit.analysis.lead_baseline import BaselineReport

EXAMPLES = ("sememekit eval data/headlines --baseline lead --lead 15-characters",)

Lead = Annotated[
    str | None,
    option("--lead", "With --baseline: N-words, N-bytes or N-characters (default: by data set).", metavar="N-UNIT"),
]
Rouge = Annotated[
    list[str] | None,
    option("--rouge", "With --baseline: gigaword, duc, lcsts-characters or lcsts-words; may be repeated."),
]


def command(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Folder of prepared pairs.")],
    split: Split = "test",
    lead: Lead = None,
    rouge: Rouge = None,
    texts: Texts = None,
    json: Json = False,
) -> None:
    """ROUGE of the beginning of each source as a headline: the lead baseline."""
    report = baseline(data, split=split, lead=lead, rouge_by=rouge or (), texts=texts)
    if json:
        print_json(report)
        return
    rows = [
        (f"{metric} ({scores.name})", *in_per_cent((found.value, found.low, found.high)))
        for scores in report.scores
        for metric, found in (("ROUGE-1", scores.rouge1), ("ROUGE-2", scores.rouge2), ("ROUGE-L", scores.rougeL))
    ]
    title = f"The first {report.lead.replace('-', ' ')} of {report.examples:,} sources ({data}, {report.split}), in per cent"
    print_table(title, ("", "score", "from", "to"), rows)
    for scores in report.scores:
        say(scores.signature)


def baseline(
    data: Path, *, split: str = "test", lead: str | None = None, rouge_by: Sequence[str] = (), texts: Path | None = None
) -> BaselineReport:
    """Score the beginnings of the sources as if they were headlines; arguments as ``sememekit eval --help``.

    ``lead`` counts words as the data were cut, and characters without white space. ``rouge_by`` are names of
    :data:`sememekit.measure.rouge.PRESETS`, none for those of the data set. Raises ConfigError: for another lead or preset, or
    none where the data set has no default. Raises DataError: the data are absent, are no pairs, or lack the split.
    """
    from sememekit.analysis.lead_baseline import LEADS, BaselineReport, lead_of, presets_for, text_scores
    from sememekit.analysis.written_texts import write_texts_file
    from sememekit.data.prepared import PreparedData
    from sememekit.measure.rouge import PRESETS, rouge

    prepared = PreparedData.open(data)
    dataset = prepared.signature.dataset
    originals = prepared.examples(split).originals if prepared.signature.examples is not None else None
    if originals is None:
        raise DataError(
            f"{data}: {dataset} has no references; prepare pairs with: sememekit preprocess "
            "gigaword|lcsts|duc|peoples-daily-headlines SOURCE --out DIR"
        )
    chosen = lead or LEADS.get(dataset)
    if chosen is None:
        raise ConfigError(f"--lead is missing: {dataset} has no default; give N-words, N-bytes or N-characters")
    names = presets_for(dataset, rouge_by)
    pairs = list(originals)
    leads = [lead_of(pair.source, chosen) for pair in pairs]
    references = [list(pair.references) for pair in pairs]
    if texts is not None:
        write_texts_file(texts, [" ".join(pair.source) for pair in pairs], [[lead] for lead in leads], references)
    scores = tuple(text_scores(name, rouge(leads, references, PRESETS[name])) for name in names)
    return BaselineReport(data=str(data), split=split, lead=chosen, examples=len(pairs), scores=scores)
