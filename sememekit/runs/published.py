"""A language model of Hugging Face as a run without training, for commands that take a run."""

import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sememekit.config import resources_folder
from sememekit.corpora.opening import open_corpus
from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder
from sememekit.encoders.base import Encoded, Encoder, State
from sememekit.encoders.piece_model import PieceModel
from sememekit.errors import ConfigError, DataError
from sememekit.files import at_home, read_bytes, read_sealed, replace_file, sealed, warn
from sememekit.prepare.pipeline import Pipeline
from sememekit.prepare.segmentation import own_cutting
from sememekit.prepare.settings import PreprocessSettings
from sememekit.progress import silent
from sememekit.runs.plan import read_plan
from sememekit.runs.run import SIGNATURE, Run
from sememekit.sememes import words_of_lexicons
from sememekit.sememes.building import BLANK
from sememekit.tasks.base import Task, WordPredictor, require
from sememekit.tasks.language_model import LanguageModel
from sememekit.text.huggingface import PIECES, PREFIX, blank_before, local_folder
from sememekit.text.pieces import whole_words
from sememekit.text.vocabulary import Vocabulary
from sememekit.training import RunFolder

LEAST: Final = 0.01  # prefixes of words below this probability are not extended: longer words have probability zero
_FORMAT: Final = 1  # of stored means; another number makes them anew

_held: list[TemporaryDirectory[str]] = []  # temporary folders, which are removed when the process ends


def is_published(model: Path | str | Run) -> bool:
    """Return whether a run is named as ``hf:PATH``."""
    return str(model).startswith(PREFIX)


class PieceTree:
    """Words as sequences of pieces: the id of each word, and the possible next pieces after each prefix."""

    def __init__(self, words: Iterable[tuple[int, ...]]) -> None:
        self.number = {pieces: number for number, pieces in enumerate(words)}
        self.next: dict[tuple[int, ...], dict[int, None]] = {}
        for pieces in self.number:
            for size, piece in enumerate(pieces):
                self.next.setdefault(pieces[:size], {})[piece] = None

    def longest(self, pieces: Iterable[int]) -> list[int]:
        """Cut a sequence of pieces into the longest words, from left to right, and return their ids; each piece is a word."""
        ids, place, found = tuple(map(int, pieces)), 0, list[int]()
        while place < len(ids):
            end = best = place + 1
            while ids[place:end] in self.next and end < len(ids):
                end += 1
                best = end if ids[place:end] in self.number else best
            found.append(self.number[ids[place:best]])
            place = best
        return found


@final
class PiecesSoFar(Encoder):
    """Contexts for ``PieceWords``: the ids of the pieces read so far, each plus one, padded with zeros.

    A context that exceeds ``limit`` pieces keeps its last half, so that the contexts of a text begin alike and are read in one
    pass."""

    def __init__(self, words: Sequence[tuple[int, ...]], limit: int) -> None:
        nn.Module.__init__(self)
        self._words, self.output_size = words, limit

    def start(self, batch_size: int) -> State:
        return (torch.zeros(batch_size, self.output_size),)

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        hidden = torch.zeros(*tokens.shape, self.output_size, device=tokens.device)
        rows = [pieces_of(row) for row in state[0]]
        for step, words in enumerate(tokens.tolist()):
            for column, word in enumerate(words):
                rows[column] = [*rows[column], *self._words[word]]
                if len(rows[column]) > self.output_size:
                    rows[column] = rows[column][-(self.output_size // 2) :]
                hidden[step, column, : len(rows[column])] = torch.tensor(rows[column], device=hidden.device) + 1
        return Encoded(hidden, (hidden[-1],), (hidden,))


def pieces_of(context: Tensor) -> list[int]:
    """The pieces that a context (W,) of ``PiecesSoFar`` holds."""
    return [int(number) - 1 for number in context.tolist() if number]


@final
class PieceWords(Decoder):
    """Words of one or several pieces, with the probabilities of a model that predicts pieces; nothing is trained.

    p(word) is the probability that it is the longest word with which the next pieces begin, so all words sum to one. p(pieces)
    is the product of p(piece | context and the pieces before it); a masked model predicts each piece at a mask after these.
    Prefixes with p below ``LEAST`` are not extended: they keep the probability of longer words."""

    def __init__(self, model: PieceModel, words: Sequence[tuple[int, ...]]) -> None:
        nn.Module.__init__(self)
        self.model, self._num_words, self._tree = model, len(words), PieceTree(words)
        self._after = cache(self._after_node)

    def _after_node(self, begun: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the possible next pieces, the words that end with them (-1 for none), and whether longer words continue."""
        pieces = [*self._tree.next[begun]]
        words = np.array([self._tree.number.get((*begun, piece), -1) for piece in pieces])
        return np.array(pieces), words, np.array([(*begun, piece) in self._tree.next for piece in pieces])

    def log_probs(self, hidden: Tensor) -> Tensor:
        lefts = [pieces_of(row) for row in hidden.reshape(-1, hidden.shape[-1])]
        found = np.zeros((len(lefts), self._num_words))
        for rows, after_NP, further in self.model.after(lefts):
            # Each open beginning: its row, its pieces, its probability, and the longest word on the way, which has it so far.
            opened: list[tuple[int, tuple[int, ...], float, int]] = [(row, (), 1.0, -1) for row in rows]
            while opened:
                longer = []
                for (row, begun, reached, holder), after_P in zip(opened, after_NP.exp().cpu().numpy(), strict=True):
                    pieces, words, goes_on = self._after(begun)
                    known = pieces < len(after_P)  # a special piece may have no row in the model
                    shares, whole = np.zeros(len(pieces)), words >= 0
                    shares[known] = reached * after_P[pieces[known]].astype(np.float64)
                    found[row, words[whole]] += shares[whole]
                    if holder >= 0:
                        found[row, holder] -= shares[whole].sum()
                    for at in np.flatnonzero(goes_on & (shares >= LEAST)).tolist():
                        word = int(words[at]) if whole[at] else holder
                        longer.append((row, (*begun, int(pieces[at])), float(shares[at]), word))
                opened = longer
                if opened:
                    after_NP = further([(row, begun) for row, begun, *_ in opened])
        logs = np.log(np.maximum(found, np.finfo(np.float32).tiny))
        return torch.from_numpy(logs).to(hidden).view(*hidden.shape[:-1], -1)

    def nll(self, hidden: Tensor, target: Tensor) -> Tensor:
        return -self.log_probs(hidden).gather(-1, target[..., None])[..., 0]


class PublishedRun(Run):
    """A causal or masked model of Hugging Face as a run: its words are its pieces, and lexicon words as sequences of pieces.

        run = PublishedRun("hf:models/gpt2", data, sources=["open"])
        run.task.decoder.log_probs(context)      # of EvenSenses over PieceWords

    ``words`` has the pieces of each word, and ``in_text`` marks lexicon words in their form in a text. Other pieces are parts
    of words, or words spelled without the blank.

    ``data`` are prepared by its tokenizer, for counts and means (default: a few shipped sentences, without useful counts).
    ``sources`` are lexicons whose words it predicts as wholes, and whose senses it gets, as in ``Run.open``.

    Raises ConfigError: as ``PieceModel``, or the data are not in its pieces."""

    def __init__(
        self, name: str, data: Path | None = None, *, sources: Sequence[str] = (), device: str = "auto", dtype: str = "float32"
    ) -> None:
        self._name, self.model = name, PieceModel(name.removeprefix(PREFIX))
        _held.append(TemporaryDirectory(prefix="sememekit-"))
        folder, tokenizer = Path(_held[-1].name), self.model.tokenizer
        self._pieces = PreparedData.open(data or _shipped_text(name, folder / "data"))
        own = self._pieces.folder / PIECES
        known = [tokenizer.id(piece) for piece in self._pieces.vocabulary.tokens]
        if not own.is_file() or read_bytes(own, ConfigError) != tokenizer.content or None in known:
            raise ConfigError(
                f"{name}: the text of {data} was not cut by its tokenizer; prepare it with: sememekit preprocess "
                f"{self._pieces.signature.dataset} SOURCE --segmenter {name} --no-end-of-sentence --out DIR"
            )
        self._piece_of = np.array(known)
        spelled: dict[str, tuple[int, ...]] = {piece: (number,) for number, piece in enumerate(tokenizer.names)}
        words = sorted(word for word in (words_of_lexicons(sources) if sources else ()) if word.split() == [word])
        spelt = {
            ids: word for word, ids in zip(words, tokenizer.of_words(words), strict=True) if tokenizer.unknown_id not in ids
        }
        for ids, word in spelt.items():
            if len(ids) > 1:
                spelled.setdefault((BLANK if blank_before(word, "auto") else "") + word, ids)
        self._tree = PieceTree(spelled.values())
        train = self._pieces.tokens("train" if "train" in self._pieces.splits else self._pieces.splits[0])
        counts, names = Counter(self._tree.longest(self._piece_of[train])), [*spelled]
        vocabulary = Vocabulary.from_counts({names[number]: count for number, count in counts.items()}, names)
        self.words = [spelled[word] for word in vocabulary.tokens]
        self._tree, self.in_text = PieceTree(self.words), np.array([ids in spelt for ids in self.words])
        shutil.copy(own, folder)
        (folder / SIGNATURE).write_text(self._pieces.signature.model_dump_json(), encoding="utf-8")
        task, run = {"name": "language_model", "embedding_size": 1}, {"device": device, "dtype": dtype}
        plan = read_plan({"data": {"path": str(self._pieces.folder)}, "task": task, "run": run}, name)
        super().__init__(RunFolder(folder, plan.table(), {}), plan, vocabulary, "best", plan.run, False, None, sources)

    @property
    def path(self) -> Path:
        return Path(self._name)

    @cached_property
    def _loaded(self) -> tuple[Task, str, str]:
        model, embedding = self.model, nn.Embedding(len(self.vocabulary), 1)
        encoder, decoder = PiecesSoFar(self.words, model.limit), PieceWords(model, self.words)
        task = LanguageModel(self.plan.task.settings, self.vocabulary, embedding, encoder, decoder)  # type: ignore[arg-type]
        self._see(task)
        digest = hashlib.sha256()
        for file in sorted(local_folder(self._name.removeprefix(PREFIX), self._name).glob("*.safetensors")):
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return task.to(self.device).eval(), "as published", digest.hexdigest()

    def data(self, given: Path | str | None = None) -> PreparedData:
        other = self._pieces if given is None else PreparedData.open(given)
        if other.vocabulary.fingerprint != self._pieces.vocabulary.fingerprint:
            raise ConfigError(f"{self}: {given} has other pieces than {self._pieces.folder}; open the model with these data")
        return other.recoded(self.vocabulary, lambda stream: self._tree.longest(self._piece_of[stream]))

    def kept_mean(self, data: PreparedData, split: str, make: Callable[[], Tensor]) -> Tensor:
        """Return ``make()``, the means of this model over a text, from the user's cache folder if they are there.

        The name of the file is a hash of the weights, the tokenizer, the senses and the text. A damaged file is made anew."""
        graph, task = self.graph, require(self.task, WordPredictor, "--mean")
        assert graph is not None
        rule = f"{_FORMAT} {LEAST} {self.model.limit} {task.evaluation_batch_size} {graph.fingerprint} {self.weights_sha256}"
        text = np.ascontiguousarray(data.tokens(split)).tobytes()
        name = hashlib.sha256(rule.encode() + self.model.tokenizer.content + text).hexdigest()
        usual = Path(os.environ.get("XDG_CACHE_HOME") or at_home("~/.cache")) / "sememekit"
        cache = Path(os.environ.get("SEMEMEKIT_CACHE") or usual)
        file, found = cache / f"mean-{name}.json", None
        with suppress(DataError):  # absent or damaged
            found = read_sealed(file, DataError).get("mean")
        if isinstance(found, list) and len(found) == graph.num_sememes:
            return torch.tensor(found, device=self.device)
        mean_K = make()
        try:
            cache.mkdir(parents=True, exist_ok=True)
            replace_file(file, sealed({"mean": mean_K.tolist()}))
        except OSError as error:
            warn(f"{self}: its means cannot be kept in {cache} ({error.strerror}), so the next command computes them again")
        return mean_K

    def _words_of_pieces(self) -> Mapping[str, str | None]:
        """Return the words of pieces as for other data; a lexicon word in its form in a text is a word, too."""
        names = self.model.tokenizer.names
        own = set(compress(self.vocabulary.tokens, self.in_text))
        return {piece: word for piece, word in zip(names, whole_words(names), strict=True) if piece not in own}

    def ids_of(self, word: str) -> tuple[int, ...]:
        """The ids that the model reads for a word between blanks: a single id for a piece or a lexicon word."""
        return tuple(self._tree.longest(self.model.tokenizer.of_words([word])[0]))

    def lifts(self, log_frequency: NDArray[Any], line: Sequence[int], place: int, words: NDArray[np.int64]) -> NDArray[Any]:
        """Return ``PieceModel.in_sentence`` of words at one place of a line; for a causal model minus their log-frequency."""
        left, right = ([piece for word in part for piece in self.words[word]] for part in (line[:place], line[place + 1 :]))
        scores = np.array(self.model.in_sentence(left, [self.words[word] for word in words.tolist()], right))
        return scores if self.model.masked else scores - log_frequency[words]

    def nats(self, line: Sequence[int], places: Sequence[int]) -> list[float | None]:
        """The surprisal of the words at some places of a line, each given the words before it; None for a masked model."""
        if self.model.masked:
            return [None] * len(places)
        pieces = [self.words[word] for word in line]
        ends = np.cumsum([0, *map(len, pieces)]).tolist()
        each = self.model.of_text([piece for own in pieces for piece in own])
        if each is None:
            lefts = ([piece for own in pieces[:place] for piece in own] for place in places)
            return [-self.model.in_sentence(left, [pieces[place]], [])[0] for left, place in zip(lefts, places, strict=True)]
        return [-sum(each[ends[place] : ends[place + 1]]) for place in places]


def _shipped_text(name: str, out: Path) -> Path:
    """Prepare the few shipped sentences, for means; they have no useful counts."""
    settings = PreprocessSettings(segmenter=name, end_of_sentence=False)
    corpus = open_corpus("plain", resources_folder() / "plain-sentences", {}, seed=settings.seed)
    Pipeline("plain", own_cutting("plain", corpus, settings, None), out, given=None, progress=silent).run()
    return out
