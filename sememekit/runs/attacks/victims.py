"""Victims of an attack: a run of a classifier, or a classifier of another library (``adapters``).

A run can also be the segmenter of an attack: a lattice model that finds words, or the segmenter of its data."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import numpy as np

from sememekit.attack import Cutter, Example, Victim
from sememekit.attack.examples import NO_LABEL
from sememekit.attack.plan import RunningSettings
from sememekit.attack.resources import hashes_of
from sememekit.config import imported, is_own
from sememekit.corpora.examples import ExampleSet, recorded_set
from sememekit.data.segmenters import segmenter_for
from sememekit.errors import ConfigError
from sememekit.figures import percent
from sememekit.runs.attacks.adapters import Adapted, Predict, Reads, adapted, classifier_folder, is_pickle, pickled
from sememekit.runs.classifier import Classifier, load_classifier
from sememekit.runs.extend import with_open_vocabulary
from sememekit.runs.lattices import LatticeReader, open_reader, segment_lines
from sememekit.runs.run import Run, Which
from sememekit.sememes import Lexicon
from sememekit.sememes.substitutes import Inflections
from sememekit.tasks.base import LabelPredictor, check_declares
from sememekit.text.huggingface import PREFIX

_TRIED: Final = 200  # texts on which the order of labels is tried
_FEW_LABELS: Final = 6
CUTS_WORDS: Final = ("characters", "fmm", "jieba")
"""Segmenters whose words add up to the text. English tokenizers change the text, and SentencePiece cuts below words."""


@final
class LatticeCutter:
    """Segments a text by the best path of a lattice model (``weights``: SHA-256). Results are cached, since an attack segments
    a text several times; texts given ``ahead`` are read as a batch, which is much faster."""

    def __init__(self, reader: LatticeReader, weights: str) -> None:
        self.weights = weights
        self._reader = reader
        self._words: dict[str, list[str]] = {}

    def ahead(self, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._words]
        self._words |= zip(new, segment_lines(self._reader, new), strict=True)

    def __call__(self, text: str) -> list[str]:
        self.ahead([text])
        return self._words[text]


def run_cutter(path: Path, lexicon: str = "") -> tuple[Cutter, str]:
    """Return the segmenter into replaceable words, and its description.

    A lattice model of characters or pieces segments by its best path; other runs use the segmenter of their data. Raises
    ConfigError: ``lexicon`` is given too, or the data are cut at blanks or into pieces. Raises CheckpointError: no run."""
    if lexicon:
        raise ConfigError(f"--lexicon {lexicon}: the run {path} has its own words; leave --lexicon out")
    run = Run.open(path)
    if "lattices" in run.kinds:
        reader = open_reader(run, "--segmenter")
        if reader.finds_words:
            return LatticeCutter(reader, run.weights_sha256), f"the lattice model {path}, {run.snapshot}"
    name = str(run.signature.options.get("segmenter"))
    if name not in CUTS_WORDS and ":" not in name:
        raise ConfigError(
            f"--segmenter {path}: the run reads text cut by: {run.signature.segmenter}; give a lattice model of characters, or "
            "a run on text cut by jieba, fmm or characters"
        )
    own = run.segmenter()
    return own.segment, f"the segmenter of {path}: {own.description}"


class NamedVictim(NamedTuple):
    """A victim with its name and identity."""

    victim: Victim
    identity: dict[str, Any]  # for ``attack.json``: kind, name, and for a run its snapshot and the SHA-256 of its weights
    kind: ExampleSet | None  # the data set of a run, which determines how the attacked file is read; None for a function
    cut: Cutter | None  # segments texts into replaceable words; None for white space and marks
    cut_by: str
    blanks: bool = False  # whether its texts need blanks between words; unsegmented text is then refused
    own_labels: bool = False  # whether it declares its labels
    reads: Reads | None = None  # fields -> number of characters that it reads of each; None if unknown
    # makes the victim from a run that knows more words; None for a victim that is no run
    larger: "Callable[[Callable[[Run], Run]], NamedVictim] | None" = None
    assumed: str = ""  # a note on labels that were taken from the data

    def with_more_words(self, words: Iterable[str], lexicons: Sequence[Lexicon], settings: RunningSettings) -> "NamedVictim":
        """Return the victim extended by the words that only the lexicons of ``open_vocabulary`` know. Raises ConfigError: the
        victim is no run, or the run takes no new words."""
        sources, lemmas = settings.open_vocabulary, settings.open_lemmas or None
        if self.larger is None:
            raise ConfigError(
                f"--open-vocabulary {sources[0]}: the victim {self.victim.name} is no run, so its words have no sememes here; "
                "leave it out"
            )
        made = self.larger(lambda run: with_open_vocabulary(run, words, sources, lemmas=lemmas))
        inflections = None if lemmas is None else Inflections.open(lemmas, words)
        return made._replace(identity={**made.identity, "open_vocabulary": hashes_of(lexicons, inflections)})


_PIECES: Final = "white space and marks"
_USUAL: Final = RunningSettings()


def open_victim(
    name: str,
    settings: RunningSettings = _USUAL,
    *,
    labels: Sequence[str] = (),
    which: Which = "best",
    device: str = "auto",
    logits: bool = False,
    examples: Callable[[], Sequence[Example]] | None = None,
) -> NamedVictim:
    """Open a victim: a run folder; ``hf:PATH``, a sequence classifier of transformers; ``module:name``, where the module may
    lie in the working folder; or a file of joblib or pickle, which must be trusted.

    A module names a function, or an object that ``adapters.adapted`` takes. Its attribute ``labels`` may have the label names,
    and ``words`` the words that it knows, most frequent first. ``settings`` say what segments its texts; ``logits``: its
    outputs are logits; ``examples`` returns the attacked ones, whose labels name the columns of a victim that names none, as
    ``ordered_labels`` has them. Raises ConfigError: no such victim, no labels, a run that classifies no texts, or an option for
    something that the victim declares. Raises CheckpointError: no run, or a torn run."""
    found: Adapted | None = None
    if name.startswith(PREFIX):
        found = classifier_folder(name, device)
    elif is_pickle(name):
        found = pickled(name, logits=logits)
    elif is_function(name):
        found = adapted(_named_object(name), logits=logits)
    if logits and (found is None or found.kind != "function"):
        raise ConfigError(f"--logits: the victim {name} gives probabilities; leave --logits out")
    if found is not None:
        return wrap(found, tuple(labels), settings, name=name, logits=logits, examples=examples)
    return run_victim(name, partial(Run.open, name, which=which, device=device), labels, settings)


def run_victim(
    name: str, opened: Callable[[], Run], labels: Sequence[str] = (), settings: RunningSettings = _USUAL
) -> NamedVictim:
    """Open a run as a victim; its model is changed to float64. Errors as ``open_victim``."""
    classifier, segmenter = load_classifier(opened(), command="attack"), settings.segmenter
    if classifier.run.settings.dtype == "float32":
        # In float32 a probability moves by 1e-6 with the rest of the batch, enough to turn a tie; in float64 by 1e-15.
        classifier.task.double()
    if labels and tuple(labels) != classifier.labels:
        raise ConfigError(f"--labels: the run {name} has its own labels: {', '.join(classifier.labels)}; leave --labels out")
    signature = classifier.run.signature
    own = str(signature.options["segmenter"])
    # A run of characters can be attacked word by word; its vocabulary says nothing of words then.
    words = None if own == "characters" and segmenter else classifier.run.vocabulary.tokens
    victim = Victim(classifier.probabilities, classifier.labels, name=name, batch_size=settings.batch_size, words=words)
    weights = {"snapshot": classifier.run.snapshot, "weights": classifier.run.weights_sha256}
    identity = {"kind": "run", "name": name, **weights, "labels": list(classifier.labels)}
    kind = recorded_set(signature.dataset, f"{name}/data.json")
    cut: Cutter | None
    if (own in CUTS_WORDS or is_own("segmenter", own)) and not segmenter:
        cut, cut_by = classifier.segmenter.segment, f"the run's own segmenter: {classifier.segmenter.description}"
    elif segmenter and own in ("fmm", "jieba", "none", "english", "english-cased"):
        told = "expects words with blanks between" if own == "none" else f"cuts texts by {classifier.segmenter.description}"
        raise ConfigError(f"--segmenter {segmenter}: the run {name} {told}; leave --segmenter out")
    else:
        cut, cut_by = _cutter(segmenter, settings.lexicon)
    longest = int(getattr(classifier.task.settings, "max_length", 0))

    def reads(fields: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(_end(classifier, field, longest) for field in fields)

    def larger(more: Callable[[Run], Run]) -> NamedVictim:
        return run_victim(name, lambda: more(opened()), labels, settings)

    known = reads if longest else None
    return NamedVictim(victim, identity, kind, cut, cut_by, own == "none", own_labels=True, reads=known, larger=larger)


def _end(classifier: Classifier, text: str, longest: int) -> int:
    """Return the number of characters up to the last word that a run reads (all if the text is short enough)."""
    task: Any = classifier.task

    def num_read(end: int) -> int:
        return sum(task.word_read(int(word)) >= 0 for word in classifier.run.vocabulary.encode(classifier.words(text[:end])))

    return len(text) if num_read(len(text)) <= longest else bisect_left(range(len(text)), longest, key=num_read)


def check_kind(name: str) -> None:
    """Raise ConfigError for a run without labels, from its plan alone; ``open_victim`` checks other victims."""
    if (Path(name) / "plan.json").is_file():
        check_declares(Run.open(name).plan.task_class, LabelPredictor, "attack")


def wrap(
    found: Adapted,
    labels: Sequence[str] = (),
    settings: RunningSettings = _USUAL,
    *,
    name: str,
    logits: bool = False,
    remedy: str = "--labels negative,positive",
    examples: Callable[[], Sequence[Example]] | None = None,
) -> NamedVictim:
    """Wrap a function as a victim, with ``labels`` in place of its own; ``remedy`` tells the user how to name them, and
    ``examples`` are as in ``open_victim``. Raises ConfigError: fewer than two labels, labels or words that are no strings, or a
    segmenter that changes text."""
    names, own = (_strings(labels or found.labels, name, "labels"), _strings(found.labels, name, "labels"))
    if names != own and sorted(names) == sorted(own):
        raise ConfigError(
            f"victim {name!r}: its columns are {', '.join(own)} in this order, given {', '.join(names)}; leave "
            f"{remedy.split()[0].partition('=')[0]} out"
        )
    assumed = ""
    if not names and examples is not None:
        names, assumed = ordered_labels(found.predict, examples(), name)
    if len(set(names)) < 2:
        raise ConfigError(f"victim {name!r}: name its labels in the order of its columns, as in {remedy}")
    known = None if found.words is None else _strings(found.words, name, "words")
    victim = Victim(found.predict, names, name=name, batch_size=settings.batch_size, words=known)
    cut, cut_by = _cutter(settings.segmenter, settings.lexicon)
    identity: dict[str, Any] = {"kind": found.kind, "name": name, "labels": list(names), **found.identity}
    if known is None:
        identity["words"] = "none"
    identity |= {"logits": True} if logits else {}
    declared = sorted(names) == sorted(own)
    return NamedVictim(victim, identity, None, cut, cut_by, own_labels=declared, reads=found.reads, assumed=assumed)


def ordered_labels(predict: Predict, examples: Sequence[Example], name: str) -> tuple[tuple[str, ...], str]:
    """Return the sorted labels of the data as names of the victim's columns, and a note that says so.

    Raises ConfigError: the victim has another number of columns, raises an exception, or is right more often on the first
    texts with the labels in another order (all orders of up to 6 labels are tried, and exchanges of two of more)."""
    found = {example.label for example in examples} - {NO_LABEL}
    labels = sorted(found, key=lambda label: (int(label) if label.isdecimal() else -1, label))
    tried = [example for example in examples if example.label in found][:_TRIED]
    try:
        answer: Any = predict([one.fields[0] if len(one.fields) == 1 else one.fields for one in tried])
        array = np.asarray(answer.detach().cpu() if callable(getattr(answer, "detach", None)) else answer)
    except Exception as error:
        raise ConfigError(f"victim {name!r} raised {type(error).__name__}: {error}") from error
    if array.ndim != 2 or len(array) != len(tried):
        raise ConfigError(
            f"victim {name!r} must give an array of shape {(len(tried), len(labels))} for {len(tried):,} texts, and gave "
            f"{array.shape}"
        )
    if array.shape[1] != len(labels) or len(labels) < 2:
        raise ConfigError(
            f"victim {name!r}: name its labels in the order of its columns, as in --labels negative,positive; it "
            f"gives {array.shape[1]} columns, and the data have {len(labels)} labels: {', '.join(labels[:10])}"
        )
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)  # true label, column
    np.add.at(counts, ([labels.index(one.label) for one in tried], array.argmax(axis=1)), 1)
    columns = list(range(len(labels)))
    swaps = ([*columns[:i], j, *columns[i + 1 : j], i, *columns[j + 1 :]] for i, j in combinations(columns, 2))
    orders = permutations(columns) if len(labels) <= _FEW_LABELS else swaps  # place: column, value: its label
    right, best = int(counts.trace()), max(orders, key=lambda order: counts[list(order), columns].sum())
    better = int(counts[list(best), columns].sum())
    if better > right:
        raise ConfigError(
            f"victim {name!r}: in the order {','.join(labels)} of the data it is right on {percent(right / len(tried))} of "
            f"{len(tried):,} texts, and on {percent(better / len(tried))} in another; name its columns in their order, which "
            f"seems to be: --labels {','.join(labels[column] for column in best)}"
        )
    told = f"labels of the columns: {', '.join(labels)}, taken from the data and sorted; in this order the victim is right on"
    return tuple(labels), f"{told} {percent(right / len(tried))} of {len(tried):,} texts, and in no other order on more"


def is_function(name: str) -> bool:
    """Return whether a victim's name is no run folder."""
    return is_pickle(name) or name.startswith(PREFIX) or (":" in name and not Path(name).exists())


def _cutter(segmenter: str, lexicon: str) -> tuple[Cutter | None, str]:
    if not segmenter:
        if lexicon:
            raise ConfigError(f"--lexicon {lexicon}: it holds the words of a segmenter; add --segmenter fmm or jieba")
        return None, _PIECES
    if Path(segmenter).is_dir():
        return run_cutter(Path(segmenter), lexicon)
    if segmenter.startswith(PREFIX) or (segmenter not in (*CUTS_WORDS, "none") and not is_own("segmenter", segmenter)):
        raise ConfigError(
            f"--segmenter {segmenter}: allowed, to replace words in place, are {', '.join(CUTS_WORDS)}, none "
            "(white space), the folder of a run or package.module:Class; leave it out for texts with blanks between their words"
        )
    opened = segmenter_for(segmenter, lexicon=lexicon or None)
    return opened.segment, opened.description


def _named_object(name: str) -> Any:
    if not all(name.partition(":")[::2]):
        raise ConfigError(f"victim {name!r}: write module:function, as in mine:predict for predict() in mine.py")
    found = imported(f"victim {name!r}", name, "function")
    if not callable(found) and not callable(getattr(found, "predict_proba", None)):
        raise ConfigError(
            f"victim {name!r} is no function and has no predict_proba; it must take a list of texts and give probabilities"
        )
    return found


def _strings(values: Any, name: str, what: str) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ConfigError(f"victim {name!r}: its attribute {what} must be a list of strings, and is {type(values).__name__}")
    found = tuple(values)
    if wrong := [value for value in found if not isinstance(value, str)]:
        raise ConfigError(f"victim {name!r}: its {what} must be strings, and {wrong[0]!r} is {type(wrong[0]).__name__}")
    return found
