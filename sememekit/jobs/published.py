"""A causal language model of Hugging Face as a run that was never trained, for the commands that ask runs."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from sememekit.config import resources_folder
from sememekit.encoders.pretrained import Pretrained
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.training import open_training
from sememekit.text.huggingface import local_folder

PREFIX: Final = "hf:"
USUAL: Final = "valid"
"""Split that means are taken over where no data are given: the text that ships, whose few words have no useful counts."""

_held: list[TemporaryDirectory[str]] = []
"""Temporary folders, which are removed when the process ends."""


def is_published(model: Path) -> bool:
    """Return whether a run is named as ``hf:PATH``."""
    return str(model).startswith(PREFIX)


def run_of(model: Path, data: Path | None = None) -> Path:
    """The folder of a run; of ``hf:PATH`` a temporary one with the weights of that model, and with its pieces as words.

    The output layer is the model's own: its output vectors, without a bias.

    Args:
        data: prepared by its tokenizer (``preprocess --segmenter hf:PATH``), for counts and means; None: the text that ships.

    Raises ConfigError: the model cannot be read or looks ahead, or another tokenizer cut the data.
    """
    if not is_published(model):
        return model
    path = str(model).removeprefix(PREFIX)
    local_folder(path, str(model))  # a message that names what was typed
    _held.append(TemporaryDirectory(prefix="sememekit-"))
    folder = Path(_held[-1].name)
    if data is None:
        data = folder / "data"
        settings = PreprocessSettings(segmenter=str(model), end_of_sentence=False)
        preprocess("plain", resources_folder() / "plain-sentences", data, settings)
    size, context = Pretrained.vector_size(Pretrained.Settings(path=path)), min(256, Pretrained.positions(path) or 256)
    table: dict[str, dict[str, Any]] = {
        "data": {"path": str(data)},
        "task": {"name": "language_model", "embedding_size": size},
        "encoder": {"name": "hf", "path": path, "context": context, "overlap": context // 2},
        "decoder": {"name": "softmax", "bias": False},
    }
    out = folder / Path(path).name
    with open_training(table, out, resume=False, on_remark=lambda text: None) as training:
        training.trainer.keep_initial_weights()
    return out
