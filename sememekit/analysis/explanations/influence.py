"""The influence of words and sememes on a label: by leaving each out, and by gradient times input."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sememekit.encoders.sememe_sum import Pi, SememeSum, further_words
from sememekit.errors import ConfigError
from sememekit.layers import evaluating
from sememekit.tasks.classifier import TextClassifier

Ids = npt.NDArray[np.integer]


class SememeInfluence(NamedTuple):
    """Influence of one sememe of one word: the fall of log p(label) without the sememe, and the first-order estimate of this
    fall (gradient of log p(label) along the sememe's vector, times the vector)."""

    sememe: int
    effect: float
    gradient: float


@dataclass(frozen=True)
class PlaceInfluence:
    """A word of one text."""

    effect: float  # fall of log p(label) if the model reads the unknown word in its place
    gradient: float  # the derivative of log p(label) along the word's vector, times the vector
    without_sememes: float | None  # fall of log p(label) if the word loses all its sememes; None if it has none
    sememes: tuple[SememeInfluence, ...]  # the influence of each sememe, removed alone


@dataclass(frozen=True)
class Influence:
    """The influence of words on one decision."""

    log_probs: npt.NDArray[np.float64]  # (C,) log-probabilities of the labels
    label: int  # the id of the label that is explained
    # for each text the influence of each word; None for words that the model does not read
    texts: tuple[tuple[PlaceInfluence | None, ...], ...]


_ALL: Final = -1


@dataclass
class _Variant:
    """A text that differs in one place."""

    text: int
    place: int
    # words, seen: ids of its words, and the ids that look up their sememes in the encoder
    words: Ids
    seen: Ids
    sememe: int | None = None  # the sememe that is removed, ``_ALL`` for all, or None if the word itself is removed


def no_sememes(task: TextClassifier, encoder: str) -> str | None:
    """Return why the encoder of a model reads no sememes, or None if it does."""
    reads = any(isinstance(part, SememeSum) for part in task.encoder.modules())
    return None if reads else f"encoder {encoder!r} of this run reads words and no sememes (encoder.injection)"


def sememes_of(task: TextClassifier, word: int) -> list[int]:
    """Return the ids of the sememes that the encoder reads for a word; empty if it reads none."""
    return next((part.sememes_of(word) for part in task.encoder.modules() if isinstance(part, SememeSum)), [])


def influence(task: TextClassifier, texts: Sequence[Ids], label: int | None = None) -> Influence:
    """Measure how a label's probability changes without each word, and without each sememe of each word.

    A removed word is read as an unknown word: as ``<unk>``, or not at all if the model skips unknown words. A sememe is removed
    from one word in one place: only there the sum pi lacks its vector.

    ``task`` is put into evaluation mode inside; ``texts`` are N arrays of word ids; ``label`` is the id of the label to explain
    (default: the most probable). Raises ConfigError: the vocabulary has no unknown word."""
    unknown = task.vocabulary.unknown_id
    if unknown is None:
        raise ConfigError(
            "the vocabulary has no <unk> to put in the place of a word; prepare the data again with --min-count 2"
        )
    reading = [_reading(task, text) for text in texts]
    variants, sets = _variants(task, texts, reading, unknown)
    with evaluating(task), torch.no_grad(), further_words(task.encoder, sets):
        whole = torch.stack([_vectors(task, [_Variant(n, 0, words, words)])[0] for n, words in enumerate(reading)])
        log_probs = _log_probs(task, [vector[None] for vector in whole])[0]
        chosen = int(log_probs.argmax()) if label is None else label
        changed_log_probs = np.empty(len(variants))
        size = task.settings.evaluation_batch_size
        for begin in range(0, len(variants), size):
            block = variants[begin : begin + size]
            found = _vectors(task, block)
            rows = whole[:, None].expand(-1, len(block), -1).clone()
            for column, variant in enumerate(block):
                rows[variant.text, column] = found[column]
            changed_log_probs[begin : begin + len(block)] = _log_probs(task, list(rows))[:, chosen].cpu().numpy()
    effects = float(log_probs[chosen]) - changed_log_probs
    by_word, by_sememe = _gradients(task, reading, chosen)
    row_of = [{place: row for row, place in enumerate(task.places_read(text).tolist())} for text in texts]
    found_at: dict[tuple[int, int], PlaceInfluence] = {}
    for variant, effect in zip(variants, effects.tolist(), strict=True):
        at = variant.text, variant.place
        row = row_of[variant.text][variant.place]
        if variant.sememe is None:
            same = np.array_equal(variant.words, reading[variant.text])  # an unknown word is one already
            found_at[at] = PlaceInfluence(0.0 if same else effect, by_word[variant.text][row], None, ())
        elif variant.sememe == _ALL:
            found_at[at] = replace(found_at[at], without_sememes=effect)
        else:
            one = SememeInfluence(variant.sememe, effect, by_sememe[variant.text, row, variant.sememe])
            found_at[at] = replace(found_at[at], sememes=(*found_at[at].sememes, one))
    return Influence(
        log_probs=log_probs.cpu().numpy(),
        label=chosen,
        texts=tuple(tuple(found_at.get((number, place)) for place in range(len(text))) for number, text in enumerate(texts)),
    )


def _variants(
    task: TextClassifier, texts: Sequence[Ids], reading: Sequence[Ids], unknown: int
) -> tuple[list[_Variant], list[list[int]]]:
    """Return every text without one word, one or all sememes of a word; and their sememe sets, by ids beyond the vocabulary."""
    sets: list[list[int]] = []
    variants: list[_Variant] = []
    for number, text in enumerate(texts):
        for row, place in enumerate(task.places_read(text).tolist()):
            changed = np.array(text, dtype=np.int64)
            changed[place] = unknown
            words = _reading(task, changed)
            variants.append(_Variant(number, place, words, words))
            own = sememes_of(task, int(reading[number][row]))
            for taken in [*own, _ALL] if own else []:
                seen = reading[number].copy()
                seen[row] = len(task.vocabulary) + len(sets)
                sets.append([sememe for sememe in own if sememe != taken] if taken != _ALL else [])
                variants.append(_Variant(number, place, reading[number], seen, taken))
    return variants, sets


def _reading(task: TextClassifier, text: Ids) -> Ids:
    return np.array([task.word_read(int(text[place])) for place in task.places_read(text)], dtype=np.int64)


def _vectors(task: TextClassifier, variants: Sequence[_Variant]) -> Tensor:
    """Return the vectors (n, H) of texts whose words may have reduced sememe sets."""
    tokens, lengths = task.padded([variant.words for variant in variants])
    seen, _ = task.padded([variant.seen for variant in variants])
    return task.text_vectors(seen, lengths, task.embedding(tokens))


def _log_probs(task: TextClassifier, vectors: Sequence[Tensor]) -> Tensor:
    """(n, C) log-probabilities in float64, from the vectors (n, H) of each text."""
    return task.choose(vectors).double().log_softmax(-1)


def _gradients(
    task: TextClassifier, reading: Sequence[Ids], label: int
) -> tuple[list[list[float]], dict[tuple[int, int, int], float]]:
    """Return gradient times input of log p(label), for each word that is read and each (text, word number, sememe)."""
    places = [(text, place) for text, words in enumerate(reading) for place in range(len(words))]
    sets = [sememes_of(task, int(reading[text][place])) for text, place in places]
    numbers = np.split(np.arange(len(sets)) + len(task.vocabulary), np.cumsum([len(words) for words in reading[:-1]]))
    kept: list[tuple[SememeSum, Tensor, Pi]] = []

    def keep(module: SememeSum, given: tuple[Tensor], pi: Pi) -> None:
        kept.append((module, given[0], pi))

    sums = {part for part in task.encoder.modules() if isinstance(part, SememeSum)}
    hooks = [part.register_forward_hook(keep) for part in sums]
    by_word: list[list[float]] = []
    by_sememe: dict[tuple[int, int, int], float] = defaultdict(float)
    try:
        # The fused kernels of a GPU have no backward pass in evaluation mode.
        with (
            evaluating(task),
            further_words(task.encoder, sets),
            torch.backends.cudnn.flags(enabled=False),
            torch.enable_grad(),
        ):
            inputs, vectors = [], []
            for words, seen in zip(reading, numbers, strict=True):
                tokens, lengths = task.padded([words])
                x = task.embedding(tokens).detach().requires_grad_()
                inputs.append(x)
                vectors.append(task.text_vectors(task.padded([seen if sums else words])[0], lengths, x))
            target = task.choose(vectors).double().log_softmax(-1)[0, label]
            found = torch.autograd.grad(target, [*inputs, *(pi.rows for _, _, pi in kept)], allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
    for x, gradient in zip(inputs, found, strict=False):
        each = torch.zeros(len(x)) if gradient is None else (gradient * x).sum(-1)[:, 0]
        by_word.append(each[1:-1].tolist())
    for (module, tokens, pi), gradient in zip(kept, found[len(inputs) :], strict=True):
        if gradient is None:
            continue
        along = gradient @ module.vectors.detach().T
        for token, row in zip(tokens.flatten().tolist(), pi.where.flatten().tolist(), strict=True):
            number = token - len(task.vocabulary)
            for sememe in sets[number] if number >= 0 else ():
                by_sememe[*places[number], sememe] += float(along[row, sememe])
    return by_word, by_sememe
