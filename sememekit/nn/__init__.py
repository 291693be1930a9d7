"""Output layers, encoders and losses of sememekit as torch modules for a model of your own.

They take plain arguments and settings by name, word ids in any order, counts and senses as lists or arrays. They need no
vocabulary file, task or run, and do not change environment, threads or random seeds. All work with autocast,
``DistributedDataParallel``, ``torch.compile``, ``torch.export`` and state dicts."""

from sememekit.nn.encoders import AWDLSTM, MogrifierLSTM, SememeGRU, SememeLSTM
from sememekit.nn.lattice_loss import LatticeLoss
from sememekit.nn.output_layer import Output, OutputLayer
from sememekit.nn.self_organized import SelfOrganizedSoftmax
from sememekit.nn.senses import Senses
from sememekit.nn.softmaxes import (
    AdaptiveSoftmax,
    ClassSoftmax,
    DifferentiatedSoftmax,
    FullSoftmax,
    MixtureOfContexts,
    MixtureOfSememeSoftmaxes,
    MixtureOfSoftmaxes,
    SampledSoftmax,
    SememeSoftmax,
    TreeSoftmax,
)

__all__ = [
    "AWDLSTM",
    "AdaptiveSoftmax",
    "ClassSoftmax",
    "DifferentiatedSoftmax",
    "FullSoftmax",
    "LatticeLoss",
    "MixtureOfContexts",
    "MixtureOfSememeSoftmaxes",
    "MixtureOfSoftmaxes",
    "MogrifierLSTM",
    "Output",
    "OutputLayer",
    "SampledSoftmax",
    "SelfOrganizedSoftmax",
    "SememeGRU",
    "SememeLSTM",
    "SememeSoftmax",
    "Senses",
    "TreeSoftmax",
]
