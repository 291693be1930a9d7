"""Models of a few hundred numbers, trained once for all tests of the commands, and the files of an attack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sememekit.commands.train import train
from sememekit.training import RunFolder
from tests.attack.toys import TABLE, TEXTS
from tests.small_run import Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="session")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same text with ``<eos>`` at the end of each sentence."""
    return Place(tmp_path_factory.mktemp("sentences"), end_of_sentence=True)


@pytest.fixture(scope="session")
def sdlm(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "sdlm"
    train(place.table("sdlm", schedule__epochs=3, task__input_dropout=0.2), run)
    return run


@pytest.fixture(scope="session")
def softmax(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "softmax"
    train(place.table(schedule__epochs=3), run)
    return run


@pytest.fixture(scope="session")
def ending(sentences: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of sentences with ``<eos>``."""
    run = tmp_path_factory.mktemp("runs") / "ending"
    train(sentences.table(schedule__epochs=3), run)
    return run


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """What an attack of the toy victim reads: examples, the last two without a label it knows, and a table of substitutes."""
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS) + "good\t-\nbad\tperhaps\n", encoding="utf-8")
    table = tmp_path / "table.json"
    table.write_text(json.dumps(TABLE), encoding="utf-8")
    return {"data": data, "table": table, "out": tmp_path / "out"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Run folders in the order in which they are opened."""
    paths, open_folder = [], RunFolder.open

    def counted(path: Path) -> RunFolder:
        paths.append(path)
        return open_folder(path)

    monkeypatch.setattr(RunFolder, "open", counted)
    return paths
