"""Small runs of each kind, served once; a client that asks in process, and a server that a browser can reach."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sememekit.sememes import build_graph, open_lexicon
from tests.analysis.test_lattices import trained
from tests.small_run import Place

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from fastapi.testclient import TestClient

from sememekit.data.prepared import PreparedData
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.serve.app import make_app
from sememekit.serve.runs import Bench
from sememekit.serve.server import make_server
from sememekit.serve.worker import Worker


def write_films(folder: Path) -> Path:
    """Texts whose label hangs on one of two words with the same sememes in the open lexicon: an attack exchanges them."""
    folder.mkdir(parents=True)
    source = random.Random(2)
    for split, size in (("train", 200), ("valid", 30), ("test", 30)):
        rows = []
        for _ in range(size):
            word = source.choice(["电影", "影片"])
            who = source.choice(["工人", "学生", "老师"])
            rows.append(f"今天 {who} 喜欢 {word} 。\t{'cinema' if word == '电影' else 'other'}")
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind: words with senses and without, characters, labels."""
    folder = tmp_path_factory.mktemp("served")
    place = Place(folder / "words")
    train(place.table("sdlm", schedule__epochs=3), folder / "sdlm")
    train(place.table(schedule__epochs=3), folder / "softmax")
    characters = folder / "characters"
    Place(characters, end_of_sentence=True, segmenter="characters", chunks=30, chunk_length=3)
    trained(characters, "lattice", longest_chunk=3)
    preprocess("classification", write_films(folder / "films"), folder / "film-data")
    data = PreparedData.open(folder / "film-data")
    build_graph(data.vocabulary, [open_lexicon("open")]).save(folder / "film.graph")
    table: dict[str, Any] = {
        "data": {"path": str(data.folder)},
        "graph": {"path": str(folder / "film.graph")},
        "task": {"name": "classification", "embedding_size": 8, "batch_size": 8, "classifier_size": 8},
        "encoder": {"name": "lstm", "hidden_size": 8, "num_layers": 1, "injection": "cell"},
        "optimizer": {"name": "adam", "learning_rate": 0.02},
        "schedule": {"epochs": 4},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
    }
    train(table, folder / "films-run")
    return folder


@pytest.fixture(scope="session")
def bench(folders: Path, headlines: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    runs = [folders / "sdlm", folders / "softmax", folders / "characters" / "lattice", folders / "films-run", headlines]
    return Bench(runs, save=tmp_path_factory.mktemp("saved") / "workbench", device="cpu")


@pytest.fixture(scope="session")
def client(bench: Bench) -> TestClient:
    return TestClient(make_app(bench, Worker()), base_url="http://localhost")


@contextmanager
def serving(bench: Bench, token: str | None = None, names: tuple[str, ...] = ()) -> Iterator[str]:
    """A server on a free port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    worker = Worker()
    server = make_server(make_app(bench, worker, token=token, names=names))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)
    worker.close()


@pytest.fixture(scope="session")
def address(bench: Bench) -> Iterator[str]:
    with serving(bench) as address:
        yield address
