"""Classifiers of other libraries as victims: model folders and pipelines of transformers, scikit-learn, TextAttack.

Everything becomes a function from a list of texts (strings, or tuples of strings) to an array of probabilities (N, C)."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from sememekit.attack.searches import softmax
from sememekit.config import trusted_code
from sememekit.errors import ConfigError
from sememekit.files import needed, warn
from sememekit.runs.build import device_of
from sememekit.text.huggingface import PREFIX, asked_of_transformers, load_published, model_folder, positions_of

Predict = Callable[[list[Any]], Any]
Reads = Callable[[tuple[str, ...]], tuple[int, ...]]

PICKLES: Final = (".joblib", ".pkl", ".pickle")
_AT_ONCE: Final = 64  # batch size of a model of transformers
_NO_LIMIT: Final = 1 << 30  # pieces of a text; tokenizers cannot take the 1e30 that stands for "no limit" in their settings
_TOLERANCE: Final = 1e-2  # largest distance from 1 of the sum of a row that counts as probabilities, as in TextAttack


@dataclass(frozen=True)
class Adapted:
    """A classifier as a function, with the labels, words and identity that it declares."""

    predict: Predict  # texts -> (N, C)
    labels: Any = ()  # names of the C columns in order; empty if it declares none
    words: Any = None  # the words that it knows, if it declares any
    kind: str = "function"  # of ``attack.json``: "function" or "hf"
    identity: dict[str, str] = field(default_factory=dict)  # further keys of ``attack.json`` that identify the classifier
    reads: Reads | None = None  # one or several texts -> number of characters that it reads of each; None if unknown


def adapted(victim: Any, *, logits: bool = False) -> Adapted:
    """Adapt an object of the user as a victim: a pipeline of transformers that classifies texts, a model wrapper of TextAttack,
    anything with ``predict_proba``, a bound method of it, or a function. With ``logits``, or an attribute of that name, a
    softmax is applied to its outputs. Raises ConfigError: it cannot be called, or does not return probabilities of labels."""
    if _is_a(victim, "transformers", "Pipeline"):
        if logits:
            raise ConfigError("attack: a pipeline of transformers gives probabilities; leave logits out")
        return _pipeline(victim)
    proba = getattr(victim, "predict_proba", None)
    function = proba if callable(proba) else victim
    if not callable(function):
        raise ConfigError(
            "attack: a victim is a function from texts to probabilities, an object with predict_proba, a pipeline of "
            f"transformers or a run, given {type(victim).__name__}"
        )
    owner = getattr(function, "__self__", victim)  # of a bound method such as model.predict_proba
    labels = getattr(owner, "labels", None)
    if labels is None:
        labels = [str(label) for label in getattr(owner, "classes_", ())]
    predict: Predict = function
    if logits or getattr(owner, "logits", False) is True:
        predict = _of_logits(function)
    elif _is_a(victim, "textattack", "ModelWrapper"):
        predict = _of_logits(function, where_needed=True)
    return Adapted(predict, labels, getattr(owner, "words", None))


def _is_a(victim: Any, package: str, name: str) -> bool:
    """Return whether an object is of the class ``package.name``, without importing the package."""
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == package for kind in type(victim).__mro__)


def _of_logits(function: Predict, *, where_needed: bool = False) -> Predict:
    """Turn a function of logits into one of probabilities; ``where_needed``: rows that do not sum to 1, as in TextAttack."""

    def predict(texts: list[Any]) -> Any:
        found = function(texts)
        array = np.asarray(found.detach().cpu() if callable(getattr(found, "detach", None)) else found, dtype=np.float64)
        sums_to_one = array.ndim == 2 and (array >= 0).all() and (abs(array.sum(axis=1) - 1) <= _TOLERANCE).all()
        return array if where_needed and sums_to_one else softmax(array)

    return predict


def _pipeline(pipe: Any) -> Adapted:
    if getattr(pipe, "task", "") not in ("text-classification", "sentiment-analysis"):
        raise ConfigError(f"attack: a pipeline that classifies texts is needed, and this one is of the task {pipe.task!r}")
    labels = _labels_of(pipe.model.config, "the model of the pipeline")
    longest = _longest(pipe.model, pipe.tokenizer)

    def predict(texts: list[Any]) -> NDArray[np.float64]:
        asked = [text if isinstance(text, str) else dict(zip(("text", "text_pair"), text, strict=True)) for text in texts]
        found = pipe(asked, top_k=None, function_to_apply="softmax", truncation=True, max_length=longest)
        rows = [{one["label"]: one["score"] for one in answer} for answer in found]
        return np.array([[row[label] for label in labels] for row in rows], dtype=np.float64)

    return Adapted(predict, labels, reads=_reads(pipe.tokenizer, longest))


def _labels_of(config: Any, what: str) -> list[str]:
    """Return the label names by column; ConfigError if the labels do not exclude each other."""
    labels = [str(config.id2label[index]) for index in range(len(config.id2label))]
    if len(labels) < 2 or getattr(config, "problem_type", None) in ("regression", "multi_label_classification"):
        told = "gives one number" if len(labels) < 2 else f"is made for {config.problem_type}"
        raise ConfigError(f"attack: {what} {told}, and a victim gives the probabilities of labels that exclude each other")
    return labels


def classifier_folder(name: str, device: str = "auto") -> Adapted:
    """The victim ``hf:PATH``: a sequence classifier of transformers and its tokenizer, of single texts or of pairs.

    Probabilities are the softmax of its logits, in float64; a model whose code computes parts in float32 is read in float32,
    with a warning. Texts are cut at the length of the model. Nothing is downloaded,
    and weights are read only as safetensors. Raises ConfigError: no such folder, an untrained head, or overlapping labels."""
    use = f"victim {name!r}"
    kind, auto = "AutoModelForSequenceClassification", needed("transformers", use).AutoTokenizer
    folder = model_folder(name.removeprefix(PREFIX), use, kind)
    given = {"local_files_only": True, "trust_remote_code": False}
    tokenizer = asked_of_transformers(use, "tokenizer", str(folder), lambda: auto.from_pretrained(folder, **given))
    special = {index for index, token in tokenizer.added_tokens_decoder.items() if token.special}
    pieces = {piece: index for piece, index in tokenizer.get_vocab().items() if index not in special}
    model = load_published(folder, use, kind, "sequence classifier", pieces, "float64")
    labels = _labels_of(model.config, str(folder))
    if not _computes_in_double(model, tokenizer):
        warn(f"{use}: its code computes parts in float32, so all of it is read in float32")
        model.float()
    model.to(device_of(device))
    files = [folder / "config.json", *sorted(folder.glob("*.safetensors")), folder / "tokenizer.json"]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes() if file.is_file() else b"")
    longest = _longest(model, tokenizer)
    predict, identity = _classifier(model, tokenizer, longest), {"sha256": digest.hexdigest()}
    return Adapted(predict, labels, kind="hf", identity=identity, reads=_reads(tokenizer, longest))


@torch.no_grad()
def _computes_in_double(model: Any, tokenizer: Any) -> bool:
    """Return False if the code of a model with weights in float64 makes parts in float32, as the code of XLNet does."""
    try:
        model(**tokenizer("a", return_tensors="pt"))
    except Exception as error:  # any other fault comes again with the texts, and is reported there
        return not ("Float" in str(error) and "Double" in str(error))
    return True


def _longest(model: Any, tokenizer: Any) -> int:
    """Return the largest number of pieces in a text."""
    positions = positions_of(model.config) or tokenizer.model_max_length
    tables = (part for name, part in model.named_modules() if name.endswith("position_embeddings"))
    padded = (getattr(part, "padding_idx", None) for part in tables)
    behind = next((index + 1 for index in padded if index is not None), 0)  # RoBERTa counts positions from behind the padding
    return min(int(positions) - behind, int(tokenizer.model_max_length), _NO_LIMIT)


def _reads(tokenizer: Any, longest: int) -> Reads:
    """Return a function texts -> characters within ``longest`` pieces, by offsets of the tokenizer or by trying prefixes."""

    def pieces(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def beginning(text: str, most: int) -> int:
        return bisect_right(range(len(text) + 1), most, key=lambda end: len(pieces(text[:end]))) - 1

    def reads(texts: tuple[str, ...]) -> tuple[int, ...]:
        whole = tuple(map(len, texts))
        too_many = len(tokenizer(*texts, truncation=False, verbose=False)["input_ids"]) - longest
        if too_many <= 0:
            return whole
        if tokenizer.truncation_side != "right":
            raise ConfigError("attack: the victim's tokenizer cuts long texts on the left; set its truncation_side to right")
        if not tokenizer.is_fast:
            left = tokenizer.truncate_sequences(*map(pieces, texts), num_tokens_to_remove=too_many)
            return tuple(beginning(text, len(kept)) for text, kept in zip(texts, left, strict=False))
        kept = tokenizer(*texts, truncation=True, max_length=longest, return_offsets_mapping=True)
        ends = [0] * len(texts)
        for side, (_, end) in zip(kept.sequence_ids(), kept["offset_mapping"], strict=True):
            if side is not None:
                ends[side] = max(ends[side], end)
        return tuple(ends)

    return reads


def _classifier(model: Any, tokenizer: Any, longest: int) -> Predict:
    tokenizer.padding_side = "right"  # on the left, padding moves absolute positions, and answers depend on the batch
    if getattr(model.config, "pad_token_id", None) is None:  # the head looks for the last piece before the padding
        model.config.pad_token_id = tokenizer.pad_token_id
    rows = model.get_input_embeddings().num_embeddings
    at_once = _AT_ONCE if tokenizer.pad_token is not None and tokenizer.pad_token_id < rows else 1

    @torch.no_grad()
    def logits(texts: list[Any]) -> NDArray[np.float64]:
        parts = [list(part) for part in zip(*((text,) if isinstance(text, str) else text for text in texts), strict=True)]
        read = tokenizer(*parts, padding=at_once > 1, truncation=True, max_length=longest, return_tensors="pt")
        return np.asarray(model(**read.to(model.device)).logits.double().cpu())

    def predict(texts: list[Any]) -> NDArray[np.float64]:
        return softmax(np.concatenate([logits(texts[at : at + at_once]) for at in range(0, len(texts), at_once)]))

    return predict


def is_pickle(name: str) -> bool:
    """Return whether a victim's name is a file with a pickled object."""
    return name.endswith(PICKLES) and Path(name).is_file()


def pickled(name: str, *, logits: bool = False) -> Adapted:
    """The victim in a file of joblib or pickle. Raises ConfigError: code in files is not trusted, or the object is no victim.

    Reading such a file runs any code that its author put in."""
    if trusted_code() is not None:
        raise ConfigError(
            f"victim {name!r}: a pickle is a program, and reading it runs whatever its maker put in; if you trust them, add "
            "--trust-code; or load it yourself in a module, as in mine:model with model = joblib.load(...) in mine.py"
        )
    use = f"victim {name!r}"
    reader = needed("joblib", use, "joblib") if name.endswith(".joblib") else import_module("pickle")
    try:
        with Path(name).open("rb") as stream:
            found = reader.load(stream)
    except Exception as error:
        raise ConfigError(f"{use}: cannot be read ({type(error).__name__}: {error})") from error
    return adapted(found, logits=logits)
