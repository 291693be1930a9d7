"""Guards that a sabotage showed no other test of this folder to see, each asked alone; and the table of sabotages."""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import CheckpointError, DataError
from sememekit.files import CutArchiveError, DamagedArchiveError, replace_file, sealed, sole_writer, unpack_blocks
from sememekit.training.manifest import FIXED, MANIFEST, check_manifest, hashes, replace_listed, write_manifest
from sememekit.training.snapshots import read_pointer, write_pointer
from tests.faults.child import Commands
from tests.faults.fitted import fit
from tests.faults.hostile import Stage
from tests.faults.runs import put, write_lexicon
from tests.faults.sabotage import ROOT, sabotages
from tests.tiny_models import write_classifier, write_gpt2


def test_the_table_of_sabotages_is_of_this_program() -> None:
    for one in sabotages():
        assert one.old in (ROOT / "sememekit" / one.file).read_text(encoding="utf-8"), one.name
        assert all((ROOT / "tests" / part).exists() for part in one.area.split()), one.name


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """A folder out of an archive may have links to files of its user where temporary files and locks are opened."""
    mine = tmp_path / ".bashrc"
    mine.write_text("mine", encoding="utf-8")
    (tmp_path / ".plan.json.writing").symlink_to(mine)
    (tmp_path / ".lock").symlink_to(mine)
    replace_file(tmp_path / "plan.json", b"theirs")
    with pytest.raises(OSError, match="no regular file"), sole_writer(tmp_path / ".lock", AssertionError):
        pass
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("old", encoding="utf-8")
    with mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "full")), pytest.raises(OSError, match="full"):
        replace_file(tmp_path / "plan.json", b"new")
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("packing", [".xz", ".bz2", ".gz", ".zst"])
def test_a_bomb_is_unpacked_a_block_at_a_time(packing: str) -> None:
    plain = bytes(24 << 20)
    if packing == ".zst":
        packed = pytest.importorskip("backports.zstd", reason="the extra 'remote' is not installed").compress(plain)
    else:
        packed = {".xz": lzma.compress, ".bz2": bz2.compress, ".gz": gzip.compress}[packing](plain)
    sizes = [len(block) for block in unpack_blocks(packing, [packed])]
    assert (sum(sizes), max(sizes)) == (len(plain), 1 << 20)
    with pytest.raises(CutArchiveError):
        list(unpack_blocks(packing, [packed[:-9]]))


def test_an_archive_may_not_ask_for_any_memory() -> None:
    packed = bytearray(lzma.compress(b"text"))
    size = 4 * (packed[12] + 1)  # of the header of the first block, which ends with its checksum
    place = packed.index(b"\x21\x01", 12) + 2
    packed[place] = 40  # a dictionary of 4 GiB
    packed[12 + size - 4 : 12 + size] = zlib.crc32(packed[12 : 12 + size - 4]).to_bytes(4, "little")
    with pytest.raises(DamagedArchiveError, match="limit"):
        list(unpack_blocks(".xz", [bytes(packed)]))


@pytest.mark.parametrize("name", FIXED)
def test_every_fixed_file_of_a_run_is_compared_with_its_manifest(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"whole")
    write_manifest(tmp_path, hashes({name: b"whole"}))
    check_manifest(tmp_path)
    (tmp_path / name).write_bytes(b"other")
    with pytest.raises(CheckpointError, match=rf"{name} does not match its checksum in {MANIFEST}"):
        check_manifest(tmp_path)
    write_manifest(tmp_path, {})
    with pytest.raises(CheckpointError, match=f"{name} is no file of this run"):
        check_manifest(tmp_path)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(CheckpointError, match=r"manifest\.json is missing"):
        check_manifest(tmp_path)


def test_a_fixed_file_and_its_manifest_are_replaced_in_step(tmp_path: Path) -> None:
    """Killed before any of the renames, the folder is as before or as after."""
    real, states = os.replace, set[bytes]()
    for last in range(4):
        (tmp_path / "plan.json").write_bytes(b"old")
        write_manifest(tmp_path, hashes({"plan.json": b"old"}))
        ends = iter([False] * last + [True])

        def replace(source: Path, target: Path, ends: Iterator[bool] = ends) -> None:
            if next(ends, False):
                raise KeyboardInterrupt
            real(source, target)

        with mock.patch("os.replace", replace), suppress(KeyboardInterrupt):
            replace_listed(tmp_path, "plan.json", b"new")
        check_manifest(tmp_path)
        states.add((tmp_path / "plan.json").read_bytes())
    assert states == {b"old", b"new"}


def test_a_pointer_whose_names_were_exchanged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pointer.json"
    write_pointer(path, {"best": "step-00000004", "last": "step-00000008"})
    read_pointer(path, str)
    table = json.loads(path.read_bytes())
    path.write_text(json.dumps({**table, "best": table["last"], "last": table["best"]}), encoding="utf-8")
    with pytest.raises(CheckpointError, match="its own checksum"):
        read_pointer(path, lambda: "")


def test_words_of_a_segmenter_are_those_of_the_signature(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("我吃苹果\n" * 20, encoding="utf-8")
    lexicon = f"hownet2000:{write_lexicon(tmp_path / 'lexicon.tsv')}"
    flags = ["--segmenter", "fmm", "--lexicon", lexicon, "--min-count", 1, "-q"]
    commands.do("preprocess", "plain", tmp_path / "t.txt", *flags, "--out", tmp_path / "data")
    PreparedData.open(tmp_path / "data")
    words = (tmp_path / "data" / "lexicon.txt").read_text(encoding="utf-8").split("\n")
    (tmp_path / "data" / "lexicon.txt").write_text("\n".join(words[1:]), encoding="utf-8")
    with pytest.raises(DataError, match=r"lexicon\.txt: changed or damaged"):
        PreparedData.open(tmp_path / "data")


@pytest.fixture
def run(stage: Stage, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stage.sdlm.run, tmp_path / "run"))


def test_a_snapshot_of_another_run_is_refused(commands: Commands, run: Path) -> None:
    versions = json.loads((run / "versions.json").read_bytes())
    (run / "versions.json").write_text(json.dumps({**versions, "run": "0" * 64}), encoding="utf-8")
    fit(run)
    assert "is a snapshot of another run" in commands("evaluate-ppl", run).err


def test_chunks_are_those_of_the_data_of_a_run(commands: Commands, run: Path) -> None:
    path = run / "chunks.tsv"
    head, first, *rest = path.read_text(encoding="utf-8").split("\n")
    count, _, words = first.partition("\t")
    path.write_text("\n".join([head, f"{int(count) + 1}\t{words}", *rest]), encoding="utf-8")
    fit(run)
    assert "has the fingerprint" in commands("evaluate-ppl", run).err


def test_a_run_with_odd_files_is_refused(commands: Commands, run: Path) -> None:
    os.mkfifo(run / "augment.jsonl")
    assert "augment.jsonl is no regular file" in commands("evaluate-ppl", run).err


def test_push_copies_no_file_that_a_link_points_to(commands: Commands, run: Path, tmp_path: Path) -> None:
    (tmp_path / "id_rsa").write_text("private", encoding="utf-8")
    (run / "lexicon.txt").symlink_to(tmp_path / "id_rsa")
    listed = json.loads((run / MANIFEST).read_bytes())
    (run / MANIFEST).write_text(json.dumps({"files": {**listed["files"], "lexicon.txt": ""}}), encoding="utf-8")
    fit(run)
    assert "lexicon.txt is no regular file" in commands("push", run, tmp_path / "pushed").err
    assert not (tmp_path / "pushed").exists()


def test_a_pushed_file_that_was_changed_is_not_pulled(commands: Commands, stage: Stage, tmp_path: Path) -> None:
    pushed = shutil.copytree(stage.sdlm.folder / "pushed", tmp_path / "pushed")
    lines = (pushed / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (pushed / "metrics.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    assert "metrics.jsonl does not match its checksum" in commands("pull", pushed, "--out", tmp_path / "run").err


def test_a_run_has_one_writer(commands: Commands, run: Path) -> None:
    with sole_writer(run / ".lock", AssertionError):
        assert "is being written by another command (process" in commands("train", "--out", run, "--resume", "-q").err


def test_a_page_replaces_no_file_of_somebody_else(commands: Commands, run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.html").write_text("<p>mine", encoding="utf-8")
    assert "is not replaced" in commands("report", run, "--html", tmp_path / "mine.html").err
    assert (tmp_path / "mine.html").read_text(encoding="utf-8") == "<p>mine"


def test_an_attack_goes_on_with_the_candidates_that_it_was_begun_with(commands: Commands, stage: Stage) -> None:
    table, kept = stage.nli.folder / "table.json", stage.folder / "kept-table.json"
    put(table, kept)
    words = json.loads(table.read_bytes())
    table.write_text(json.dumps({**words, "park": ["rain"]}), encoding="utf-8")
    try:
        assert "was begun with candidates.table.json" in commands("attack", "--out", stage.attack, "--resume", "-q").err
    finally:
        put(kept, table)


def test_a_run_whose_name_is_not_utf8_says_to_rename_it(commands: Commands, run: Path, tmp_path: Path) -> None:
    other = tmp_path / os.fsdecode(b"run-\xc4\xe3")
    run.rename(other)
    told = commands("evaluate-ppl", other)
    assert (told.code, "its name is not UTF-8; rename the folder" in told.err) == (1, True)


def test_a_number_in_the_place_of_a_table_is_no_bug(commands: Commands, stage: Stage, run: Path, tmp_path: Path) -> None:
    plan = json.loads((run / "plan.json").read_bytes())
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "seeds.json").write_bytes(sealed({"table": {**plan, "task": 3}}))
    (run / "plan.json").write_text(json.dumps({**plan, "decoder": 3}), encoding="utf-8")
    fit(run)
    for command in (
        ["train", "--seeds", "1", "--out", tmp_path / "seeds", "--resume"],
        ["train", "--from", run, "--out", tmp_path / "out"],
        ["train", "--out", run, "--resume"],
        ["evaluate-ppl", run],
    ):
        told = commands(*command)
        assert told.clean, told
        assert "is 3)" in told.err


def test_a_name_with_a_nul_byte_is_no_bug(commands: Commands, stage: Stage, tmp_path: Path) -> None:
    told = commands("build-sememe-graph", "--source", "list:a\0b", "--data", stage.sdlm.data, "--out", tmp_path / "g")
    assert told.clean, told


def bring_code(folder: Path, *classes: str) -> None:
    """Let a folder of transformers name code of its own for some classes, as folders on the hub do."""
    (folder / "brought.py").write_text("import fault_canary\n", encoding="utf-8")
    for name, kinds in (("config.json", classes), ("tokenizer_config.json", ("AutoTokenizer",))):
        table = json.loads((folder / name).read_bytes())
        named = {kind: ["brought.Mine", None] if kind == "AutoTokenizer" else "brought.Mine" for kind in kinds}
        (folder / name).write_text(json.dumps({**table, "auto_map": named}), encoding="utf-8")


def test_no_code_that_a_model_brings_is_run(commands: Commands, stage: Stage, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")
    victim = write_classifier(tmp_path / "victim", ["no", "yes"])
    bring_code(victim, "AutoConfig", "AutoModelForSequenceClassification")
    (tmp_path / "x.tsv").write_text("a man\tno\n", encoding="utf-8")
    attack = ["attack", f"hf:{victim}", "--data", tmp_path / "x.tsv", "--source", "open", "--out", tmp_path / "a", "-q"]
    assert "had nothing to try" in commands(*attack).err, "the model was opened and asked"
    assert not commands.executed()
    encoder = write_gpt2(tmp_path / "encoder")
    bring_code(encoder, "AutoConfig", "AutoModel", "AutoModelForCausalLM")
    train = ["train", "--data", stage.sdlm.data, "--encoder", f"hf:{encoder}", "--set", "schedule.epochs=1"]
    sizes = ["task.embedding_size=16", "encoder.context=48", "encoder.overlap=24"]
    commands.do(*train, *(part for size in sizes for part in ("--set", size)), "--out", tmp_path / "run", "-q")
    assert not commands.executed()
