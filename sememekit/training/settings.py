"""Settings of training: optimiser, schedule, run."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from sememekit.config import OnlyWith, Seed, Settings

USUAL_RATES: Final = {"sgd": 20.0, "adam": 0.001, "adagrad": 0.01}
"""Default learning rate by optimiser: the papers' for SGD, torch's for the others."""

MOST_THREADS: Final = 1024  # most threads; torch ends without a message if the system cannot start them


class OptimizerSettings(Settings):
    """The optimiser: how a gradient becomes a step."""

    only_with: ClassVar[Mapping[str, OnlyWith]] = {"trigger": OnlyWith("averaging", values=("triggered",))}

    name: Literal["sgd", "adam", "adagrad"] = "sgd"
    """Plain stochastic gradient descent (most language models of the papers), Adam, or Adagrad (text8, Shen et al.). Default
    for classifiers: ``adam`` with rate 0.002 and ``clip`` 5."""
    learning_rate: float = Field(default=USUAL_RATES["sgd"], gt=0.0)
    """Learning rate for the mean loss in nats a token; default by ``name``: 20 (sgd), 0.001 (adam), 0.01 (adagrad)."""
    clip: float = Field(default=0.25, gt=0.0)
    """Largest norm of the whole gradient."""
    weight_decay: float = Field(default=0.0, ge=0.0, le=1.0)
    """L2 penalty added to the gradient."""
    initial_accumulator: float = Field(default=0.0, ge=0.0)
    """Adagrad only: initial sum of squared gradients. With 0 the first step moves every weight by the full rate; with 0.1
    (TensorFlow's default) weights with small gradients begin with small steps."""
    averaging: Literal["never", "triggered", "from_start"] = "never"
    """Validate and store the mean of the weights over steps. Averaging begins after the first epoch that is worse than the best
    epoch more than ``trigger`` epochs before (NT-ASGD, Merity et al. 2018), or at the first step (finetuning). The rate is
    still cut, unless ``schedule.factor = 1``."""
    trigger: int = Field(default=5, ge=1)
    """Non-monotone interval in epochs; averaging starts after this epoch at the earliest."""

    @model_validator(mode="before")
    @classmethod
    def _rate_of_the_optimiser(cls, given: Any) -> Any:
        """Set the learning rate to the optimiser's default; 20 suits only plain SGD with clipped gradients."""
        if isinstance(given, Mapping) and "learning_rate" not in given and given.get("name") in USUAL_RATES:
            return {**given, "learning_rate": USUAL_RATES[given["name"]]}
        return given


class ScheduleSettings(Settings):
    """The length of a training, and the cuts of its rate."""

    epochs: int = Field(default=40, ge=1)
    """Most passes over the training text."""
    factor: float = Field(default=0.25, gt=0.0, le=1.0)
    """Factor of the rate after an epoch without improvement; 1 for no cut."""
    decay: float = Field(default=1.0, gt=0.0, le=1.0)
    """Factor of the rate after every epoch, in addition to ``factor``; 1 for no decay."""
    grace: int = Field(default=0, ge=0)
    """First epochs, in which the rate is never cut (released SDLM script: 14); ``stop_after`` counts from their end."""
    reload_best: bool = False
    """Return to the best weights when the rate is cut; the papers' codes do not."""
    milestones: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Epochs after which ``factor`` always cuts the rate, also in ``grace``; a run no longer than ``grace`` has no others."""
    threshold: float = Field(default=0.0, ge=0.0, lt=1.0)
    """Share of the best value by which an epoch must be better to count as an improvement."""
    stop_after: int = Field(default=0, ge=0)
    """Stop after this many epochs in a row without improvement, not counting the first ``grace``; 0 never stops."""
    minimum_rate: float = Field(default=0.0, ge=0.0)
    """Stop when a cut brings the rate below this value."""
    stop_non_monotone: int = Field(default=0, ge=0)
    """Stop when an epoch is worse than the best epoch more than N epochs before (finetuning: 5); 0 never stops."""

    @model_validator(mode="after")
    def _milestones_cut(self) -> Self:
        if self.milestones and self.factor == 1.0:
            raise ValueError(
                "milestones cut the rate by factor, which is 1 and keeps it; give a smaller factor, or leave them out"
            )
        return self


class RunSettings(Settings):
    """Settings of a run; only seed, start, device and dtype change what it learns."""

    seed: Seed = 1
    """Seed of initialisation, dropout, and the order and cuts of epochs."""
    start_from: str = ""
    """Run with the best weights of which this run starts (``--from``); empty for a fresh start."""
    earlier_epochs: int = Field(default=0, ge=0)
    """Epochs of all previous runs, counted by ``--from``. The order of examples and the dropout masks continue after these
    epochs, since a model memorises examples that repeat with the same masks."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """``auto`` takes CUDA if available; ``mps`` (Apple) is untested. Each of several processes has its own GPU."""
    dtype: Literal["float32", "tf32", "bfloat16"] = "float32"
    """Precision of matrix products; reductions are always float32."""
    threads: int = Field(default=0, ge=0, le=MOST_THREADS)
    """CPU threads (0: torch's choice); they change the last bits of a result."""
    report_every: int = Field(default=50, ge=1)
    """Steps between progress reports, which read losses from the device."""
    checkpoint_every: int = Field(default=0, ge=0)
    """Steps between checkpoints inside an epoch; 0 writes them only at the end of epochs and when a signal stops the run."""
    track: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ()
    """Programs that get the learning curves (``--track``); TensorBoard always does if installed."""
    stall_epochs: int = Field(default=4, ge=0)
    """End the run if validation stays near the unigram baseline for this many first epochs; 0 for never."""
    stall_ratio: float = Field(default=0.97, gt=0.0)
    """Share of the unigram model's perplexity above which validation is near the baseline."""
