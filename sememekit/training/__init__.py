"""The trainer, its settings and the run folder; no concrete task, encoder or decoder is imported here."""

from sememekit.training.checkpoint import RunFolder
from sememekit.training.metrics import ChangeReport, EpochReport, Report, StepReport, StopReport
from sememekit.training.settings import OptimizerSettings, RunSettings, ScheduleSettings
from sememekit.training.snapshots import Snapshot
from sememekit.training.trainer import Trainer, autocast
