"""A causal language model from a Hugging Face folder, whose hidden states are the contexts."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Self, final

import torch
from pydantic import Field
from torch import Tensor

from sememekit import config
from sememekit.data.prepared import PreparedData
from sememekit.encoders.base import Encoded, EncoderResources, FromFiles, State, zero_padding
from sememekit.encoders.piece_model import PieceModel
from sememekit.errors import CheckpointError, ConfigError
from sememekit.files import needed, read_bytes, read_object
from sememekit.text.huggingface import (
    PIECES,
    HuggingFacePieces,
    asked_of_transformers,
    check_configuration,
    model_folder,
    positions_of,
)
from sememekit.text.pieces import Blanks

FORMAT: Final = 1
_USE: Final = "encoder 'hf'"
_asked: Final = partial(asked_of_transformers, _USE, "causal language model")


@final
class Pretrained(FromFiles):
    """A causal language model of ``transformers``, frozen or fine-tuned, without its output layer.

    >>> settings = Pretrained.Settings(path="models/gpt2", context=512)
    >>> encoder = Pretrained(settings, EncoderResources(768, words, kept=Pretrained.keep(settings, data)))
    >>> encoder.read_weights()
    >>> encoded = encoder(vectors_TBE, target_TB, encoder.start(batch_size=2))

    The model reads pieces. In data that the model's own tokenizer segmented (``preprocess --segmenter hf:PATH``) a word is a
    piece. In other data a word is split into its pieces in running text (``blanks``), and the state after its last piece
    predicts the next word. The encoder does not read word vectors. They are as wide as the hidden states
    (``task.embedding_size``), for tied output layers, and start in a fresh language model as the mean of the model's output
    vectors over the pieces of the word.

    A text is read in blocks of at most ``context`` pieces, each beginning with the tokenizer's start pieces. A word that does
    not fit begins a new block, which repeats the last ``overlap`` pieces of the previous block. So a word sees between
    ``overlap`` and ``context`` pieces, within the model's positions. Its context depends on its place in the text alone, not on
    the batching. Gradients reach the whole block.

    State: (B, context) the pieces of the block so far as ids plus 1, then zeros. Each call reads every block again, so chunks
    much shorter than ``context`` (``task.chunk_length``, ``task.evaluation_chunk_length``) cost more.

    A run stores the model's configuration, the pieces of its words (``encoder.json``) and, in each snapshot, the weights in
    single precision, so it opens without the folder. Nothing is downloaded, and weights are read as safetensors alone."""

    class Settings(config.Settings):
        path: str = Field(min_length=1)
        """Folder of the model, with config.json, tokenizer.json and safetensors; or the name of a model in the local cache."""
        frozen: bool = True
        """Keep the weights of the model fixed and use no dropout; false trains them further, with dropout."""
        context: int = Field(default=256, ge=2)
        """Most pieces of a block."""
        overlap: int = Field(default=128, ge=0)
        """Pieces that a new block repeats from the previous block; less than ``context``."""
        blanks: Blanks = "auto"
        """Words that the model reads with a blank before them: "auto" (all but words that begin with a Chinese or Japanese
        character), "always" or "never". Unused if words are pieces."""

    settings: Settings

    def __init__(self, settings: Settings, resources: EncoderResources) -> None:
        super().__init__(settings, resources)
        kept = _Kept.read(resources.kept)
        self.settings, self._pieces, self._first = settings, kept.pieces, kept.start
        self._vectors: Tensor | None = None
        if len(kept.pieces) != len(resources.vocabulary):
            raise CheckpointError(
                f"{_USE}: encoder.json has the pieces of {len(kept.pieces):,} words, and the vocabulary has "
                f"{len(resources.vocabulary):,}; the files are of different runs; copy the folder again from where it came from"
            )
        described = _configuration(kept.config)
        self.output_size = int(described.get_text_config().hidden_size)
        if resources.input_size != self.output_size:
            raise ConfigError(
                f"{_USE}: the hidden states of {settings.path} have {self.output_size} numbers and the word vectors "
                f"{resources.input_size}; output layers share them, so add --set task.embedding_size={self.output_size}"
            )
        self._check_blocks(positions_of(described), [len(pieces) for pieces in kept.pieces])
        causal = needed("transformers", _USE).AutoModelForCausalLM
        self.model: Any = _asked(
            settings.path, lambda: causal.from_config(described, dtype=torch.float32, trust_remote_code=False)
        ).base_model
        size = self.model.get_input_embeddings().num_embeddings
        if not all(ids and min(ids) >= 0 and max(ids) < size for ids in (kept.start or (0,), *kept.pieces)):
            raise CheckpointError(
                f"{_USE}: encoder.json has a word without pieces, or a piece that is not one of the {size:,} of "
                f"{settings.path}; copy the folder again from where it came from, or give a model with its own tokenizer"
            )
        self.model.requires_grad_(not settings.frozen)
        self.train(self.training)

    def _check_blocks(self, positions: int | None, sizes: Sequence[int]) -> None:
        settings, longest = self.settings, max(sizes) + len(self._first)
        if positions is not None and settings.context > positions:
            raise ConfigError(
                f"{_USE}: {settings.path} has {positions} positions and encoder.context is {settings.context}; add --set "
                f"encoder.context={positions} --set encoder.overlap={positions // 2}"
            )
        if settings.overlap >= settings.context:
            raise ConfigError(
                f"{_USE}: encoder.overlap ({settings.overlap}) must be less than encoder.context ({settings.context}); add "
                f"--set encoder.overlap={settings.context // 2}"
            )
        if longest > settings.context:
            raise ConfigError(
                f"{_USE}: one word of the data has {longest - len(self._first)} pieces, which do not fit into a block of "
                f"{settings.context}; add --set encoder.context={longest} or more"
            )

    @classmethod
    def vector_size(cls, settings: Settings) -> int:
        described = _configuration(read_object(model_folder(settings.path, _USE) / "config.json", ConfigError))
        return int(described.get_text_config().hidden_size)

    @classmethod
    def keep(cls, settings: Settings, data: PreparedData) -> bytes:
        folder = model_folder(settings.path, _USE)
        description = read_object(folder / "config.json", ConfigError)
        own = data.folder / PIECES
        tokenizer = HuggingFacePieces.of_folder(settings.path, _USE)
        tokens = data.vocabulary.tokens
        pieces: list[tuple[int, ...]]
        if data.signature.options.get("segmenter") == "hf":
            if read_bytes(own, ConfigError) != tokenizer.content:
                raise ConfigError(
                    f"{_USE}: the text of {data.folder} was cut by another tokenizer than in {settings.path}; prepare it "
                    f"with: sememekit preprocess {data.signature.dataset} SOURCE --segmenter hf:{settings.path} --out DIR"
                )
            found = {token: tokenizer.id(token) for token in tokens}
            spelled = dict(zip(tokens, tokenizer.of_words(tokens, "never"), strict=True))
            pieces = [spelled[token] if found[token] is None else (found[token],) for token in tokens]  # type: ignore[misc]
        else:
            pieces = tokenizer.of_words(tokens, settings.blanks)
        table = {
            "format": FORMAT,
            "transformers": needed("transformers", _USE).__version__,
            "config": description,
            "start": list(tokenizer.start),
            "pieces": [list(ids) for ids in pieces],
        }
        return (json.dumps(table, ensure_ascii=False, sort_keys=True) + "\n").encode()

    def read_weights(self) -> None:
        settings = self.settings
        whole = PieceModel(settings.path, causal=True).model
        self.model.load_state_dict(whole.base_model.state_dict())
        vectors = whole.get_output_embeddings().weight.detach()
        if vectors.shape[1] != self.output_size:
            raise ConfigError(
                f"{_USE}: {settings.path} gives {vectors.shape[1]} numbers for a word and its hidden_size is "
                f"{self.output_size}; take another model"
            )
        self._vectors = torch.stack([vectors[list(pieces)].mean(dim=0) for pieces in self._pieces])

    def word_vectors(self) -> Tensor | None:
        vectors, self._vectors = self._vectors, None
        return vectors

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.settings.frozen:
            self.model.eval()
        return self

    def start(self, batch_size: int) -> State:
        device = next(self.parameters()).device
        return (torch.zeros(batch_size, self.settings.context, dtype=torch.int64, device=device),)

    def forward(self, x: Tensor, tokens: Tensor, state: State, lengths: Tensor | None = None) -> Encoded:
        steps, batch = tokens.shape
        sizes = [steps] * batch if lengths is None else lengths.tolist()
        blocks: list[list[int]] = []
        places: list[list[tuple[int, int]]] = []  # of each row, for each word its block and the place of its last piece
        after = torch.zeros_like(state[0])
        for row, (words, filled) in enumerate(zip(tokens.t().tolist(), state[0].tolist(), strict=True)):
            block = [number - 1 for number in filled if number] or list(self._first)
            own: list[tuple[int, int]] = []
            for word in words[: sizes[row]]:
                pieces = self._pieces[word]
                if len(block) + len(pieces) > self.settings.context:
                    blocks.append(block)
                    first = list(self._first)
                    kept = min(self.settings.overlap, self.settings.context - len(first) - len(pieces), len(block) - len(first))
                    block = [*first, *(block[-kept:] if kept > 0 else [])]
                block = [*block, *pieces]
                own.append((len(blocks), len(block) - 1))
            blocks.append(block)
            places.append(own + [(0, 0)] * (steps - len(own)))
            after[row, : len(block)] = torch.tensor(block, device=after.device) + 1
        hidden_TBH = self._read(blocks, places, tokens.device)
        hidden_TBH = zero_padding(hidden_TBH, lengths)
        return Encoded(hidden=hidden_TBH, state=(after,), layers=(hidden_TBH,))

    def _read(
        self, blocks: Sequence[Sequence[int]], places: Sequence[Sequence[tuple[int, int]]], device: torch.device
    ) -> Tensor:
        """Return the states (T, B, H) at ``places`` of the blocks; padding is at the end, where no piece attends to it."""
        longest = max(map(len, blocks))
        ids_NL = torch.tensor([[*block, *[0] * (longest - len(block))] for block in blocks], device=device)
        states_NLH = self.model(input_ids=ids_NL, use_cache=False)[0]
        places_TB = torch.tensor([[block * longest + place for block, place in row] for row in places], device=device).t()
        hidden_TBH: Tensor = states_NLH.flatten(0, 1)[places_TB]
        return hidden_TBH.to(next(self.parameters()).dtype)

    def state_part(self, state: State, masks: State = ()) -> State:
        raise ConfigError(
            f"{_USE} cannot be the encoder of a lattice: its state is the pieces it has read, which cannot be merged; take "
            "another, such as --encoder lattice_lstm"
        )


class _Kept(NamedTuple):
    """The content of ``encoder.json``: the configuration, ids before a text, and the ids of each word."""

    config: dict[str, Any]
    start: tuple[int, ...]
    pieces: list[tuple[int, ...]]

    @classmethod
    def read(cls, content: bytes | None) -> "_Kept":
        if content is None:
            raise ConfigError(f"{_USE} needs what a run keeps of its model; train one with: sememekit train --encoder hf:PATH")
        try:
            table = json.loads(content)
            if table["format"] != FORMAT:
                raise ValueError(f"format {table['format']!r}")
            pieces = [tuple(map(int, ids)) for ids in table["pieces"]]
            return cls(dict(table["config"]), tuple(map(int, table["start"])), pieces)
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"encoder.json is not what sememekit wrote ({error!r}); copy the folder again from where it came from"
            ) from None


def _configuration(table: dict[str, Any]) -> Any:
    """The configuration of a model; ConfigError where this transformers has no such model."""
    check_configuration(table, _USE)
    rest = dict(table)
    kind = rest.pop("model_type", "")
    return _asked(str(kind), lambda: needed("transformers", _USE).AutoConfig.for_model(kind, **rest))
