"""Settings of lattice language models, and settings that make others ineffective."""

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field

from sememekit import config
from sememekit.errors import ConfigError
from sememekit.tasks.vectors import spread_of

LONG = 400  # tokens of a sentence above which the user is warned of memory


Rule = Literal["direct", "monte_carlo", "marginal", "gumbel", "tree", "gumbel_tree", "segmental"]
"""Merging of the states h_k, c_k that arrive over edges of probability M_k given the node.

``direct``: the sum of h and c. ``marginal``: sum_k M_k h_k and c_k. ``monte_carlo``: h and c of one edge, drawn from M.
``gumbel``: the mean by softmax((log M + Gumbel noise) / temperature). ``tree``: keeps all states; steps from the node take
gates from sum_k M_k h_k and a forget gate for each h_k. ``gumbel_tree``: ``tree`` with the weights of ``gumbel`` in place of M,
as the released code computes. ``segmental``: the encoder reads the tokens, and no states merge."""

TREES: Final = frozenset({"tree", "gumbel_tree"})
"""Rules that keep all arriving states, for an encoder that can step from several states at once."""

GUMBEL: Final = ("gumbel", "gumbel_tree")  # rules with noise and a temperature

SAMPLED: Final = frozenset({"monte_carlo", *GUMBEL})
"""Rules that sample in training and take the most probable edge in evaluation."""


class LatticeSettings(config.Settings):
    """Settings of lattice language models; defaults are the paper's (Section 5.2), except for ``inner_layers``."""

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
    """L, maximum tokens of a chunk; 1 for no chunks."""
    num_chunks: int | None = Field(default=None, ge=0)
    """Number of n-grams in the chunk vocabulary, most frequent first; unset: all of the data up to L tokens."""
    copies: int = Field(default=1, ge=1)
    """C (E in the paper), embeddings of each chunk; with ``senses``, the most that a word has."""
    senses: bool = False
    """An embedding for each sense of a word in the sememe graph, initialised from its sememes; n-grams have one."""
    sub_model: bool = True
    """Give chunks outside the vocabulary edges, scored by a model of token sequences."""
    sub_marks: Literal["proper", "released"] = "proper"
    """"released": as in the released code, the sub-model can also choose the end of a chunk before its first token, and a start
    mark anywhere. Neither can occur there, so probabilities sum to less than one."""
    token_vectors: Literal["shared", "own"] = "shared"
    """Vectors of tokens for the sub-model and the composition: shared with chunks of one token, or a separate table."""
    start_mark: str = ""
    """Word of the vocabulary that is read before every sentence, such as "<s>"; empty for the end mark."""
    posterior_gradient: bool = False
    """Pass gradients through the merging probabilities; the release stops them."""
    embedding_size: int = Field(default=256, ge=1)
    """Size of the vectors of chunks, in and out."""
    spread: float | None = Field(default=None, gt=0.0)
    """Initial vectors of chunks and tokens are uniform in +- this; unset: +- 3 sqrt(3 / E), the same length for all E."""
    composition_size: int | None = Field(default=None, ge=0, multiple_of=2)
    """Size of the vector composed from a chunk's tokens; 0: none; unset: ``embedding_size``, made even for two directions."""
    sub_size: int = Field(default=200, ge=1)
    """Size of the LSTM of the sub-model."""
    inner_layers: int = Field(default=1, ge=1)
    """Layers of the LSTMs inside chunks (sub-model and composition); 2 in the paper."""
    inner_coupled: bool = False
    """Input gate 1 - f in these LSTMs instead of a separate gate, as in the release."""
    inner_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate in these LSTMs: inputs, previous outputs, and what leaves the sub-model."""
    input_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate on the vectors of edges, one mask a sentence."""
    output_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Rate on the outputs that edges are predicted from, one mask a sentence."""
    loss_per: Literal["token", "sentence"] = "token"
    """Unit of the mean loss of an update, and so of the gradient that ``optimizer.clip`` bounds; released: "sentence"."""
    batch_size: int = Field(default=40, ge=1)
    """B, sentences in training, of similar length."""
    evaluation_batch_size: int = Field(default=40, ge=1)
    """Sentences read at once in evaluation (fewer if long); changes memory and speed only."""
    max_length: int = Field(default=LONG, ge=0)
    """Longest training sentence without end mark; longer ones are skipped, 0 takes all. Evaluation scores all."""
    temperature: float = Field(default=5.0, gt=0.0)
    """Temperature of "gumbel" and "gumbel_tree" at the start."""
    temperature_decay: float = Field(default=0.99, gt=0.0, le=1.0)
    """Factor of the temperature every ``temperature_every`` updates."""
    temperature_every: int | None = Field(default=None, ge=1)
    """Updates between factors, 100 in the release. Unset: a constant factor at each update, to the floor after
    ``temperature_share``."""
    temperature_share: float = Field(default=0.5, gt=0.0, le=1.0)
    """Share of the planned updates to reach ``temperature_floor``, if ``temperature_every`` is not set."""
    temperature_floor: float = Field(default=0.25, gt=0.0)
    """Lowest temperature."""

    @property
    def start_spread(self) -> float:
        """``spread``; by default sqrt(3 / E) ``START_LENGTH``: the mean square length E spread^2 / 3 is equal for all E."""
        return spread_of(START_LENGTH, self.embedding_size) if self.spread is None else self.spread

    def temperature_after(self, updates: int, planned: int | None) -> float:
        """Return the temperature of "gumbel" and "gumbel_tree" after some of the run's planned updates."""
        if self.temperature_every is not None:
            cooled = self.temperature_decay ** (updates // self.temperature_every)
        elif not updates:
            cooled = 1.0
        elif planned is None:
            raise ConfigError(
                "the temperature depends on the number of all updates, which is not known: call "
                "task.expect_updates(NUMBER), or set task.temperature_every=100 for the schedule of the release"
            )
        else:
            to_floor = min(1.0, self.temperature_floor / self.temperature)
            cooled = to_floor ** (updates / (self.temperature_share * planned))
        return max(self.temperature_floor, self.temperature * cooled)

    @property
    def composed_size(self) -> int:
        """Size of the vector composed from a chunk's tokens; 0 with ``segmental``, whose states read tokens."""
        if self.state == "segmental":
            return 0
        return self.embedding_size // 2 * 2 if self.composition_size is None else self.composition_size


START_LENGTH = 3.0  # root mean square length of a vector at the start; measured in docs/results/lattice.md
