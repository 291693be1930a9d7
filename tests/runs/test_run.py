"""A run as an object: what its folder tells, without weights where it can, and the one list of its files."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.commands._options import choose
from sememekit.data.prepared import PreparedData
from sememekit.data.segmenters import recorded_segmenter
from sememekit.errors import CheckpointError, ConfigError, DataError
from sememekit.files import replace_file
from sememekit.jobs.train import train
from sememekit.notebook.run import EXPLAINERS
from sememekit.runs.run import TRAIN_COUNTS, Run, load_weights
from sememekit.training import RunFolder, manifest
from sememekit.training.manifest import FIXED, KEPT, replace_listed, write_run_manifest
from tests.small_run import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("place")
    (folder / "lex.txt").write_text("苹果\n水果\n电脑\n机器\n无名\n事物\n", encoding="utf-8")
    return Place(folder, segmenter="fmm", lexicon=f"list:{folder / 'lex.txt'}")


@pytest.fixture(scope="module")
def run(place: Place) -> Path:
    train(place.table("sdlm", schedule__epochs=1, run__dtype="tf32"), place.folder / "run")
    return place.folder / "run"


def test_a_run_gives_what_its_folder_has(run: Path, place: Place) -> None:
    opened = Run.open(run, device="cpu")
    assert opened.plan.decoder is not None
    assert opened.plan.decoder.name == "sdlm"
    assert opened.vocabulary.fingerprint == place.data.vocabulary.fingerprint
    assert opened.signature == place.data.signature
    assert opened.graph is not None
    assert opened.clusters is None
    assert opened.chunks is None
    assert opened.labels == ()
    assert opened.data().folder == place.data.folder
    assert opened.snapshot == opened.folder.pointer()["best"]
    assert not opened.task.training
    assert [record["epoch"] for record in opened.folder.metrics() if record["kind"] == "EpochReport"] == [1]
    assert opened.settings.dtype == "tf32"
    assert Run.open(run, dtype="float32").settings.dtype == "float32"
    with pytest.raises(ConfigError, match="which='first': allowed are best and last"):
        Run.open(run, which="first")  # type: ignore[arg-type]
    assert opened.task is opened.load().task, "the weights are read once"


def test_an_open_run_is_not_read_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Run.open(run, device="cpu")
    monkeypatch.setattr(RunFolder, "open", lambda path: pytest.fail(f"{path} is read again"))
    again = Run.open(opened, which="last", dtype="float32")
    assert (again.plan, again.vocabulary) == (opened.plan, opened.vocabulary)
    assert again.settings.dtype == "float32"
    assert opened.settings.dtype == "tf32"
    assert again.snapshot == again.folder.pointer()["last"]
    assert str(again) == str(run)
    with pytest.raises(ConfigError, match="--label: "):  # refused by the kind of the run that was opened, not by its folder
        choose("explain", opened, EXPLAINERS, {"label": "x"})


def test_what_a_run_can_do_is_known_without_weights(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "copy")
    for weights in (tmp_path / "copy" / "checkpoints").glob("step-*/weights.safetensors"):
        weights.unlink()
    opened = Run.open(tmp_path / "copy")
    assert opened.kinds == {"words"}
    with pytest.raises(CheckpointError, match=r"weights\.safetensors is missing"):
        opened.load()


@pytest.mark.parametrize(
    ("said", "first"), [("one line", "one line"), ("of what:\n\tthe first", "the first"), ("of what:\n\ta\n\tb", "a")]
)
def test_weights_that_do_not_fit_are_named_by_the_first_fault(said: str, first: str) -> None:
    """The first line of a longer error has only the class of the model."""

    def fails(weights: dict[str, object]) -> None:
        raise RuntimeError(said)

    task: Any = SimpleNamespace(load_state_dict=fails)
    with pytest.raises(CheckpointError) as caught:
        load_weights(task, {}, Path("runs/a"))
    assert str(caught.value) == f"runs/a: the weights do not fit the plan ({first}); was plan.json changed?"


def test_wrong_settings_are_refused(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"dtype.*float64"):
        Run.open(run, dtype="float64")
    with pytest.raises(ConfigError, match=r"device.*tpu"):
        Run.open(run, device="tpu")
    with pytest.raises(DataError, match=r"trained on the vocabulary"):
        Run.open(run).data(Place(run.parent / "other", segmenter="characters").data.folder)


@pytest.mark.parametrize("last", ["0", "9" * 18, "9" * 19, "-1", "many", "1\n2", ""])
def test_counts_of_the_training_text_are_one_for_each_word(run: Path, tmp_path: Path, last: str) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    words = Run.open(run).vocabulary
    assert Run.open(copy).train_counts.tolist() == words.counts.tolist()
    counts = [str(number) for number in range(len(words) - 1)]
    replace_listed(copy, TRAIN_COUNTS, "".join(f"{line}\n" for line in [*counts, last]).encode())
    if last in {"0", "9" * 18}:
        assert Run.open(copy).train_counts.tolist() == [*range(len(words) - 1), int(last)]
        return
    with pytest.raises(CheckpointError, match=f"{TRAIN_COUNTS} must have one count for each of the {len(words)} words"):
        _ = Run.open(copy).train_counts


def test_an_open_run_gives_its_choices_to_the_next(run: Path) -> None:
    """A run that was opened in its last state, on a device, in a dtype, is opened again so; other choices replace these."""
    first = Run.open(run, which="last", device="cpu", dtype="float32", sources=())
    assert Run.open(first) is first
    assert Run.open(first, which="last", device="cpu", dtype="float32", sources=[]) is first
    other = Run.open(first, which="best")
    assert other is not first
    assert (other.settings.device, other.settings.dtype, other.snapshot) == ("cpu", "float32", other.folder.pointer()["best"])
    plain = Run.open(run)
    assert (plain.settings.device, plain.settings.dtype) == ("auto", "tf32")
    again = Run.open(plain, device="cpu")
    assert (again.settings.device, again.settings.dtype, again.graph) == ("cpu", "tf32", plain.graph)


def test_run_and_data_cut_alike_without_the_file_of_the_lexicon(run: Path, place: Place) -> None:
    text = "我吃无名苹果电脑"
    expected = ["我", "吃", "无名", "苹果", "电脑"]
    opened = Run.open(run)
    assert place.data.segmenter().segment(text) == opened.segmenter().segment(text) == expected
    assert opened.segmenter() is opened.segmenter(), "which is slow to open"


def test_one_list_names_the_files_of_a_run(run: Path) -> None:
    there = {path.name for path in run.iterdir() if path.is_file()} - {".lock"}
    assert there - set(FIXED) == {"manifest.json", "metrics.jsonl", "report.html"}
    assert set(Run.open(run).folder.kept()) == there & set(KEPT) >= {"lexicon.txt", "vocabulary.tsv", "data.json", "graph.json"}


def test_missing_and_other_words_are_refused(run: Path, place: Place, tmp_path: Path) -> None:
    shutil.copytree(place.data.folder, tmp_path / "data")
    (tmp_path / "data" / "lexicon.txt").unlink()
    with pytest.raises(DataError, match=r"lexicon\.txt.*No such file.*copy the folder again"):
        PreparedData.open(tmp_path / "data")
    with pytest.raises(DataError, match="leave --lexicon out"):
        recorded_segmenter(place.data.signature, place.data.folder / "signature.json", words=["苹果", "水果"])


def test_a_kill_while_a_file_is_added_leaves_a_run_that_opens(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "run")
    words = (tmp_path / "run" / "lexicon.txt").read_bytes()
    (tmp_path / "run" / "lexicon.txt").unlink()
    write_run_manifest(tmp_path / "run")
    for steps in (1, 2):
        left = [steps]

        def killed(path: Path, content: bytes, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            replace_file(path, content)

        monkeypatch.setattr(manifest, "replace_file", killed)
        with pytest.raises(KeyboardInterrupt):
            manifest.replace_listed(tmp_path / "run", "lexicon.txt", words)
        assert (tmp_path / "run" / "lexicon.txt").exists() == (steps == 2)
        Run.open(tmp_path / "run")


def test_a_changed_lexicon_is_noticed(run: Path, place: Place, tmp_path: Path) -> None:
    shutil.copytree(place.data.folder, tmp_path / "data")
    shutil.copytree(run, tmp_path / "run")
    for folder in ("data", "run"):
        (tmp_path / folder / "lexicon.txt").write_text("苹果\n梨", encoding="utf-8")
    with pytest.raises(DataError, match=r"lexicon\.txt: changed or damaged"):
        PreparedData.open(tmp_path / "data")
    with pytest.raises(CheckpointError, match=r"lexicon\.txt does not match its checksum"):
        Run.open(tmp_path / "run")
