"""Settings of training: optimiser, schedule, run."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from sememekit.config import OnlyWith, Seed, Settings

USUAL_RATES: Final = {"sgd": 20.0, "adam": 0.001, "adagrad": 0.01}
"""Learning rate by optimiser where none is given: the rate of the papers' SGD, and torch's own for the others."""

MOST_THREADS: Final = 1024
"""torch ends without a message where the system cannot start so many."""


class OptimizerSettings(Settings):
    """The optimiser: how a gradient becomes a step."""

    only_with: ClassVar[Mapping[str, OnlyWith]] = {"trigger": OnlyWith("averaging", values=("triggered",))}

    name: Literal["sgd", "adam", "adagrad"] = "sgd"
    """Plain stochastic gradient descent (most word language models of the papers), Adam, or Adagrad (text8, Shen et al.). Tasks
    with labels have ``adam`` with the rate 0.002 and ``clip`` 5 where none is named."""
    learning_rate: float = Field(default=USUAL_RATES["sgd"], gt=0.0)
    """Rate of the mean loss in nats a token; what is usual depends on ``name``: 20 (sgd), 0.001 (adam), 0.01 (adagrad)."""
    clip: float = Field(default=0.25, gt=0.0)
    """Largest norm of the whole gradient."""
    weight_decay: float = Field(default=0.0, ge=0.0, le=1.0)
    """L2 penalty added to the gradient."""
    initial_accumulator: float = Field(default=0.0, ge=0.0)
    """Adagrad only: what the sums of squared gradients begin with. At 0 the first step moves every weight by the whole rate,
    whatever its gradient; with 0.1 (TensorFlow's default) weights of small gradients begin with small steps."""
    averaging: Literal["never", "triggered", "from_start"] = "never"
    """Validate and keep the mean of the weights over the steps since an epoch that was worse than the best of all but the last
    ``trigger`` epochs before it (NT-ASGD, Merity et al. 2018), or since the first step (finetuning). Cuts of the
    rate go on: ``schedule.factor = 1`` keeps it."""
    trigger: int = Field(default=5, ge=1)
    """The non-monotone interval, in epochs: no epoch up to this one starts the averaging."""

    @model_validator(mode="before")
    @classmethod
    def _rate_of_the_optimiser(cls, given: Any) -> Any:
        """Set the learning rate to the optimiser's default: 20 is for plain SGD on clipped gradients only."""
        if isinstance(given, Mapping) and "learning_rate" not in given and given.get("name") in USUAL_RATES:
            return {**given, "learning_rate": USUAL_RATES[given["name"]]}
        return given


class ScheduleSettings(Settings):
    """The length of a training, and the cuts of its rate."""

    epochs: int = Field(default=40, ge=1)
    """Passes over the training text at most."""
    factor: float = Field(default=0.25, gt=0.0, le=1.0)
    """The rate is multiplied by this when validation did not improve; 1 keeps it."""
    decay: float = Field(default=1.0, gt=0.0, le=1.0)
    """The rate is multiplied by this after every epoch, beside what ``factor`` does; 1 keeps it."""
    grace: int = Field(default=0, ge=0)
    """Epochs at the start in which the rate is never cut (released SDLM script: 14); ``stop_after`` counts from their end."""
    reload_best: bool = False
    """Go back to the best weights when the rate is cut. The papers' codes do not."""
    milestones: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Epochs after which the rate is cut by ``factor`` whatever validation says, also during ``grace``; with a grace as long as
    the run these are the only cuts."""
    threshold: float = Field(default=0.0, ge=0.0, lt=1.0)
    """An epoch counts as an improvement when it beats the best value by this share of it; 0: by anything."""
    stop_after: int = Field(default=0, ge=0)
    """Stop after this many epochs in a row without improvement, not counting the first ``grace``; 0 never stops."""
    minimum_rate: float = Field(default=0.0, ge=0.0)
    """Stop once a cut brings the rate below this."""
    stop_non_monotone: int = Field(default=0, ge=0)
    """Stop when an epoch is worse than the best one more than this many epochs back (finetuning: 5); 0 never stops."""

    @model_validator(mode="after")
    def _milestones_cut(self) -> Self:
        if self.milestones and self.factor == 1.0:
            raise ValueError(
                "milestones cut the rate by factor, which is 1 and keeps it; give a smaller factor, or leave them out"
            )
        return self


class RunSettings(Settings):
    """The course of a run; what it learns depends on the seed, the start, the device and the dtype alone."""

    seed: Seed = 1
    """Seed of initialisation, of dropout, and of how epochs are ordered and cut."""
    start_from: str = ""
    """Run whose best weights this one begins with (``--from``); empty for a fresh start."""
    earlier_epochs: int = Field(default=0, ge=0)
    """Epochs of that run and of those before it; ``--from`` counts them. The order of examples and the dropout masks continue
    after these epochs: a model learns by heart what it meets again with the same masks."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """``auto`` takes CUDA where it is there; ``mps``, Apple's GPUs, was never tried. Each of several processes has its GPU."""
    dtype: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Precision of matrix products only; reductions are float32 always."""
    threads: int = Field(default=0, ge=0, le=MOST_THREADS)
    """CPU threads; 0 leaves torch's choice. The bits of a result depend on it."""
    report_every: int = Field(default=50, ge=1)
    """Steps between progress reports; losses are read back from the device then."""
    checkpoint_every: int = Field(default=0, ge=0)
    """Steps between checkpoints inside an epoch; 0 writes one at the end of each epoch (and when a signal stops the run)."""
    track: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    """Programs that get the learning curves (``--track``); TensorBoard gets them wherever it is installed."""
    stall_epochs: int = Field(default=4, ge=0)
    """End the run after this many epochs at the start whose validation stays near unigram frequencies; 0 never does."""
    stall_ratio: float = Field(default=0.97, gt=0.0)
    """"Near": validation perplexity above this share of the unigram model's."""
