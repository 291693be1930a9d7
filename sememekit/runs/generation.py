"""Sampling text from a language model."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from sememekit.config import Record, Seed
from sememekit.errors import ConfigError
from sememekit.files import RunWarning
from sememekit.runs.run import Run
from sememekit.runs.uncut import CUT_FIRST, refuse_unknown, warn_uncut
from sememekit.tasks.base import WordPredictor, require
from sememekit.text.scripts import HAN
from sememekit.text.vocabulary import END, STOP, UNKNOWN, Vocabulary


class GenerateReport(Record):
    """Text drawn from a model.

    Attributes:
        prompt: the words to begin with, as the model read them.
        tokens: the words that were added.
        text: both, with blanks between; ``<eos>`` ends a line.
        nats: summed negative log-probability of the added words, before temperature and top-k.
    """

    prompt: tuple[str, ...]
    tokens: tuple[str, ...]
    text: str
    nats: float
    seed: int


def generate(
    run: Path | Run,
    prompt: str = "",
    *,
    num_tokens: int = 30,
    temperature: float = 1.0,
    top_k: int = 0,
    unknown: bool = False,
    seed: Seed = 1,
) -> GenerateReport:
    """Sample words from a trained model, one after the other; arguments as ``sememekit generate --help``.

    A model of sentences that end with ``<eos>`` reads one before the prompt. Any other model that is given no prompt draws
    its first word by the counts of the vocabulary. The prompt is brought into the form of the data (lower case, half width, a
    word for numbers); words that the model does not know are told by a RunWarning. Words are drawn on the CPU, so that the same
    seed gives the same words.

    Raises ConfigError: the task predicts no words, or a number is out of its range. Raises DataError: a word of the prompt that
    a vocabulary without ``<unk>`` lacks."""
    words = stream_words(run, prompt, num_tokens=num_tokens, temperature=temperature, top_k=top_k, unknown=unknown, seed=seed)
    *_, report = words
    assert isinstance(report, GenerateReport)
    return report


def stream_words(
    run: Path | Run,
    prompt: str,
    *,
    num_tokens: int,
    temperature: float,
    top_k: int,
    unknown: bool,
    seed: int,
) -> Iterator[str | GenerateReport]:
    """Give each word as soon as it is drawn, and at last the report; arguments and errors as ``generate``."""
    _check(num_tokens, temperature, top_k)
    loaded = Run.open(run)
    task, vocabulary = require(loaded.task, WordPredictor, "generate"), loaded.vocabulary
    form = loaded.form()
    words = vocabulary.encode(form.word(word) for word in prompt.split()).tolist()
    refuse_unknown(loaded, map(form.word, prompt.split()), "the prompt")
    _warn_unknown([word for word, index in zip(prompt.split(), words, strict=True) if index == vocabulary.unknown_id])
    generator = torch.Generator().manual_seed(seed)
    banned = vocabulary.unknown_id if not unknown else None
    draw = _drawer(temperature, top_k, banned, generator)
    added: list[int] = []
    nats = 0.0
    read = [vocabulary.end_id, *words] if loaded.signature.end_of_sentence else words
    if not read:
        counts = torch.from_numpy(vocabulary.counts.copy()).double()
        log_probs = (counts / counts.sum()).log()
        read = added = [draw(log_probs)]
        nats = -float(log_probs[added[0]])
        yield vocabulary.token(added[0])
    state = task.encoder.start(1)
    ids = torch.tensor(read, device=task.device)[:, None]
    while len(added) < num_tokens:
        with torch.no_grad():  # it belongs to the thread, so it ends before the word is given away
            hidden, state = task.contexts(ids, state)
            log_probs = task.decoder.log_probs(hidden[-1])[0].double().cpu()
        word = draw(log_probs)
        nats -= float(log_probs[word])
        added = [*added, word]
        ids = torch.tensor([[word]], device=task.device)
        yield vocabulary.token(word)
    yield GenerateReport(
        prompt=tuple(vocabulary.decode(words)),
        tokens=tuple(vocabulary.decode(added)),
        text=_text(vocabulary, [*words, *added]),
        nats=nats,
        seed=seed,
    )


def _warn_unknown(unknown: list[str]) -> None:
    unknown = [word for word in unknown if word != UNKNOWN]
    if unknown and not warn_uncut(unknown, CUT_FIRST):
        cut = "; Chinese is cut first: sememekit segment" if any(map(HAN.search, unknown)) else ""
        told = f"words of the prompt that the model does not know, read as {UNKNOWN}: {' '.join(unknown)}{cut}"
        warnings.warn(told, RunWarning, stacklevel=3)


def _check(num_tokens: int, temperature: float, top_k: int) -> None:
    if num_tokens < 1:
        raise ConfigError(f"num_tokens must be at least 1, given {num_tokens}")
    if not 0.0 <= temperature < float("inf"):
        raise ConfigError(
            f"temperature must be 0 or more, given {temperature}; 0 takes the most probable word, 1 draws as the model says"
        )
    if top_k < 0:
        raise ConfigError(f"top_k must be 0 (all words) or more, given {top_k}")


def _drawer(temperature: float, top_k: int, banned: int | None, generator: torch.Generator) -> Callable[[Tensor], int]:
    """A function from log-probabilities (V,) to a word id."""

    def draw(log_probs: Tensor) -> int:
        if banned is not None and len(log_probs) > 1:
            log_probs = log_probs.index_fill(0, torch.tensor([banned]), -torch.inf)
        if temperature == 0.0:
            return int(log_probs.argmax())
        if top_k:
            kept = log_probs.topk(min(top_k, len(log_probs))).indices
            log_probs = torch.full_like(log_probs, -torch.inf).index_copy(0, kept, log_probs[kept])
        # Subtracting the largest first keeps a small temperature from overflowing.
        probabilities = ((log_probs - log_probs.max()) / temperature).softmax(dim=0)
        return int(torch.multinomial(probabilities, 1, generator=generator))

    return draw


def _text(vocabulary: Vocabulary, words: list[int]) -> str:
    lines: list[list[str]] = [[]]
    for token in vocabulary.decode(words):
        if token in (END, STOP):
            lines.append([])
        else:
            lines[-1].append(token)
    return "\n".join(" ".join(line) for line in lines).strip("\n")
