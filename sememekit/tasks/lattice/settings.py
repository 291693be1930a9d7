"""Settings of lattice language models, and which of them others leave without effect."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from sememekit import config
from sememekit.errors import ConfigError
from sememekit.tasks.lattice.states import GUMBEL, Rule
from sememekit.tasks.vectors import spread_of

LONG = 400
"""Tokens of a sentence above which memory asks for a word to the user."""


class LatticeSettings(config.Settings):
    """Settings of lattice language models; the paper's where it gives any (Section 5.2), but for ``inner_layers``."""

    only_with: ClassVar[Mapping[str, config.OnlyWith]] = {
        "num_chunks": config.OnlyWith("longest_chunk", other_than=(1,)),
        **dict.fromkeys(("sub_size", "sub_marks"), config.OnlyWith("sub_model", values=(True,))),
        "posterior_gradient": config.OnlyWith("state", values=("marginal", "tree", *GUMBEL)),
        **dict.fromkeys(("temperature", "temperature_every", "temperature_floor"), config.OnlyWith("state", values=GUMBEL)),
        "temperature_share": config.OnlyWith("temperature_every", values=(None,)),
        "temperature_decay": config.OnlyWith("temperature_every", other_than=(None,)),
    }

    state: Rule = "marginal"
    """Merging of states: "direct", "monte_carlo", "marginal", "gumbel", "tree" and "gumbel_tree" (as released), "segmental"."""
    longest_chunk: int = Field(default=2, ge=1)
    """L, tokens of a chunk at most; 1 for no chunks."""
    num_chunks: int | None = Field(default=None, ge=0)
    """N-grams of the chunk vocabulary at most, the most frequent; unset, all that the data have up to L tokens."""
    copies: int = Field(default=1, ge=1)
    """C (E in the paper), embeddings of each chunk; with ``senses``, the most that a word has."""
    senses: bool = False
    """As many embeddings of a word as the sememe graph gives it senses, started from their sememes; n-grams have one."""
    sub_model: bool = True
    """Chunks outside the vocabulary, by a model of token sequences. Without it they have no edge."""
    sub_marks: Literal["proper", "released"] = "proper"
    """"released": the sub-model may choose the end of a chunk before its first token and a start mark anywhere, as in the
    released code. Neither can stand there, so that probabilities sum to less than one."""
    token_vectors: Literal["shared", "own"] = "shared"
    """Vectors of tokens for the sub-model and the composition: shared with chunks of one token, or a separate table."""
    start_mark: str = ""
    """Word of the vocabulary that is read before every sentence, such as "<s>"; empty for the end mark."""
    posterior_gradient: bool = False
    """Gradients through the probabilities that states are merged by; the release stops them."""
    embedding_size: int = Field(default=256, ge=1)
    """Size of the vectors of chunks, in and out."""
    spread: float | None = Field(default=None, gt=0.0)
    """The vectors of chunks and tokens begin uniform in +- this; unset: +- 3 sqrt(3 / E), one length for all sizes."""
    composition_size: int | None = Field(default=None, ge=0, multiple_of=2)
    """Size of what is made of a chunk's tokens beside its own vector; 0 for nothing, unset
    ``embedding_size`` (one less where that is odd: it is divided between two directions)."""
    sub_size: int = Field(default=200, ge=1)
    """Size of the LSTM of the sub-model."""
    inner_layers: int = Field(default=1, ge=1)
    """Layers of the LSTMs inside chunks (sub-model and composition); the paper's have 2."""
    inner_coupled: bool = False
    """Input gate 1 - f in these LSTMs, in place of one of its own; so in the release."""
    inner_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate in these LSTMs: inputs, previous outputs, and what leaves the sub-model."""
    input_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate on the vectors of edges, one mask a sentence."""
    output_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate on the outputs that edges are predicted from, one mask a sentence."""
    loss_per: Literal["token", "sentence"] = "token"
    """Unit of the mean in an update's loss, and so in the gradient that ``optimizer.clip`` bounds; released: "sentence"."""
    batch_size: int = Field(default=40, ge=1)
    """B, sentences in training, of similar length."""
    evaluation_batch_size: int = Field(default=40, ge=1)
    """Sentences read at once in evaluation, fewer where they are long: memory and speed only."""
    max_length: int = Field(default=LONG, ge=0)
    """Training leaves longer sentences out, the end mark not counted; 0 takes all. Evaluation always scores all."""
    temperature: float = Field(default=5.0, gt=0.0)
    """Temperature of "gumbel" and "gumbel_tree" at the start."""
    temperature_decay: float = Field(default=0.99, gt=0.0, le=1.0)
    """Factor of the temperature every ``temperature_every`` updates."""
    temperature_every: int | None = Field(default=None, ge=1)
    """Updates, 100 in the release. Unset: it falls by one factor at each update, to the floor after ``temperature_share``."""
    temperature_share: float = Field(default=0.5, gt=0.0, le=1.0)
    """Share of the planned updates after which it is at ``temperature_floor``, where ``temperature_every`` is not set."""
    temperature_floor: float = Field(default=0.25, gt=0.0)
    """The lowest temperature, where it stays."""

    @property
    def start_spread(self) -> float:
        """``spread``, or what gives every vector the same length whatever its size: 1, as the mean of its square, is
        E spread^2 / 3 for a uniform start, so sqrt(3 / E) times ``START_LENGTH``."""
        return spread_of(START_LENGTH, self.embedding_size) if self.spread is None else self.spread

    def temperature_after(self, updates: int, planned: int | None) -> float:
        """Return the temperature of "gumbel" and "gumbel_tree" after so many of the run's planned updates."""
        if self.temperature_every is not None:
            cooled = self.temperature_decay ** (updates // self.temperature_every)
        elif not updates:
            cooled = 1.0
        elif planned is None:
            raise ConfigError(
                "the temperature depends on the share of the updates that are done, and their number is not known: call "
                "task.expect_updates(NUMBER), or set task.temperature_every=100 for the schedule of the release"
            )
        else:
            to_floor = min(1.0, self.temperature_floor / self.temperature)
            cooled = to_floor ** (updates / (self.temperature_share * planned))
        return max(self.temperature_floor, self.temperature * cooled)

    @property
    def composed_size(self) -> int:
        """Size of what is made of a chunk's tokens; nothing with ``segmental``, whose states read tokens."""
        if self.state == "segmental":
            return 0
        return self.embedding_size // 2 * 2 if self.composition_size is None else self.composition_size

    @property
    def input_size(self) -> int:
        return self.embedding_size + self.composed_size


START_LENGTH = 3.0
"""Root mean square length of a vector at the start; measured in docs/results/lattice.md."""
