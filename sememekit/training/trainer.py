"""The training loop."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from torch import Tensor

from sememekit.data.prepared import PreparedData
from sememekit.decoders.base import Decoder, loss_is_estimated, rate_was_cut
from sememekit.errors import TrainingError
from sememekit.layers import training_counters
from sememekit.ranks import ALONE, Ranks
from sememekit.tasks.base import BatchLoss, Carry, Planned, Task
from sememekit.training import divergence, together
from sememekit.training.checkpoint import RunFolder
from sememekit.training.metrics import ChangeReport, EpochReport, Report, StepReport, StopReport
from sememekit.training.optimizers import Average, clip_gradients, make_optimizer, sparse_lookups
from sememekit.training.schedule import Schedule
from sememekit.training.settings import OptimizerSettings, RunSettings, ScheduleSettings
from sememekit.training.snapshots import Snapshot
from sememekit.training.state import TrainingState, ending_text


@dataclass
class _Window:
    """Losses since the last report, kept on the device so that steps do not synchronise."""

    nats: list[Tensor] = field(default_factory=list)
    norms: list[Tensor] = field(default_factory=list)
    count: int = 0
    first_count: int = 0
    began: float = field(default_factory=time.perf_counter)
    cpu_began: float = field(default_factory=time.process_time)


@final
class Trainer:
    """Trains a task: clipped steps, validation after each epoch, a schedule, checkpoints that resume bit by bit.

        trainer = Trainer(task, data, folder, OptimizerSettings(), ScheduleSettings(), RunSettings())
        for report in trainer.run():
            folder.append_metrics(vars(report))

    The loss is the mean over the predictions of a batch plus the task's penalty; the rate is cut by ``factor`` after an epoch
    without improvement (after ``grace`` epochs), and after the epochs of ``milestones``. Averaged weights are validated and
    stored in snapshots; training continues from the weights of the last step. A trainer never prints: it yields reports.
    ``num_batches`` is the number of batches in the current epoch, 0 before the first.

    With several ``ranks`` each process has a trainer, and all make the same calls: gradients are over whole batches, decisions
    are the same, and the first rank validates and writes."""

    def __init__(
        self,
        task: Task,
        data: PreparedData,
        folder: RunFolder,
        optimizer: OptimizerSettings,
        schedule: ScheduleSettings,
        run: RunSettings,
        ranks: Ranks = ALONE,
    ) -> None:
        self.task, self.data, self.folder, self.ranks = task, data, folder, ranks
        self.optimizer_settings, self.schedule, self.run_settings = optimizer, schedule, run
        self.parameters = [parameter for parameter in task.parameters() if parameter.requires_grad]
        self.optimizer = make_optimizer(optimizer, self.parameters)
        self.progress = TrainingState(rate=optimizer.learning_rate, averaging=optimizer.averaging == "from_start")
        self.average = Average(self.parameters)
        self.device = self.parameters[0].device
        self.carry: Carry = ()
        self.num_batches = 0
        self.draws = together.begin_together(task, ranks, first_seed(run), self.device)
        self._output_layers = [part for part in task.modules() if isinstance(part, Decoder)]

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Report]:
        """Train until the schedule ends, or until ``should_stop`` is true at the end of a step. Yield a ``StepReport`` every
        ``report_every`` steps, a ``ChangeReport`` when the task changed itself, an ``EpochReport`` after each epoch, a
        ``StopReport`` when stopped.

        Raises TrainingError: a loss, a weight or a validation metric is not finite; the model is worse than the uniform
        distribution; validation does not beat the unigram baseline; or the rate vanished before."""
        progress = self.progress
        together.check_same_weights(self.task, self.ranks, "before the first step")
        baseline = self.task.unigram_baseline(self.data, "valid")[self.task.metric.name]
        schedule = Schedule(self.schedule, self.optimizer_settings, self.run_settings, self.task.metric, baseline)
        while not progress.finished:
            if progress.batch == 0:
                self.carry = self.task.start(self.data)
                progress.nats, progress.count, progress.seconds, progress.cpu_seconds = 0.0, 0, 0.0, 0.0
            self.task.train()
            window = _Window()
            seed = epoch_seed(self.run_settings.seed, self.run_settings.earlier_epochs + progress.epoch)
            num_batches = self.num_batches = self.task.num_batches(self.data, seed)
            if isinstance(self.task, Planned):
                self.task.expect_updates(self.schedule.epochs * num_batches)
            for batch in self.task.batches(self.data, seed, progress.batch):
                with sparse_lookups(self.task, self.optimizer):
                    self._step(batch, window)
                if (values := self.task.after_step(progress.step)) is not None:
                    yield ChangeReport(progress.epoch, progress.step, values)
                at_end = progress.batch == num_batches
                if progress.step % self.run_settings.report_every == 0 or at_end:
                    yield self._close(window, batch, num_batches)
                    window = _Window()
                stop = self.ranks.any(should_stop())
                due = self.run_settings.checkpoint_every and progress.step % self.run_settings.checkpoint_every == 0
                if stop or (due and not at_end):
                    if window.count:
                        yield self._close(window, batch, num_batches)
                    name = self._save(best=False)
                    if stop:
                        yield StopReport(progress.epoch, progress.step, name)
                        return
                    window = _Window()  # writing a checkpoint is no training
            yield from self._end_epoch(schedule)
            if self.ranks.any(should_stop()) and not progress.finished:
                yield StopReport(progress.epoch, progress.step, self.folder.pointer()["last"])
                return

    def _step(self, batch: Any, window: _Window) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self._replay = (batch, self.carry, together.random_state(self.device) if self.device.type == "cpu" else None)
        parts = self.task.losses(batch, self.carry) if batch is not None else iter(())
        done: list[BatchLoss] = []
        while True:
            with autocast(self.device, self.run_settings.dtype):
                loss = next(parts, None)
            if loss is None:
                break
            objective = loss.nats / (loss.divisor or loss.count)
            if loss.penalty is not None:
                objective = objective + loss.penalty
            (objective * loss.share if loss.share != 1.0 else objective).backward()
            done.append(replace(loss, nats=loss.nats.detach(), penalty=None))
        if self.draws is not None and any(layer.estimates_in_training for layer in self._output_layers):
            together.go_on_together(self.ranks, self.draws, len(done))
        if not done:  # this rank has no example of the batch
            done = [BatchLoss(torch.zeros((), device=self.device), 0, None, self.carry)]
        nats, last = torch.stack([loss.nats for loss in done]).sum(), done[-1]
        weight = sum(loss.divisor or loss.count for loss in done)
        count = together.reduce_gradients(self.parameters, self.ranks, weight, sum(loss.count for loss in done))
        norm = clip_gradients(self.parameters, self.optimizer_settings.clip)
        lost = float(nats) if self.device.type == "cpu" and self.ranks.size == 1 else 0.0  # of ranks: with the window
        if self.device.type == "cpu" and not math.isfinite(float(norm) + lost):
            self._fail(batch)
        for group in self.optimizer.param_groups:
            group["lr"] = self.progress.rate * last.rate_scale
        self.optimizer.step()
        if self.progress.averaging:
            self.average.update()
        self.carry = last.carry
        window.nats.append(nats)
        window.norms.append(norm.detach())
        window.first_count = window.first_count or count
        window.count += count
        self.progress.batch += 1
        self.progress.step += 1

    def _fail(self, batch: Any) -> None:
        _, carry, random_numbers = self._replay
        if random_numbers is not None:
            torch.set_rng_state(random_numbers["cpu"])
        culprit = None
        if batch is not None:
            with autocast(self.device, self.run_settings.dtype):
                culprit = divergence.first_bad_module(self.task, batch, carry)
        found = [clause for clause in self.ranks.all(culprit) if clause is not None]
        culprit = next((clause for clause in found if clause != divergence.NOT_AGAIN), divergence.NOT_AGAIN)
        raise self._diverged(
            f"the loss or its gradient is not finite at epoch {self.progress.epoch}, batch {self.progress.batch + 1}, step "
            f"{self.progress.step + 1}: {culprit}"
        )

    def _diverged(self, what: str) -> TrainingError:
        """Return the error of a diverged run: the symptom, how to start again, and what remains."""
        advice = divergence.how_to_go_on(self.progress, self.optimizer_settings, self.folder.pointer())
        return TrainingError(f"{what}; {advice}")

    def _check_weights(self) -> None:
        """Fail if a weight is not finite; without this check only the next loss would show it."""
        name = divergence.first_bad_weight(self.task)
        if name is not None:
            raise self._diverged(
                f"training diverged: {name} holds values that are not finite after step {self.progress.step}, in epoch "
                f"{self.progress.epoch}"
            )

    def _check_validation(self, valid: Mapping[str, float]) -> None:
        """Fail if a metric is not finite, or worse than the metric of the uniform distribution."""
        after = f"after epoch {self.progress.epoch}"
        for name, value in valid.items():
            if not math.isfinite(value):
                raise self._diverged(f"training diverged: validation {name.replace('_', ' ')} is {value} {after}")
        uniform, value = divergence.uniform_perplexity(self.task), valid[self.task.metric.name]
        if uniform is not None and divergence.worse_than_guessing(self.progress, value, uniform):
            seen = (
                f"validation {self.task.metric.name} is {value:.4g} {after}, and a model that gives each of the {uniform:,.0f} "
                f"words the same probability has {uniform:,.0f}"
            )
            train, read = (self.task.target_counts(self.data, split) for split in ("train", "valid"))
            unknown = self.task.vocabulary.unknown_id
            if train is not None and read is not None and unknown is not None and read[unknown] and not train[unknown]:
                seen += (
                    f"; {read[unknown]:,} words to predict in valid are <unk> and none in train is, so that its probability is "
                    "never learned: that may be why, and --min-count 2 of 'sememekit preprocess' makes rare words of train "
                    "<unk>, too"
                )
            raise self._diverged(f"training diverged: {seen}")

    def _close(self, window: _Window, batch: Any, num_batches: int) -> StepReport:
        """Read the window's losses, up to ``batch``, and report them; fail if one is not finite."""
        progress = self.progress
        nats_of_steps = torch.stack(window.nats).double()
        self.ranks.add_up_([nats_of_steps])
        if not bool(torch.isfinite(nats_of_steps).all() & torch.isfinite(torch.stack(window.norms)).all()):
            self._fail(batch)
        values = nats_of_steps.tolist()
        seconds = time.perf_counter() - window.began
        nats = sum(values)
        if not progress.start_nats:
            progress.start_nats = values[0] / window.first_count
        for value in values:  # one by one, so that the sum does not depend on when reports were due
            progress.nats += value
        progress.count += window.count
        progress.seconds += seconds
        progress.cpu_seconds += time.process_time() - window.cpu_began
        where = progress.epoch, progress.batch, num_batches, progress.step
        speed, estimated = window.count / seconds, loss_is_estimated(self._output_layers)
        return StepReport(*where, nats / window.count, progress.rate, speed, estimated)

    def _end_epoch(self, schedule: Schedule) -> Iterator[EpochReport]:
        """Validate, advance the schedule, write a checkpoint.

        The report is written before the checkpoint, so that no report is missing; a run killed in between repeats the epoch."""
        progress, averaged, estimated = self.progress, self.average.count > 0, loss_is_estimated(self._output_layers)
        valid = self._validate()
        self._check_validation(valid)
        if progress.epoch == 1:
            progress.first_nats = progress.nats / progress.count
        report_rate = progress.rate
        verdict = schedule.decide(progress, valid[self.task.metric.name])
        if verdict.rate_cut:
            if self.schedule.reload_best and not verdict.best and progress.best is not None:
                best = self.folder.load("best", with_trainer=False).weights
                self.task.load_state_dict({**best, **training_counters(self.task)})
                self.average.restart()
            rate_was_cut(self.task)
        ended = ending_text(progress, self.schedule)
        progress.rate *= self.schedule.decay
        epoch = progress.epoch
        progress.epoch, progress.batch, self.carry = (epoch if progress.finished else epoch + 1), 0, ()
        yield EpochReport(
            epoch=epoch,
            step=progress.step,
            train_nats=progress.nats / progress.count,
            estimated=estimated,
            valid=valid,
            metric=self.task.metric.name,
            rate=report_rate,
            best=verdict.best,
            rate_cut=verdict.rate_cut,
            finished=ended,
            seconds=progress.seconds,
            cpu_seconds=progress.cpu_seconds,
            tokens_per_second=progress.count / progress.seconds,
            averaged=averaged,
            averaging_begins=verdict.averaging_begins,
            augmented=self.data.num_added("train"),
        )
        self._save(best=verdict.best)
        if verdict.stuck:
            raise TrainingError(verdict.stuck)

    def keep_initial_weights(self) -> None:
        """Validate the initial weights and keep them as the best so far, for runs with ``--from``."""
        valid = self._validate()
        for name, value in valid.items():
            if not math.isfinite(value):
                raise TrainingError(
                    f"--from {self.run_settings.start_from}: before any training its model has the validation "
                    f"{name.replace('_', ' ')} {value} on these data; choose another run, or begin without --from"
                )
        self.progress.best = valid[self.task.metric.name]
        self._save(best=True)

    def _validate(self) -> dict[str, float]:
        self._check_weights()
        valid: dict[str, float] = {}
        if self.ranks.leads:
            with self.average.averaged_weights(), autocast(self.device, self.run_settings.dtype):
                valid = self.task.evaluate(self.data, "valid")
        return self.ranks.leaders(valid)

    def _save(self, *, best: bool) -> str:
        """Write a snapshot with the averaged weights, if any. TrainingError, with nothing written: a weight is not finite."""
        self._check_weights()
        together.check_same_weights(self.task, self.ranks, f"after step {self.progress.step}")
        with self.average.averaged_weights():
            self._check_weights()
            state, name = self.state(), ""
            if self.ranks.leads:
                name = self.folder.save(self.progress.step, self.task, state, best=best)
            return self.ranks.leaders(name)

    def state(self) -> dict[str, Any]:
        """Return all state except weights, of all ranks: carried columns joined, random states of each."""
        return {
            "progress": self.progress.stored(),
            "optimizer": self.optimizer.state_dict(),
            "carry": tuple(self.ranks.joined_along(part, 0) for part in self.carry),
            "average": self.average.state(),
            "random": together.state_of_ranks(self.ranks, self.draws, self.device),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot: weights, optimiser, random numbers, place in the data, hidden state, schedule, best."""
        self.task.load_state_dict(snapshot.weights)
        state = snapshot.trainer
        self.progress = TrainingState.from_stored(state["progress"])
        self.average.restore(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.carry = tuple(part[self.ranks.columns(len(part))].to(self.device) for part in state["carry"])
        seed, step = self.run_settings.seed, self.progress.step
        together.restore_ranks(state["random"], self.ranks, self.draws, self.device, seed, step)


def first_seed(run: RunSettings) -> int:
    """Return torch's first seed: the seed of the run or, after ``--from``, a seed that depends on the earlier epochs."""
    return epoch_seed(run.seed, run.earlier_epochs) if run.earlier_epochs else run.seed


def epoch_seed(seed: int, epoch: int) -> int:
    """Return the seed of the order of an epoch; see ``Task.batches``."""
    return seed * 1_000_003 + epoch


def autocast(device: torch.device, dtype: str) -> AbstractContextManager[Any]:
    """Return the context for matrix products in bfloat16, if the run uses it."""
    if dtype == "bfloat16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
