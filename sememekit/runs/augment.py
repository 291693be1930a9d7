"""Adversarial training: adversarial examples of one model are added to the training examples of the next."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from sememekit.attack import ExampleResult
from sememekit.corpora.examples import ExampleSet
from sememekit.corpora.examples.labelled import read_labelled, read_records, set_of
from sememekit.data.examples import Examples
from sememekit.data.prepared import PreparedData, token_type
from sememekit.errors import DataError
from sememekit.files import typed

FILE = "augment.jsonl"  # the copy in the run folder, for ``--resume``


def augmented(
    data: PreparedData, path: Path, share: float, seed: int, on_remark: Callable[[str], None] = lambda text: None
) -> PreparedData:
    """Return the data with further training examples. ``path``: ``examples.jsonl`` of an attack, whose successes are added with
    true labels, or labelled texts in the format of the data set. ``share``: the most added examples (a random sample), as a
    share of the training examples; a tenth in the sememe RNN paper. Raises DataError: the file cannot be used, has no success,
    or has a label that the data lack; or an example is in the validation or test split only, so that evaluation would see
    trained examples."""
    train, summary = data.examples("train"), data.signature.examples
    if summary is None or summary.labels is None:
        raise DataError(f"--augment: {data.folder} has no labels; it goes with tasks that have, such as nli and classification")
    kind = set_of(data.signature.dataset, summary.texts)
    segmenter = data.segmenter()

    def ids(texts: Sequence[str]) -> list[list[int]]:
        return [data.vocabulary.encode(segmenter.segment(text)).tolist() for text in texts]

    if path.is_dir():
        if (results := path / "examples.jsonl").is_file():
            wanted = f"the results of the attack are in --augment {typed(results)}"
        else:
            wanted = "give examples.jsonl of an attack on training examples, or a file of texts and labels"
        raise DataError(f"--augment {path}: a folder, where a file is needed; {wanted}")
    held_out = {key for split in data.splits if split != "train" for key in _keys(data.examples(split))} - set(_keys(train))
    found, labels = [], []
    for place, fields, label, origin in _lines(path, kind):
        if len(fields) != train.num_texts:
            raise DataError(f"--augment {path}:{place}: {len(fields)} texts in place of {train.num_texts}")
        if label not in summary.labels:
            raise DataError(f"--augment {path}:{place}: label {label!r} is none of the data's: {', '.join(summary.labels)}")
        if _key(ids(origin)) in held_out:
            raise DataError(
                f"--augment {path}:{place}: this example is in the validation or test split of {data.folder}; attack the model "
                "on its training file instead, or the evaluation would be on what it was trained on"
            )
        found.append(ids(fields))
        labels.append(summary.labels.index(label))
    if not found:
        raise DataError(f"--augment {path}: it has no successful attack, so there is nothing to add to the training data")
    most = max(1, int(share * len(train)))
    chosen = np.arange(len(found))
    if len(found) > most:
        chosen = np.sort(np.random.default_rng([seed, 2]).choice(len(found), size=most, replace=False))
    on_remark(f"augment: {len(chosen):,} of {len(found):,} added to {len(train):,} training examples (augment_share {share:g})")
    texts = [text for number in chosen for text in found[number]]
    extra = Examples(
        tokens=np.array([index for text in texts for index in text], dtype=token_type(len(data.vocabulary))),
        offsets=np.cumsum([0, *map(len, texts)]).astype(np.int64),
        labels=np.array([labels[number] for number in chosen], dtype=np.uint16),
        num_texts=train.num_texts,
    )
    return data.with_more("train", extra)


def kept(data: PreparedData, path: Path) -> bytes:
    """Return the copy of a file of ``--augment`` for the run folder, always as JSON lines."""
    if path.suffix == ".jsonl" or data.signature.examples is None:
        return path.read_bytes()
    kind = set_of(data.signature.dataset, data.signature.examples.texts)
    rows = [dict(zip((*kind.texts, "label"), (*row.texts, row.label), strict=True)) for row in read_labelled(path, kind).rows]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _keys(examples: Examples) -> Iterator[tuple[tuple[int, ...], ...]]:
    for number in range(len(examples)):
        yield _key([text.tolist() for text in examples.texts(number)])


def _key(texts: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(text) for text in texts)


def _lines(path: Path, kind: ExampleSet) -> Iterator[tuple[int, tuple[str, ...], str, tuple[str, ...]]]:
    """(line, texts to learn from, true label, texts that they were made of) of each usable line."""
    records = read_records(path)
    if not records or "outcome" not in records[0][1]:
        for row in read_labelled(path, kind).rows:
            label = row.label or ""
            if label not in kind.left_out:
                yield row.line, row.texts, kind.spelled.get(label, label), row.texts
        return
    for number, record in records:
        try:
            result = ExampleResult.model_validate({key: value for key, value in record.items() if key != "sha256"})
        except ValidationError as error:
            raise DataError(f"--augment {path}:{number}: no result of an attack ({str(error).splitlines()[0]})") from None
        if result.adversarial is not None:
            yield number, result.adversarial, result.label, result.fields
