"""Small data, models of a few hundred numbers on them, each made once for all tests, and which runs are opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sememekit.jobs.train import train
from sememekit.training import RunFolder
from tests.small_pairs import PairPlace, learned_run
from tests.small_run import Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="session")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> PairPlace:
    return PairPlace(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def headlines(pairs: PairPlace) -> Path:
    return learned_run(pairs)


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
def organized(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clusters that were never assigned in training, so that there is something to move."""
    run = tmp_path_factory.mktemp("runs") / "organized"
    train(place.table("self_organized", decoder__update_every=1000, schedule__epochs=2), run)
    return run


@pytest.fixture
def organized_copy(organized: Path, tmp_path: Path) -> Path:
    shutil.copytree(organized, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="session")
def ending(sentences: Place, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of sentences with ``<eos>``."""
    run = tmp_path_factory.mktemp("runs") / "ending"
    train(sentences.table(schedule__epochs=3), run)
    return run


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Run folders in the order in which they are opened."""
    paths, open_folder = [], RunFolder.open

    def counted(path: Path) -> RunFolder:
        paths.append(path)
        return open_folder(path)

    monkeypatch.setattr(RunFolder, "open", counted)
    return paths
