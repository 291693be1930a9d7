"""Notes and warnings beside the figures of an attack: constraints, filters that were off, coverage of the candidates."""

from __future__ import annotations

from collections.abc import Sequence

from sememekit.attack import AttackPlan, Example, long_run
from sememekit.errors import DataError
from sememekit.measure.attack_coverage import Coverage
from sememekit.runs.victims import NamedVictim

UNCUT_SHARE = 0.2
"""Share of examples with a stretch too long for one word from which an attack stops: it would take sentences for words."""


def check_cut(named: NamedVictim, examples: Sequence[Example], data: str) -> list[str]:
    """Warnings about Chinese text that would be taken for one word; DataError from ``UNCUT_SHARE`` of the examples on."""
    if named.cut is not None:
        return []
    found = [run for run in (long_run(example.fields) for example in examples) if run]
    if not found:
        return []
    told = (
        f"{data}: {len(found):,} of {len(examples):,} examples hold Chinese without blanks, such as {found[0][:12]!r}, which "
        "would be taken for one word"
    )
    if named.blanks:
        remedy = "the victim was trained on text with blanks between words; cut the file alike, with: sememekit segment FILE"
    else:
        remedy = "add --segmenter jieba, or --segmenter fmm --lexicon FORMAT:PATH; the victim still gets text without blanks"
    if len(found) >= UNCUT_SHARE * len(examples):
        raise DataError(f"{told}; {remedy}")
    return [f"{told}; {remedy}"]


def notes(plan: AttackPlan, named: NamedVictim, opposites: int) -> list[str]:
    """What an attack left alone and did not check; ``opposites`` pairs of words must not stand for each other."""
    names = [part.name for part in plan.constraints]
    found = [f"constraints: {', '.join(names) if names else 'none'} (protect {plan.attack.protect})"]
    if plan.attack.protect == "nothing" and not {"stop_words", "protected"} & set(names):
        found.append("stop words, marks, numbers and negations may change")
    if opposites:
        given = "with the lists given" if _antonym_list(plan) else "our short list alone, no antonym list was given"
        found.append(f"opposites left out: {opposites:,} pairs, {given}")
    if named.victim.words is None and plan.attack.known_words:
        found.append("known-words filter off: the function names no words (attribute words), so substitutes may be new to it")
    elif not plan.attack.known_words:
        found.append("known-words filter off: attack.known_words is false")
    return found


def warnings(plan: AttackPlan, coverage: Coverage) -> list[str]:
    """What makes the figures say less than they seem to."""
    found = []
    paraphrases = any(part.name == "paraphrases" for part in plan.constraints)
    if plan.candidates.name == "embedding" and not _antonym_list(plan) and not paraphrases:
        found.append(
            "neighbours of word vectors include opposites and words of other meaning (man and woman, dog and cat), and no "
            "antonym list was given: a success may be a text whose true label is another; add --opposites FILE or "
            "--paraphrases FILE"
        )
    if coverage.words and coverage.low:
        found.append(
            f"only {100 * (coverage.share_changeable or 0):.1f} % of the words may change ({coverage.with_candidates:,} of "
            f"{coverage.words:,} have candidates, {coverage.changeable:,} under the constraints): the figures say little about "
            "the victim; give candidates in the language of the texts, or loosen the constraints"
        )
    return found


def _antonym_list(plan: AttackPlan) -> bool:
    """Whether a list of opposites besides our own was given."""
    settings = [part.settings for part in plan.constraints if part.name == "opposites"]
    return any(getattr(found, "files", ()) or getattr(found, "wordnet", "") for found in settings)
