"""Attacks on a classifier in a notebook: a function, an object with ``predict_proba``, or a run."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import numpy as np

from sememekit.attack import Example, ExampleResult, check_parts, choose_examples, read_attack_plan
from sememekit.attack.folder import AttackFolder
from sememekit.attack.plan import RunningSettings
from sememekit.attack.report import AttackReport
from sememekit.config import merge_tables, trusting_code
from sememekit.errors import ConfigError, DataError
from sememekit.progress import Progress, silent
from sememekit.reports.attack import rate_rows, report_page, write_sheets
from sememekit.reports.table import Table, framed
from sememekit.runs.attacks.adapters import adapted
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.attacks.proxies import check_judge
from sememekit.runs.attacks.running import AttackedData, OpenAttack, attack_parts, refuse_no_result
from sememekit.runs.attacks.victims import NamedVictim, open_victim, wrap
from sememekit.runs.run import Run

_TEXTS: Final = "texts"  # name in reports for examples without a file

_OPTION: Final = re.compile(r"--([a-z][a-z-]+)(?: (?!out\b|or\b|alone\b|and\b)([^\s;,()]*[^\s;,():](?:,[^\s;,()]+)*))?")
_ARGUMENTS: Final = {"lm": "language_model", "source": "sources", "labels": "names"} | {
    name: name for name in ("search", "goal", "candidates", "segmenter", "lexicon", "judge", "out")
}
_SETTINGS: Final = {
    "constraints": "attack.constraints",
    "vectors": "candidates.path",
    "lemmas": "candidates.lemmas",
    "opposites": "constraints.opposites.files",
    "paraphrases": "constraints.paraphrases.files",
    "open-vocabulary": "attack.open_vocabulary",
}
"""Option of the command -> argument of ``attack_classifier``, or the key of its ``settings``."""

Victim = Callable[[list[Any]], Any]


@final
class AttackResult:
    """The result of an attack; a notebook shows the page. ``report`` has rates with intervals, coverage, notes and warnings;
    ``results`` has an ``ExampleResult`` for each text, in order."""

    def __init__(self, report: AttackReport, results: Sequence[ExampleResult]) -> None:
        self.report, self.results = report, tuple(results)

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table())

    def table(self) -> Table:
        """Return a row for each example."""
        columns = ("text", "label", "prediction", "outcome", "adversarial", "became", "changes", "queries")
        rows = []
        for result in self.results:
            before = (" / ".join(result.fields), result.label, result.prediction, result.outcome)
            text = None if result.adversarial is None else " / ".join(result.adversarial)
            changes = ", ".join(f"{change.old} → {change.new}" for change in result.changes)
            rows.append((*before, text, result.adversarial_prediction, changes, result.queries))
        return Table(columns, rows)

    def summary(self) -> Table:
        """The figures that ``sememekit attack`` prints."""
        return Table(("figure", "value"), rate_rows(self.report), f"Attack on {self.report.victim}")

    @property
    def html(self) -> str:
        """Return the self-contained page of the attack."""
        return report_page(self.report, self.results)

    def __repr__(self) -> str:
        return "\n".join([repr(self.summary()), *(f"note: {note}" for note in (*self.report.notes, *self.report.warnings))])

    def _repr_html_(self) -> str:
        return framed(self.html)


def attack_classifier(
    victim: Victim | Run | Path | str | Any,
    texts: Iterable[str | Sequence[str]],
    labels: Iterable[str | int],
    *,
    names: Sequence[str] = (),
    sources: str | Sequence[str] = (),
    search: str = "greedy",
    goal: str = "untargeted",
    candidates: str = "sememe",
    segmenter: str = "",
    lexicon: str = "",
    language_model: Run | Path | str | None = None,
    judge: Victim | Run | Path | str | Any = None,
    logits: bool = False,
    trust_code: bool = False,
    settings: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    progress: Progress = silent,
) -> AttackResult:
    """Attack a classifier by replacing words, as ``sememekit attack`` does (docs/attacks.md).

    >>> def predict(texts):  # or the predict_proba of a classifier
    ...     return np.array([[0.9, 0.1] if "工人" in text else [0.2, 0.8] for text in texts])
    >>> result = attack_classifier(predict, ["今天 工人 看 电影 。"], ["yes"], names=["yes", "no"], sources="open")
    >>> result.report.rates.success_rate.value, result.table()[0]["outcome"]
    (1.0, 'success')

    Args:
        victim: a function from a list of texts (strings, or tuples of strings) to (N, C) probabilities; an object with
            ``predict_proba`` and ``classes_``, as scikit-learn has; a pipeline of transformers, or ``hf:PATH``, the folder of a
            sequence classifier; a model wrapper of TextAttack; a run of a classifier, or its folder.
        texts: strings, or tuples of strings for examples of several texts; a column of pandas will do.
        labels: the true label of each text: all by name, or all by column number.
        names: of the C columns, in their order; default: the victim's own ``labels`` or ``classes_``.
        sources, search, goal, candidates, segmenter, lexicon: as the command's options; the default search is greedy, faster
            than the command's genetic search. A function still reads Chinese texts without blanks.
        language_model: a run for constraints that need one, and for the perplexity of the changed texts (``--lm``).
        judge: a second classifier, as the victim, whose labels of the changed texts are a proxy of validity.
        logits: apply a softmax, since the victim returns logits.
        trust_code: read a file of joblib or pickle, which can run any code of its author.
        settings: further tables of a recipe, such as ``{"attack": {"query_budget": 100}, "constraints": {"share": {}}}``.
        out: a new folder for the results, as the command writes it (default: none is kept). ``data`` of the signature is the
            hash of texts and labels in place of a file; ``attack --compare`` pairs both by their texts.

    Raises ConfigError: no names for the columns, or an unknown or unsuitable part. Raises DataError: an unusable text or label,
    unsegmented Chinese, or a victim that fails on every text. Raises CheckpointError: ``out`` exists, or a bad run."""
    fields, given = _fields(texts), _listed(labels, "labels")
    if len(fields) != len(given):
        raise DataError(f"attack: {len(fields)} texts and {len(given)} labels; give one label for each text")
    with _told_for_python():
        table: dict[str, Any] = {"goal": {"name": goal}, "search": {"name": search}, "candidates": {"name": candidates}}
        if sources:
            table["candidates"]["sources"] = [sources] if isinstance(sources, str) else list(sources)
        table["attack"] = {"segmenter": segmenter, "lexicon": lexicon}
        plan = read_attack_plan(merge_tables(table, settings or {}), "attack")
        check_parts(plan, language_model=language_model is not None)
        named = _named(victim, names, plan.attack, logits=logits, trust_code=trust_code)
        own = () if isinstance(judge, Run | Path | str) else named.victim.labels
        second = None
        if judge is not None:
            uncut = plan.attack.model_copy(update={"segmenter": "", "lexicon": ""})
            second = _named(judge, own, uncut, logits=False, trust_code=trust_code)
            check_judge(second, named)
        with trusting_code(trust_code):
            nats = AttackLanguageModel(language_model) if language_model is not None else None
        pairs = zip(fields, _label_names(given, named.victim.labels), strict=True)
        examples = [Example(index, text, label) for index, (text, label) in enumerate(pairs)]
        chosen = choose_examples(examples, plan.attack.limit, plan.attack.sample, plan.attack.seed)
        titles = tuple(f"text {number}" for number in range(1, len(fields[0]) + 1)) if len(fields[0]) > 1 else ("text",)
        digest = hashlib.sha256(
            json.dumps([[*map(list, fields)], [example.label for example in examples]]).encode()
        ).hexdigest()
        parts = attack_parts(plan, named, nats, AttackedData(_TEXTS, digest, titles), examples, chosen, progress)
    with TemporaryDirectory() as temporary:
        folder = AttackFolder.create(Path(out) if out is not None else Path(temporary) / "attack", parts.identity)
        begun = OpenAttack(folder, parts)
        start = time.perf_counter()
        with _told_for_python():
            begun.run(lambda: False, progress)
        report, results = begun.report(time.perf_counter() - start, stopped=False, judge=second)
        told = {name: tuple(map(_for_python, getattr(report, name))) for name in ("notes", "warnings")}
        reasons = {_for_python(reason): number for reason, number in report.reasons.items()}
        report = report.model_copy(update={**told, "reasons": reasons})
        found = AttackResult(report, results)
        if out is not None:
            folder.write_report(report, found.html)
            write_sheets(folder, results)
    with _told_for_python():
        refuse_no_result(report, results, kept=out is not None, typed=False)
    return found


def _named(victim: Any, names: Sequence[str], settings: RunningSettings, *, logits: bool, trust_code: bool) -> NamedVictim:
    """Return a victim of any kind, with the names of its labels. Raises ConfigError: no victim, or columns without names."""
    if isinstance(victim, Run | Path | str):
        name = str(victim.path if isinstance(victim, Run) else victim)
        with trusting_code(trust_code):
            return open_victim(name, settings, labels=names, logits=logits)
    function = getattr(victim, "predict_proba", victim)
    title = getattr(function, "__qualname__", type(victim).__name__)
    own = [str(name) for name in names]
    return wrap(adapted(victim, logits=logits), own, settings, name=title, logits=logits, remedy="names=[...]")


def _for_python(text: str) -> str:
    """Return a message with arguments of ``attack_classifier`` in place of the command's options."""

    def argument(found: re.Match[str]) -> str:
        option, value = found[1], found[2]
        if option in ("logits", "trust-code"):
            return f"{option.replace('-', '_')}=True" + (f" {value}" if value else "")
        if option == "labels":
            return f"names={value.split(',')}" if value else "names"
        path = _SETTINGS.get(option, "")
        if option == "set" and value:
            path, _, value = value.partition("=")
        if path:
            given = f'"{value}"' if not path.endswith(".files") else f'["{value}"]'
            for key in reversed(path.split(".")):
                given = f'{{"{key}": {given}}}'
            return f"settings={given}" if value else f"{path} in settings"
        name = _ARGUMENTS.get(option)
        return found[0] if name is None else f'{name}="{value}"' if value else name

    return _OPTION.sub(argument, text)


@contextmanager
def _told_for_python() -> Iterator[None]:
    """Rephrase errors of the block with ``_for_python``."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise type(error)(_for_python(str(error))) from error


def _listed(values: Any, what: str) -> list[Any]:
    """The texts or labels of a call as a list. Raises DataError: no list, or an empty list."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError(f"attack: {what} must be a list with an item for each example, given {type(values).__name__}")
    if not (found := list(values)):
        raise DataError(f"attack: no {what}; give at least one example")
    return found


def _fields(texts: Any) -> list[tuple[str, ...]]:
    """Return the texts of each example. Raises DataError: an item that is no text, or has another number than the first."""
    found: list[tuple[str, ...]] = []
    for index, item in enumerate(_listed(texts, "texts")):
        text = (item,) if isinstance(item, str) or not isinstance(item, Iterable) else tuple(item)
        wrong = [one for one in text if not isinstance(one, str)]
        if wrong or not text:
            told = f"{wrong[0]!r} ({type(wrong[0]).__name__})" if wrong else "empty"
            raise DataError(f"attack: text {index} (from 0) is {told}; texts are strings, or tuples of strings; leave it out")
        if found and len(text) != len(found[0]):
            raise DataError(f"attack: text {index} (from 0) has {len(text)} strings, and text 0 has {len(found[0])}")
        found.append(tuple(map(str, text)))
    return found


def _label_names(labels: Sequence[Any], known: Sequence[str]) -> list[str]:
    """Return the name of each label, from names or column numbers. Raises DataError: neither, or a mix of both."""
    index = next((place for place, label in enumerate(labels) if str(label) not in known), None)
    if index is None:
        return [str(label) for label in labels]
    numeric = any(name.lstrip("-").isdecimal() for name in known)
    if not numeric and all(isinstance(label, int | np.integer) and 0 <= label < len(known) for label in labels):
        return [known[int(label)] for label in labels]
    raise DataError(
        f"attack: text {index} (from 0) has the label {labels[index]!r}; the victim's labels are {', '.join(known)}; give all "
        f"labels by name, or all as columns 0 to {len(known) - 1}{' with other names=' * numeric}"
    )
