"""The parts of an attack on known results: its remarks, its refusals and its questions to the victim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sememekit.attack import Example, ExampleResult
from sememekit.attack.engine import NOT_AGAIN
from sememekit.attack.victim import SAME
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.measure.attack_rates import Coverage
from sememekit.measure.intervals import Interval
from sememekit.runs.attacks.adapters import Adapted, is_pickle
from sememekit.runs.attacks.remarks import doubtful_accuracy, notes, warnings
from sememekit.runs.attacks.running import (
    OpenAttack,
    _reason,
    _unread,
    check_cut,
    check_labels,
    frequent_words,
    refuse_no_result,
)
from sememekit.runs.attacks.victims import is_function, wrap


def result(index: int = 0, outcome: Any = "failed", **more: Any) -> ExampleResult:
    given = {"correct": True, "queries": 1, "words_changed": 0, "num_words": 3, "fields": ("a b",), "label": "yes", **more}
    return ExampleResult(index=index, outcome=outcome, **given)


def plan(
    constraints: dict[str, Any] | None = None, candidates: str = "table", preset: str = "standard", known: bool = True
) -> Any:
    parts = [SimpleNamespace(name=name, settings=SimpleNamespace(**given)) for name, given in (constraints or {}).items()]
    attack = SimpleNamespace(constraints=preset, known_words=known)
    return SimpleNamespace(constraints=parts, candidates=SimpleNamespace(name=candidates, settings=None), attack=attack)


def named(labels: Sequence[str] = ("no", "yes"), words: Any = None, **more: Any) -> Any:
    given = {
        "own_labels": False,
        "identity": {"kind": "function"},
        "cut": None,
        "blanks": False,
        "reads": None,
        "assumed": "",
        **more,
    }
    return SimpleNamespace(victim=SimpleNamespace(labels=labels, words=words, name="v"), **given)


def covered(changeable: int = 10, words: int = 20) -> Coverage:
    share = changeable / words if words else None
    return Coverage(
        examples=3, words=words, with_candidates=15, changeable=changeable, share_with_candidates=0.75, share_changeable=share,
        mean_substitutes=2.0, median_texts_log10=1.0,
    )  # fmt: skip


NO_WORDS = "known-words filter off: the victim names no words (attribute words), so substitutes may be new to it"
OFF = "known-words filter off: attack.known_words is false"
ANYTHING = "stop words, marks, numbers and negations may change"


@pytest.mark.parametrize(
    ("plan", "words", "expected"),
    [
        (plan({"share": {}}), ["a"], ["constraints standard: share", "told"]),
        (plan({"share": {}}), None, ["constraints standard: share", "told", NO_WORDS]),
        (plan(known=False), None, ["constraints standard: everything may change", "told", OFF]),
        (plan(known=False), ["a"], ["constraints standard: everything may change", "told", OFF]),
        (plan(preset="none"), ["a"], ["constraints none: everything may change", ANYTHING, "told"]),
        (plan({"stop_words": {}}, preset="none"), ["a"], ["constraints none: stop_words", "told"]),
        (plan({"share": {}, "protected": {}}, preset="none"), ["a"], ["constraints none: share, protected", "told"]),
        (
            plan({"part_of_speech": {}}, candidates="wordnet"), ["a"],
            ["constraints standard: part_of_speech", "part of speech kept by the candidates (wordnet)", "told"],
        ),
        (
            plan({"part_of_speech": {}}), ["a"],
            [
                "constraints standard: part_of_speech",
                "part of speech not checked: no lexicon was given; add --source FORMAT:PATH", "told",
            ],
        ),
        (
            plan({"part_of_speech": {"sources": ["table:x"]}, "share": {}}), ["a"],
            ["constraints standard: part_of_speech, share", "told"],
        ),
    ],
)  # fmt: skip
def test_notes_say_what_was_not_checked(plan: Any, words: Any, expected: list[str]) -> None:
    assert list(notes(plan, named(words=words), ["told"])) == expected


NEIGHBOURS = "neighbours of word vectors include opposites and words of other meaning"
EMBEDDING: dict[str, Any] = {"candidates": "embedding"}


@pytest.mark.parametrize(
    ("plan", "coverage", "begins"),
    [
        (plan(), covered(), []),
        (plan({"opposites": {"files": (), "wordnet": ""}}, **EMBEDDING), covered(), [NEIGHBOURS]),
        (plan({"share": {"files": ("f",)}}, **EMBEDDING), covered(), [NEIGHBOURS]),
        (plan({"opposites": {"files": ("f",)}}, **EMBEDDING), covered(), []),
        (plan({"opposites": {"wordnet": "w"}}, **EMBEDDING), covered(), []),
        (plan({"paraphrases": {}}, **EMBEDDING), covered(), []),
        (plan(), covered(4), []),
        (plan(), covered(0, 0), []),
        (
            plan(), covered(3),
            ["only 15.0 % of the words may change (15 of 20 have candidates, 3 under the constraints): the figures say"],
        ),
    ],
)  # fmt: skip
def test_warnings_say_why_figures_mislead(plan: Any, coverage: Coverage, begins: list[str]) -> None:
    found = list(warnings(plan, coverage, [result(outcome="success")]))
    assert [text[: len(begin)] for text, begin in zip(found, begins, strict=True)] == begins


def test_errors_and_unsteady_answers_are_counted() -> None:
    results = [
        result(0, "error", reason="two"), result(1, "error", reason="one"), result(2, "error", reason="two"),
        result(3, reason=NOT_AGAIN), result(4, reason=NOT_AGAIN), result(5, "success"), result(6),
    ]  # fmt: skip
    errors, unsteady = warnings(plan(), covered(), results)
    assert errors == "3 of 7 examples ended in an error (most frequent: two); rates are over the rest and may be biased"
    assert unsteady.startswith("2 of 3 texts that fooled the victim did not when each was asked again alone")


def answered(*pairs: tuple[str, str]) -> list[ExampleResult]:
    """Results of victims that answered, by prediction and label, and one of a victim that did not."""
    found = [result(index, prediction=said, label=true, correct=said == true) for index, (said, true) in enumerate(pairs)]
    return [*found, result(99, "error", correct=None, prediction="other", label="other")]


@pytest.mark.parametrize(
    ("results", "high", "named", "ends"),
    [
        (answered(("yes", "yes"), ("no", "no")), 0.5, named(), []),
        (answered(("yes", "yes"), ("yes", "yes")), None, named(), []),
        (answered(("yes", "yes"), ("yes", "no")), 1.0, named(), ["cannot be fooled, which is not robust"]),
        (answered(("yes", "no"), ("no", "yes")), 0.4, named(), ["labels in another order? --labels yes,no"]),
        (
            answered(("a", "b"), ("b", "c")), 0.3, named(("a", "b", "c")),
            ["labels in another order? --labels A,B,... in the order of the victim's columns"],
        ),
        (answered(("a", "b"), ("b", "c")), 0.4, named(("a", "b", "c")), []),
        (
            answered(("yes", "no"), ("no", "yes")), 0.4, named(own_labels=True),
            ["do the data mean the same by no, yes, and does the victim name its columns in their order?"],
        ),
    ],
)  # fmt: skip
def test_a_victim_that_only_seems_robust_is_doubted(
    results: list[ExampleResult], high: float | None, named: Any, ends: list[str]
) -> None:
    found = list(doubtful_accuracy(named, results, Interval(value=0.125, low=0.0, high=high)))
    assert [text[-len(end) :] for text, end in zip(found, ends, strict=True)] == ends
    for text in found:
        if "accuracy" in text:
            by = f"accuracy before the attack is 12.5 %, at most {100 * (high or 0):.1f} % by its interval, below the "
            assert text.startswith(f"{by}{100 / len(named.victim.labels):.1f} % of guessing among {len(named.victim.labels)} ")
        else:
            assert text.startswith("the victim calls all 2 texts yes, and the data have 2 labels: ")


def report(untried: int = 0, attackable: int = 1, **reasons: int) -> Any:
    rates = SimpleNamespace(untried=untried, attackable=attackable)
    return SimpleNamespace(folder="out", victim="v", resume_command="again", rates=rates, reasons=reasons)


BROKEN = result(outcome="error", reason="the victim raised X", queries=0)
REPAIR = "; see out; repair the victim, then: again"
NOTHING = "the attack on v had nothing to try "


@pytest.mark.parametrize(
    ("report", "results", "options", "said"),
    [
        (report(), [BROKEN, result()], {}, None),
        (report(), [], {}, None),
        (report(), [result(outcome="skipped", queries=0), BROKEN], {}, f"error on every example: the victim raised X{REPAIR}"),
        (report(), [BROKEN], {"typed": False}, "error on every example: the victim raised X; see out"),
        (report(), [BROKEN], {"kept": False, "typed": False}, "error on every example: the victim raised X"),
        (report(), [result(outcome="error", reason="label")], {}, "error on every example: label; see out"),
        (report(untried=2, x=2), [result()], {}, None),
        (
            report(2, 0, **{"skipped: classified wrongly": 3}), [BROKEN, result(outcome="skipped")], {},
            "v ended in an error on 1 of 2 examples and had nothing to try on the others (most frequent: the victim raised X)"
            f"{REPAIR}",
        ),
        (
            report(untried=2, attackable=0, **{"error: z": 3, "skipped: more words": 2}), [result()], {},
            "(skipped: more words); raise this limit, with another --out; see out",
        ),
        (
            report(2, 0, **{"skipped: classified wrongly": 3, "no_candidates: none": 2}), [], {"kept": False},
            f"{NOTHING}(no_candidates: none); give candidates in the language of the texts (--source, --vectors), or looser "
            "--constraints, with another --out",
        ),
    ],
)  # fmt: skip
def test_an_attack_without_any_result_is_refused(
    report: Any, results: list[ExampleResult], options: dict[str, bool], said: str | None
) -> None:
    if said is None:
        refuse_no_result(report, results, **options)
        return
    with pytest.raises(DataError) as caught:
        refuse_no_result(report, results, **options)
    assert str(caught.value).endswith(said)


def test_reasons_lose_the_number_of_their_example() -> None:
    assert _reason(result(reason="more words than 400 (1,203)")) == "failed: more words than 400"
    assert _reason(result(outcome="error", reason="label (3)")) == "error: label (3)"


def test_frequent_words_are_in_lower_case_and_without_marks() -> None:
    assert frequent_words(["The", ".", "the", "", "A", "3rd", "苹果"]) == ("the", "a", "3rd", "苹果")


def test_words_behind_the_part_that_is_read_are_counted() -> None:
    """A word that begins at the end of the part is behind it; a text that cannot be cut is left out."""

    def cut(field: str) -> list[str]:
        return field.split() if "x" not in field else ["other"]

    chosen = [Example(0, ("aa bb cc", "dd ee"), "yes"), Example(1, ("aa", "bb"), "no"), Example(2, ("x", "x"), "no")]
    ends = {"aa bb cc": (3, 4), "aa": (2, 2), "x": (0, 0)}
    assert _unread(named(reads=lambda fields: ends[fields[0]], cut=cut), chosen) == (1, 2)
    assert _unread(named(cut=cut), chosen) == (0, 0)


@pytest.mark.parametrize(
    ("labels", "kind", "remedy"),
    [
        (["yes", "maybe"], "run", None),
        (["-"], "run", None),
        (["b", "a", "-"], "run", "write the labels of the run into the file"),
        (["b", "a"], "function", "name the labels of the file in the order of the victim's columns: --labels A,B"),
    ],
)
def test_labels_that_the_victim_lacks_are_refused(labels: list[str], kind: str, remedy: str | None) -> None:
    examples, victim = [Example(0, ("t",), label) for label in labels], named(identity={"kind": kind})
    if remedy is None:
        check_labels(victim, examples, "d.tsv")
        return
    with pytest.raises(DataError) as caught:
        check_labels(victim, examples, "d.tsv")
    assert str(caught.value) == f"d.tsv: its labels are a, b, and the victim has none of them: no, yes; {remedy}"


def test_chinese_without_blanks_is_warned_of_and_refused_from_a_fifth() -> None:
    raw, apart = Example(0, ("今天的电影真的非常好看我们都很喜欢",), "yes"), Example(1, ("好 看",), "yes")
    told = "examples hold Chinese without blanks, such as '今天的电影真的非常好看我', which would be taken for one word; "
    add = "add --segmenter jieba, or --segmenter fmm --lexicon FORMAT:PATH; the victim still gets text without blanks"
    assert check_cut(named(), [apart] * 3, "d") == []
    assert check_cut(named(cut=str.split), [raw], "d") == []
    assert check_cut(named(), [raw, *[apart] * 5], "d") == [f"d: 1 of 6 {told}{add}"]
    alike = "the victim was trained on text with blanks between words; cut the file alike, with: sememekit segment FILE"
    for victim, remedy in ((named(), add), (named(blanks=True), alike)):
        with pytest.raises(DataError) as caught:
            check_cut(victim, [raw, *[apart] * 4], "d")
        assert str(caught.value) == f"d: 1 of 5 {told}{remedy}"


def test_a_victim_is_told_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.pkl", "b.joblib", "c.pickle", "d.txt", "e:f"):
        (tmp_path / name).touch()
    names = ["a.pkl", "b.joblib", "c.pickle", "d.txt", "e:f", "g.pkl", "runs/h", "hf:runs/h", "mine:predict"]
    assert [name for name in names if is_pickle(name)] == ["a.pkl", "b.joblib", "c.pickle"]
    assert [name for name in names if is_function(name)] == ["a.pkl", "b.joblib", "c.pickle", "hf:runs/h", "mine:predict"]


def classifier(labels: Any = (), words: Any = None, **more: Any) -> Adapted:
    return Adapted(lambda texts: np.ones((len(texts), 2)) / 2, labels, words, **more)


def test_a_wrapped_function_has_its_labels_words_and_identity() -> None:
    found = wrap(classifier(("a", "b"), ["w"]), name="v")
    assert (found.victim.labels, found.victim.words, found.own_labels, found.kind) == (("a", "b"), ("w",), True, None)
    assert found.identity == {"kind": "function", "name": "v", "labels": ["a", "b"]}
    assert (found.cut, found.cut_by, found.blanks, found.larger) == (None, "white space and marks", False, None)
    found = wrap(classifier(("0", "1"), kind="hf", identity={"sha256": "x"}), ("a", "b"), name="v", logits=True)
    expected = {"kind": "hf", "name": "v", "labels": ["a", "b"], "sha256": "x", "words": "none", "logits": True}
    assert (found.identity, found.own_labels, found.victim.words) == (expected, False, None)
    assert wrap(classifier(("a", "b")), ("a", "b"), name="v").own_labels


@pytest.mark.parametrize(
    ("found", "labels", "said"),
    [
        (classifier(("a", "b")), ("b", "a"), "its columns are a, b in this order, given b, a; leave --labels out"),
        (classifier(()), (), "name its labels in the order of its columns, as in --labels negative,positive"),
        (classifier(("a", "a")), (), "name its labels in the order of its columns, as in --labels negative,positive"),
        (classifier("ab"), (), "its attribute labels must be a list of strings, and is str"),
        (classifier(3), (), "its attribute labels must be a list of strings, and is int"),
        (classifier(("a", 3)), (), "its labels must be strings, and 3 is int"),
        (classifier(("a", "b"), "w"), (), "its attribute words must be a list of strings, and is str"),
        (classifier(("a", "b"), ["w", 3]), (), "its words must be strings, and 3 is int"),
        (classifier(("a", "b"), ["w", None]), (), "its words must be strings, and None is NoneType"),
    ],
)
def test_labels_and_words_are_lists_of_strings(found: Adapted, labels: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wrap(found, labels, name="v")
    assert str(caught.value) == f"victim 'v': {said}"


class Answers:
    """A victim that answers by a function, and remembers its questions."""

    labels, name = ("no", "yes"), "v"

    def __init__(self, alone: Callable[[str], Any], together: Callable[[str], Any] | None = None) -> None:
        self._alone, self._together, self.calls, self.texts_asked = alone, together or alone, 0, 0
        self.asked: list[str] = []

    def alone(self, fields: tuple[str, ...]) -> Any:
        self.calls, self.texts_asked = self.calls + 1, self.texts_asked + 1
        return self._alone(fields[0])

    def ask(self, groups: list[list[tuple[str, ...]]]) -> list[list[Any]]:
        self.calls, self.texts_asked = self.calls + 1, self.texts_asked + sum(map(len, groups))
        self.asked += [fields[0] for group in groups for fields in group]
        return [[self._together(fields[0]) for fields in group] for group in groups]


def opened(victim: Answers, results: Sequence[ExampleResult] = (), examples: int = 3, kind: str = "function") -> OpenAttack:
    done = {one.index: one for one in results}
    folder: Any = SimpleNamespace(results=lambda: done, path=Path("out"))
    chosen = [Example(index, (f"text {index % 9}",), "yes") for index in range(examples)]
    parts: Any = SimpleNamespace(named=SimpleNamespace(identity={"kind": kind}, victim=victim), chosen=chosen)
    return OpenAttack(folder, parts)


def half(text: str) -> Any:
    return np.array([0.5, 0.5])


def test_a_resumed_attack_asks_for_three_finished_examples() -> None:
    """The first, the middle and the last of those that have an answer."""
    stored = [result(index, fields=(f"text {index}",), probabilities=(0.5, 0.5)) for index in (8, 2, 4, 6, 1)]
    silent = [result(0, fields=("silent",)), result(9, "error", reason="the victim fell", probabilities=(0.5, 0.5))]
    victim = Answers(half)
    opened(victim, [*stored, *silent], examples=12).check_victim()
    assert victim.asked == ["text 1", "text 4", "text 8"]
    for attack in (opened(victim, stored, 12, kind="run"), opened(victim, [*stored, result(0), result(3)], 3), opened(victim)):
        attack.check_victim()
    assert len(victim.asked) == 3


@pytest.mark.parametrize(
    ("answer", "fits"),
    [([SAME, 1.0], True), ([2 * SAME, 1.0], False), ([0.0, 1.0 + 2 * SAME], False), ([0.0], False), ("fault", True)],
)
def test_another_victim_is_refused_at_a_resume(answer: Any, fits: bool) -> None:
    victim = Answers(lambda text: answer if isinstance(answer, str) else np.array(answer))
    attack = opened(victim, [result(1, fields=("a text",), probabilities=(0.0, 1.0))])
    if fits:
        attack.check_victim()
        return
    with pytest.raises(CheckpointError) as caught:
        attack.check_victim()
    now = ", ".join(f"{value:.4f}" for value in answer)
    told = f"v gave example 1 ('a text') 0.0000, 1.0000, and now gives it {now}; restore the victim as it was"
    assert str(caught.value).startswith(f"--resume: out was begun with another victim: {told}")


def test_answers_alone_and_in_company_are_compared_and_not_counted() -> None:
    victim = Answers(half, lambda text: np.array([0.5 + SAME / 2, 0.5]))
    opened(victim, examples=12).check_company()
    assert victim.asked == [f"text {number}" for number in range(8)]
    assert (victim.calls, victim.texts_asked) == (8, 8)
    opened(Answers(half, lambda text: "fault")).check_company()
    opened(Answers(lambda text: "fault", half)).check_company()
    opened(Answers(lambda text: np.zeros(2), lambda text: np.array([SAME, 0.0]))).check_company()
    told = rf"the victim v gives 'text 0' other probabilities .*differ by 0.0002, allowed: {SAME}"
    with pytest.raises(DataError, match=told):
        opened(Answers(half, lambda text: np.array([0.5 - 2 * SAME, 0.5]))).check_company()
