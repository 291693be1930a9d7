"""Reports that the trainer yields."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StepReport:
    """Progress inside an epoch.

    Attributes:
        epoch, batch, num_batches: from 1; finished batches of this epoch, and all.
        step: optimiser steps of the whole run.
        nats: mean training loss in nats a token since the last report.
        rate: learning rate.
        tokens_per_second: predicted tokens a second since the last report.
        estimated: whether the loss is an estimate from sampled words, which is too low on average.
    """

    epoch: int
    batch: int
    num_batches: int
    step: int
    nats: float
    rate: float
    tokens_per_second: float
    estimated: bool = False


@dataclass(frozen=True)
class EpochReport:
    """The end of an epoch.

    Attributes:
        epoch, step: from 1; optimiser steps of the whole run.
        train_nats: mean training loss of the epoch in nats a token, with dropout.
        valid: metrics on the validation split.
        estimated: whether that is an estimate from sampled words, which is too low on average.
        metric: the one of them that the schedule watches.
        rate: learning rate of the epoch.
        best: whether these are the best weights so far.
        rate_cut: whether the rate was cut after this epoch.
        finished: why the run ends here, or an empty string.
        seconds, tokens_per_second: wall time of the training part of the epoch, and predicted tokens a second.
        cpu_seconds: CPU time of that part, of all threads.
        averaged: whether the validated weights are means over steps.
        averaging_begins: whether such a mean begins after this epoch.
        augmented: training examples that ``--augment`` added.
    """

    epoch: int
    step: int
    train_nats: float
    valid: dict[str, float]
    rate: float
    best: bool
    rate_cut: bool
    finished: str
    seconds: float
    tokens_per_second: float
    averaged: bool = False
    averaging_begins: bool = False
    cpu_seconds: float = 0.0
    metric: str = ""
    estimated: bool = False
    augmented: int = 0


@dataclass(frozen=True)
class ChangeReport:
    """A change of the model other than by gradients, such as of its word clusters; ``values`` are from
    ``Decoder.after_step``."""

    epoch: int
    step: int
    values: dict[str, float]


@dataclass(frozen=True)
class StopReport:
    """The run was asked to stop and wrote a checkpoint to resume from."""

    epoch: int
    step: int
    checkpoint: str


Report = StepReport | EpochReport | ChangeReport | StopReport
