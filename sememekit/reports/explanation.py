"""The explanations of ``sememekit explain``: pages, and tables for terminals; a section for each kind of run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sememekit.analysis.explanations.label import HOW, LabelExplanation
from sememekit.analysis.explanations.lattice import EmbeddingsReport, LatticeExplanation
from sememekit.analysis.explanations.sememes import ContextSememe
from sememekit.analysis.explanations.words import ChangedSememe, ChangedWord, Explanation, OverlayExplanation
from sememekit.analysis.explanations.written_text import ChangedPlace, OverlayWriting, RereadWord, WritingExplanation
from sememekit.figures import percent
from sememekit.reports import pages
from sememekit.reports.charts import Heatmap, chart
from sememekit.reports.table import Parts, Remark, Shown, Table, Views, share_bar

SHOWN: Final = 12  # most rows of changes by an overlay; --json has all


def words_page(explanation: Explanation) -> str:
    """Return a whole page for the next words of a language model."""
    tables = compared(explanation) if isinstance(explanation, OverlayExplanation) else asked_tables(explanation)
    return pages.render("explanation", explanation=explanation, remarks=pages.remarks("words", explanation), tables=tables)


def words_parts(explanation: Explanation) -> Parts:
    """Yield the context, the changes by an overlay, the next words with senses, the sememes, and the largest gates."""
    yield f"{' '.join(word.word for word in explanation.context)} …"
    yield from map(Remark, pages.remarks("words", explanation))
    if isinstance(explanation, OverlayExplanation):
        yield from compared(explanation)
        yield f"with {explanation.overlay}:"
    yield from asked_tables(explanation)
    if explanation.no_senses is not None:
        words = [(word.word, percent(word.probability), share_bar(word.probability)) for word in explanation.words]
        yield Table(("next word", "probability", ""), words, numbers={1})
        return
    heads = ("next word", "probability", "", "share", "", "sense", "sememes with their probability here")
    apart = [word.is_told_apart for word in explanation.words for _ in word.senses]
    yield Table(heads, _senses(explanation), numbers={1, 3}, faint={number for number, told in enumerate(apart) if not told})
    if explanation.expected:
        rows = []
        for item in explanation.expected:
            shares = (percent(item.mass), share_bar(item.mass), percent(item.mean, 2), percent(item.rise, sign="+"))
            rows.append((item.name, *shares, None if item.lift is None else f"{item.lift:,.1f}", item.count))
        title = "sememes that this context makes more probable, by their gain"
        heads = ("sememe", "probability", "", "mean", "gain", "lift", "tokens")
        yield Table(heads, rows, title, numbers={1, 3, 4, 5, 6}, faint=_rare(explanation.expected, explanation))
        grey = f"grey: fewer than {explanation.min_count} tokens have the sememe"
        yield Remark(f"probability: that the next word has the sememe; mean: {explanation.mean}; {grey}")
    for title, items in (
        ("largest gates (Table 5 of Gu et al. 2018)", explanation.sememes),
        ("largest change of a gate from an empty context", explanation.raised),
    ):
        gates = [(item.name, f"{item.gate:.2f}", share_bar(item.gate), f"{item.at_rest:.2f}", item.count) for item in items]
        columns = ("sememe", "gate", "", "empty", "tokens")
        yield Table(columns, gates, title, numbers={1, 3, 4}, faint=_rare(items, explanation))


def through_sememes(explanation: Explanation) -> list[Heatmap]:
    """Return the probability of each next word in senses with a sememe that the context raises; empty without senses."""
    names = tuple(item.name for item in explanation.expected or explanation.sememes)
    if not names:
        return []
    rows = []
    for word in explanation.words:
        shares = [(sense.share, {item.name for item in sense.sememes}) for sense in word.senses]
        rows.append(tuple(word.probability * sum(share for share, has in shares if name in has) for name in names))
    context = " ".join(word.word for word in explanation.context)
    title = f"Probability of the next words after {context} in their senses with each sememe"
    return [Heatmap(title, names, tuple(word.word for word in explanation.words), tuple(rows))]


def _senses(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    for word in explanation.words:
        cells = (word.word, percent(word.probability), share_bar(word.probability))
        for sense in word.senses:
            title, bar = sense.title if word.annotated else "no annotation", share_bar(sense.share, 1 / len(word.senses))
            yield (*cells, percent(sense.share, 0), bar, title, _levels(sense.sememes))
            cells = ("", "", "")


def _rare(items: Sequence[ContextSememe], explanation: Explanation) -> set[int]:
    return {number for number, item in enumerate(items) if item.count < explanation.min_count}


def _levels(sememes: Sequence[ContextSememe]) -> str:
    return "  ".join(f"{item.name} {percent(item.mass)}" for item in sememes)


def _largest(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> list[Table]:
    """Return a table of the largest changes by an overlay, its last columns numbers; no table without rows."""
    places, left_out = range(len(columns) - numbers, len(columns)), max(0, len(rows) - SHOWN)
    return [Table(columns, rows[:SHOWN], title, numbers=places, left_out=left_out)] if rows else []


def compared(explanation: OverlayExplanation) -> list[Table]:
    """Return words, senses and sememes with changed annotation, before and after the overlay; the largest changes first."""
    words = [
        (one.after.word, probability(one.before.probability), probability(one.after.probability), *_ranks(one))
        for one in explanation.changed_words
    ]
    order = {one.after.word: number for number, one in enumerate(explanation.changed_words)}
    senses = []
    for change in sorted(explanation.changes, key=lambda change: order[change.word]):
        if change.share_before is not None:
            shares = map(percent, (change.share_before, change.share_after))
            senses.append((f"{change.word}#{change.sense}", " ".join(change.before), " ".join(change.after), *shares))
    sememes = [
        (one.after.name, probability(one.before.mass), probability(one.after.mass), *_ranks(one))
        for one in explanation.changed_sememes
    ]
    sides = ("as trained", "with overlay", "rank as trained", "rank with overlay")
    heads = ("sense", "sememes as trained", "sememes with overlay", "share as trained", "share with overlay")
    return [
        *_largest("Probability of changed words", ("next word", *sides), words, 4),
        *_largest("Their changed senses", heads, senses, 2),
        *_largest("Sememes of these senses, ranked by rise", ("sememe", *sides), sememes, 4),
    ]


def asked_tables(explanation: Explanation) -> list[Table]:
    """Return the senses of the requested word, in the whole sentence and from the left context; none without a word."""
    asked = explanation.asked
    if asked is None:
        return []
    shares = {frozenset(item.name for item in sense.sememes): sense.share for sense in asked.word.senses}
    rows = [
        (str(one.number), " ".join(one.sememes), percent(one.probability), percent(shares[frozenset(one.sememes)]))
        for one in asked.tags
    ]
    place = f"rank {asked.rank:,} of the next words, {probability(asked.word.probability)}"
    title = "; ".join((f"Senses of {asked.word.word}, {place}", *asked.accuracy))
    return [Table(("sense", "sememes", "whole sentence", "share before it"), rows, title, numbers=(2, 3))]


def probability(value: float) -> str:
    """Format a probability with three digits, as single words rarely reach a tenth of a per cent."""
    return f"{100 * value:.3g} %"


def _ranks(one: ChangedWord | ChangedSememe | ChangedPlace) -> tuple[str, str]:
    return f"{one.rank_before:,}", f"{one.rank_after:,}"


def _probabilities(one: RereadWord | ChangedPlace) -> tuple[str, str]:
    return probability(one.probability_before), probability(one.probability_after)


def text_page(explanation: WritingExplanation) -> str:
    """Return a whole page: the source, the written text, the attention as a chart, the sememes of each word."""
    tables = compared_texts(explanation) if isinstance(explanation, OverlayWriting) else []
    shown = {"remarks": pages.remarks("text", explanation), "charts": [chart(one) for one in attention(explanation)]}
    return pages.render("written_explanation", explanation=explanation, tables=tables, **shown)


def text_parts(explanation: WritingExplanation) -> Parts:
    """Yield the source, the changes by an overlay, and the written text with its explanation."""
    yield " ".join(explanation.source)
    if isinstance(explanation, OverlayWriting):
        yield f"as trained → {' '.join(word.word for word in explanation.before.words)}"
        yield from compared_texts(explanation)
        yield f"with {explanation.overlay}:"
    yield f"→ {' '.join(word.word for word in explanation.words)}"
    yield from map(Remark, pages.remarks("text", explanation))
    has_sememes, rows = explanation.no_senses is None, []
    for word in explanation.words:
        place = word.attention.index(max(word.attention))
        gates = "  ".join(f"{item.name} {item.gate:.2f}" for item in word.sememes)
        sememes = (_levels(word.expected), gates) if has_sememes else ()
        attended = f"{explanation.source[place]} {word.attention[place]:.2f}"
        rows.append((word.word, attended, *sememes, percent(word.probability)))
    heads = ("sememes made more probable", "largest gates") if has_sememes else ()
    columns = ("word", "most attended", *heads, "probability")
    yield Table(columns, rows, numbers={len(columns) - 1})
    if explanation.mean is not None:
        yield Remark(f"sememes by the rise of their probability above its mean ({explanation.mean})")


def compared_texts(explanation: OverlayWriting) -> list[Table]:
    """Return the original text under both models, and the changed words at its places; the largest changes first."""
    if not explanation.text:
        return []
    text = [(one.word, *_probabilities(one)) for one in explanation.text]
    words = [(one.word, f"{one.place}. {one.written}", *_probabilities(one), *_ranks(one)) for one in explanation.changed_words]
    sides = ("as trained", "with overlay")
    heads = ("changed word", "in the place of", *sides, "rank as trained", "rank with overlay")
    return [
        Table(("word", *sides), text, "Its words", numbers=(1, 2)),
        *_largest("Changed words in their places", heads, words, 4),
    ]


def attention(explanation: WritingExplanation) -> list[Heatmap]:
    """Return the attention weights: a row for each written word, a column for each source word; none for an empty text."""
    if not explanation.words:
        return []
    most = [f"{item.word}: {explanation.source[item.attention.index(max(item.attention))]}" for item in explanation.words]
    title = f"Weights of the attention; most for {'; '.join(most)}"
    weights = tuple(tuple(item.attention) for item in explanation.words)
    return [Heatmap(title, tuple(explanation.source), tuple(item.word for item in explanation.words), weights)]


def label_page(explanation: LabelExplanation) -> str:
    """Return a whole page: the labels, each text with its words, and the largest gates."""
    effects = [abs(word.effect) for text in explanation.texts for word in text.words if word.effect is not None]
    top = max((abs(item.effect) for item in explanation.sememes), default=0.0)
    shown = {"remarks": pages.remarks("label", explanation), "largest": max(effects, default=0.0), "top": top, "how": HOW}
    return pages.render("label_explanation", explanation=explanation, **shown)


def label_parts(explanation: LabelExplanation) -> Parts:
    """Yield the labels, words and sememes of an example."""
    yield from map(Remark, pages.remarks("label", explanation))
    labels = [(name, percent(value)) for name, value in explanation.labels.items()]
    yield Table(("label", "probability"), labels, numbers={1})
    reads = explanation.no_sememes is None
    for text in explanation.texts:
        rows: list[tuple[str, ...]] = []
        for word in text.words:
            if word.effect is None or word.gradient is None:
                rows.append((word.word, *(("", "") if reads else ()), "left out", ""))
                continue
            without = "" if word.without_sememes is None else f"{word.without_sememes:+.3f}"
            sememes = "  ".join(f"{item.name} {item.effect:+.3f}" for item in word.sememes)
            rows.append((word.word, *((sememes, without) if reads else ()), f"{word.effect:+.3f}", f"{word.gradient:+.3f}"))
        columns = ("word", *(("sememes with their effects", "without them") if reads else ()), "effect", "gradient")
        yield Table(columns, rows, f"{text.name}, effects on {explanation.label}", numbers=2 if reads else 1)
    if explanation.sememes:
        strong = [
            (item.name, item.word, f"{item.text} {item.place}", f"{item.effect:+.3f}", f"{item.gradient:+.3f}")
            for item in explanation.sememes
        ]
        yield Table(("sememe", "of", "word of", "effect", "gradient"), strong, "sememes that moved it most", numbers=3)
    yield Remark(HOW)


def lattice_parts(explanation: LatticeExplanation) -> Parts:
    """Yield the words of each sentence, and its edges with their posteriors."""
    several = explanation.copies > 1
    for sentence in explanation.sentences:
        yield f"most probable path:  {' '.join(sentence.viterbi)}"
        yield f"each place separately: {' '.join(sentence.posterior)}"
        if unknown := list(dict.fromkeys(token.text for token in sentence.tokens if not token.known)):
            yield Remark(f"not in the vocabulary: {' '.join(unknown)}")
        rows = []
        for edge in sentence.edges:
            marks = ", ".join([*(["best"] if edge.best else []), *([] if edge.listed else ["unlisted"])])
            chunk = (f"{edge.begin + 1}-{edge.end}", edge.text, *((edge.copy_number,) if several else ()))
            rows.append((*chunk, percent(edge.probability), share_bar(edge.probability), marks))
        columns = ("tokens", "chunk", *(("embedding",) if several else ()), "posterior", "", "")
        yield Table(columns, rows, f"{sentence.nats:.2f} nats, {explanation.marginal}", numbers=())


def embeddings_parts(report: EmbeddingsReport) -> Parts:
    """Yield the contexts in which each embedding of a word wins."""
    for word in report.words:
        rows = []
        for use in word.embeddings:
            sense = f", {use.sense}" if use.sense else ""
            name = f"{word.word} {use.number}: wins {use.wins:,}, mean {percent(use.mean, 0)}{sense}"
            for context in use.contexts or (None,):
                line = "nowhere" if context is None else f"… {context.before} [{word.word}] {context.after} …"
                rows.append((name, line, "" if context is None else percent(context.probability, 0)))
                name = ""
        title = f"{word.word}: {word.occurrences:,} times in {report.split}"
        yield Table(("embedding", "context", "posterior"), rows, title, numbers={2})


VIEWS: Final[Mapping[type[Any], Views]] = {
    LabelExplanation: Views(label_page, label_parts),
    WritingExplanation: Views(text_page, text_parts, attention),
    LatticeExplanation: Views(lambda found: pages.render("lattice", explanation=found), lattice_parts),
    EmbeddingsReport: Views(lambda found: pages.render("embeddings", report=found), embeddings_parts),
    Explanation: Views(words_page, words_parts, through_sememes),
}


def shown(report: Any) -> Shown[Any]:
    """Return an explanation of any kind with its views."""
    return Shown(report, next(views for kind, views in VIEWS.items() if isinstance(report, kind)))
