"""Sampling text from a language model."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from sememekit.config import Record, Seed, Settings, read_settings
from sememekit.errors import ConfigError
from sememekit.files import warn
from sememekit.runs.run import Run
from sememekit.runs.uncut import CUT_FIRST, refuse_unknown, warn_uncut
from sememekit.search import BeamSettings, beam_search
from sememekit.tasks.base import WordPredictor, require
from sememekit.text.scripts import HAN
from sememekit.text.vocabulary import END, STOP, UNKNOWN, Vocabulary


class GenerateReport(Record):
    """Text drawn from a model."""

    prompt: tuple[str, ...]
    """The first words, as the model read them."""
    tokens: tuple[str, ...]
    """The generated words."""
    text: str
    """Prompt and generated words, with blanks between; ``<eos>`` ends a line."""
    nats: float
    """Summed negative log-probability of the generated words, before temperature and top-k."""
    seed: int
    """Random seed of the text."""


class Drawing(Settings):
    """Settings of sampling: ``temperature`` 0 takes the most probable word, 1 samples from the model's probabilities."""

    num_tokens: int = Field(default=30, ge=1)
    temperature: float = Field(default=1.0, ge=0.0, allow_inf_nan=False)
    top_k: int = Field(default=0, ge=0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    stop: tuple[str, ...] = ()
    unknown: bool = False
    seed: Seed = 1


def generate(
    run: Path | Run,
    prompt: str = "",
    *,
    num_tokens: int = 30,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    stop: Sequence[str] = (),
    beam: int = 0,
    unknown: bool = False,
    seed: Seed = 1,
) -> GenerateReport:
    """Sample words from a trained model, one after the other; arguments as ``sememekit generate --help``.

    A model of sentences that end with ``<eos>`` reads an ``<eos>`` before the prompt. Other models without a prompt draw the
    first word by the counts of the vocabulary. The prompt is normalised like the data (lower case, half width, a word for
    numbers); a RunWarning names words that the model does not know. Drawing is on the CPU, so that a seed gives the same words.

    With ``beam`` the text is the best of a beam search of this size, by log-probability per word, up to ``<eos>`` if the model
    has it; ``temperature``, ``top_k`` and ``top_p`` are refused. A word of ``stop`` ends the text and is its last word.

    Raises ConfigError: the task predicts no words, or a number is out of its range. Raises DataError: a word of the prompt that
    a vocabulary without ``<unk>`` lacks."""
    common: dict[str, Any] = {"num_tokens": num_tokens, "stop": stop, "unknown": unknown, "seed": seed}
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    if beam:
        if name := next((one for one, value in drawing.items() if value != Drawing.model_fields[one].default), None):
            raise ConfigError(f"{name}: a beam draws nothing; leave {name} or beam out")
        return _searched(Run.open(run), prompt, beam, **common)
    *_, report = stream_words(run, prompt, **drawing, **common)
    assert isinstance(report, GenerateReport)
    return report


def stream_words(run: Path | Run, prompt: str, **options: Any) -> Iterator[str | GenerateReport]:
    """Yield each word as soon as it is drawn, and at last the report; options as ``Drawing``, errors as ``generate``."""
    how = read_settings(Drawing, options, "generate")
    loaded = Run.open(run)
    task, vocabulary = require(loaded.task, WordPredictor, "generate"), loaded.vocabulary
    words = _prompt(loaded, prompt)
    ends = _ends(loaded, how.stop)
    draw = _drawer(how, None if how.unknown else vocabulary.unknown_id)
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
    while len(added) < how.num_tokens and not (added and added[-1] in ends):
        with torch.no_grad():  # it belongs to the thread, so it ends before the word is given away
            hidden, state = task.contexts(ids, state)
            log_probs = task.decoder.log_probs(hidden[-1])[0].double().cpu()
        word = draw(log_probs)
        nats -= float(log_probs[word])
        added = [*added, word]
        ids = torch.tensor([[word]], device=task.device)
        yield vocabulary.token(word)
    yield _report(vocabulary, words, added, nats, how.seed)


@torch.no_grad()
def _searched(
    loaded: Run, prompt: str, beam: int, num_tokens: int, stop: Sequence[str], unknown: bool, seed: int
) -> GenerateReport:
    task, vocabulary = require(loaded.task, WordPredictor, "generate"), loaded.vocabulary
    words = _prompt(loaded, prompt)
    end = next(iter(_ends(loaded, stop)), vocabulary.end_id)
    read = [vocabulary.end_id, *words] if loaded.signature.end_of_sentence and vocabulary.end_id is not None else words
    if not read or len(stop) > 1:
        raise ConfigError("generate --beam needs a prompt, and one --stop at most")
    state = task.encoder.start(1)
    if len(read) > 1:
        state = task.contexts(torch.tensor(read[:-1], device=task.device)[:, None], state)[1]

    def step(words_BK: Tensor, state: Any, memory: Any, count: int) -> tuple[Tensor, Tensor, Any, Tensor]:
        hidden, state = task.contexts(words_BK.flatten()[None], state)
        values, ids = task.decoder.topk_words(hidden[0], count)
        return values, ids, state, torch.zeros(len(values), dtype=torch.long, device=values.device)

    settings = read_settings(BeamSettings, {"beam_size": beam, "max_length": num_tokens}, "generate --beam")
    banned = [vocabulary.unknown_id] if vocabulary.unknown_id is not None and not unknown else []
    end = len(vocabulary) if end is None else end
    [[best]] = beam_search(step, state, (), begin=read[-1], end=end, settings=settings, banned=banned)
    return _report(vocabulary, words, [*best.words, *([end] if best.ended else [])], best.nats, seed)


def _ends(loaded: Run, stop: Sequence[str]) -> set[int]:
    """The ids of words that end a text."""
    words = [loaded.form().word(word) for word in stop]
    if absent := [word for word in words if word not in loaded.vocabulary]:
        file = loaded.folder.file("vocabulary.tsv")
        raise ConfigError(f"--stop {absent[0]}: the model does not know this word and never writes it; its words are in {file}")
    return set(map(loaded.vocabulary.id, words))


def _prompt(loaded: Run, prompt: str) -> list[int]:
    """The words of a prompt as the model reads them."""
    form, vocabulary = loaded.form(), loaded.vocabulary
    words = vocabulary.encode(form.word(word) for word in prompt.split()).tolist()
    refuse_unknown(loaded, map(form.word, prompt.split()), "the prompt")
    pairs = zip(prompt.split(), words, strict=True)
    unknown = [word for word, index in pairs if index == vocabulary.unknown_id and word != UNKNOWN]
    if unknown and not warn_uncut(unknown, CUT_FIRST):
        cut = "; Chinese is cut first: sememekit segment" if any(map(HAN.search, unknown)) else ""
        warn(f"words of the prompt that the model does not know, read as {UNKNOWN}: {' '.join(unknown)}{cut}")
    return words


def _report(vocabulary: Vocabulary, words: list[int], added: list[int], nats: float, seed: int) -> GenerateReport:
    prompt, tokens = tuple(vocabulary.decode(words)), tuple(vocabulary.decode(added))
    text = " ".join("\n" if token in (END, STOP) else token for token in (*prompt, *tokens))
    lines = "\n".join(line.strip(" ") for line in text.split("\n")).strip("\n")
    return GenerateReport(prompt=prompt, tokens=tokens, text=lines, nats=nats, seed=seed)


def _drawer(how: Drawing, banned: int | None) -> Callable[[Tensor], int]:
    """Return a function that draws a word id from log-probabilities (V,)."""
    generator = torch.Generator().manual_seed(how.seed)

    def draw(log_probs: Tensor) -> int:
        if banned is not None and len(log_probs) > 1:
            log_probs = log_probs.index_fill(0, torch.tensor([banned]), -torch.inf)
        if how.temperature == 0.0:
            return int(log_probs.argmax())
        if how.top_k:
            kept = log_probs.topk(min(how.top_k, len(log_probs))).indices
            log_probs = torch.full_like(log_probs, -torch.inf).index_copy(0, kept, log_probs[kept])
        # Subtracting the largest first keeps a small temperature from overflowing.
        probabilities = ((log_probs - log_probs.max()) / how.temperature).softmax(dim=0)
        if how.top_p < 1.0:  # the most probable words that have this share together; the first always
            ordered, order = probabilities.sort(descending=True, stable=True)
            probabilities = probabilities.index_fill(0, order[ordered.cumsum(0) - ordered >= how.top_p], 0.0)
        return int(torch.multinomial(probabilities, 1, generator=generator))

    return draw
