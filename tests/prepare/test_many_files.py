"""A corpus in many files: packed, in columns, behind fsspec; read side by side, and continued after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.corpora.base import Corpus
from sememekit.corpora.benchmarks import PennTreebank
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.plain import Plain
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.prepare.shards import ShardJob
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.reading import Span
from sememekit.text.segmenters import Characters, Segmenter, WhiteSpace
from tests.prepare.batches import BATCHES, pack_zstd, write_batch


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith("signature")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the prepared files of one plain file with all the lines."""
    folder = tmp_path_factory.mktemp("whole")
    write_batch(folder / "whole.txt", [line for batch in BATCHES for line in batch])
    preprocess("plain", folder / "whole.txt", folder / "out")
    return bytes_of(folder / "out")


ENDINGS = [".txt", ".txt.gz", ".txt.xz", ".txt.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_of_files_is_one_text(ending: str, expected: dict[str, bytes], tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    for number, batch in enumerate(BATCHES):
        write_batch(parts / f"part-{number}{ending}", batch)
    (parts / "README.md").write_text("not a part")
    report = preprocess("plain", parts, tmp_path / "out")
    assert [source.name for source in report.signature.sources] == [f"part-{number}{ending}" for number in range(4)]
    assert bytes_of(tmp_path / "out") == expected


@pytest.mark.parametrize("kind", ["pattern", "file-url", "memory", "memory-folder", "files"])
def test_many_files_by_a_pattern_a_url_or_each_by_name(kind: str, expected: dict[str, bytes], tmp_path: Path) -> None:
    for number, batch in enumerate(BATCHES):
        write_batch(tmp_path / f"part-{number}.txt.gz", batch)
    pattern = f"{tmp_path}/part-*.txt.gz"
    if kind.startswith("memory"):
        fsspec = pytest.importorskip("fsspec")
        for path in tmp_path.glob("part-*"):
            with fsspec.open(f"memory://{tmp_path.name}/{path.name}", "wb") as stream:
                stream.write(path.read_bytes())
        pattern = f"memory://{tmp_path.name}" + ("/part-*.gz" if kind == "memory" else "")
    elif kind == "file-url":
        pytest.importorskip("fsspec")
        pattern = f"file://{pattern}"
    if kind == "files":
        whole = write_batch(tmp_path / "all.txt", BATCHES[0])
        files = {"train": [tmp_path / f"part-{number}.txt.gz" for number in range(4)], "valid": [str(whole)]}
        found = preprocess("plain", None, tmp_path / "out", files=files).signature
        assert [source.split for source in found.sources] == ["train"] * 4 + ["valid"]
        assert (found.splits["train"].sentences, found.splits["valid"].sentences) == (2000, 500)
        return
    preprocess("plain", pattern, tmp_path / "out")
    assert bytes_of(tmp_path / "out") == expected


def test_any_number_of_workers_gives_the_same_bytes(expected: dict[str, bytes], tmp_path: Path) -> None:
    for number, batch in enumerate(BATCHES):
        write_batch(tmp_path / f"part-{number}.jsonl.gz", batch)
    preprocess("plain", f"{tmp_path}/*.gz", tmp_path / "out", PreprocessSettings(workers=2, shard_bytes=4000))
    assert bytes_of(tmp_path / "out") == expected


def test_what_was_unpacked_is_taken_again_where_it_is_whole(expected: dict[str, bytes], tmp_path: Path) -> None:
    for number, batch in enumerate(BATCHES):
        write_batch(tmp_path / f"part-{number}.txt.gz", batch)

    def stop(stage: str, done: int, total: int | None) -> None:
        if (stage, done) == ("hash", 3):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        preprocess("plain", f"{tmp_path}/*.gz", tmp_path / "out", progress=stop)
    work = tmp_path / ".out.partial"
    kept = sorted(work.glob("*.unpacked"))
    assert [path.name for path in kept] == ["0.unpacked", "1.unpacked", "2.unpacked"]
    kept[1].write_bytes(kept[1].read_bytes()[:-3] + b"zzz")  # a page that the disk lost
    write_batch(tmp_path / "part-2.txt.gz", [*BATCHES[2], "new"])
    write_batch(tmp_path / "part-2.txt.gz", BATCHES[2])  # another inode or time
    times = {path.name: path.stat().st_mtime_ns for path in kept}
    seen: dict[str, int] = {}

    def look(stage: str, done: int, total: int | None) -> None:
        if (stage, done) == ("hash", 4):
            seen.update({path.name: path.stat().st_mtime_ns for path in work.glob("*.unpacked")})

    preprocess("plain", f"{tmp_path}/*.gz", tmp_path / "out", progress=look)
    assert [name for name, time in times.items() if seen[name] == time] == ["0.unpacked"]
    assert bytes_of(tmp_path / "out") == expected


SCRIPT = """
import os, signal, sys
from pathlib import Path
from sememekit.jobs.preprocess import preprocess
from sememekit.errors import EngineError
from sememekit.prepare.settings import PreprocessSettings
killed = False
def told(stage, done, total):
    global killed
    if stage != "shards" or done < 2 or killed:
        return
    killed = True
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)
            return
if __name__ == "__main__":
    try:
        preprocess("plain", sys.argv[1], sys.argv[2], PreprocessSettings(workers=2, shard_bytes=1000), progress=told)
    except EngineError as error:
        sys.exit(f"told: {error}")
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_killed_worker_loses_no_finished_shard(expected: dict[str, bytes], tmp_path: Path) -> None:
    for number, batch in enumerate(BATCHES):
        write_batch(tmp_path / f"part-{number}.txt", batch)
    (tmp_path / "run.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "run.py"), f"{tmp_path}/part-*.txt", str(tmp_path / "out")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "told: a worker was killed" in run.stderr
    finished = len(list((tmp_path / ".out.partial").glob("*.done")))
    assert finished >= 2
    begun: list[int] = []
    preprocess(
        "plain",
        f"{tmp_path}/part-*.txt",
        tmp_path / "out",
        PreprocessSettings(shard_bytes=1000),
        progress=lambda stage, done, total: begun.append(done) if stage == "shards" else None,
    )
    assert begun[0] == finished
    assert bytes_of(tmp_path / "out") == expected


LINES = st.lists(
    st.text(
        st.sampled_from("天地人和大学。，ab9é %\u3000\u2028😀\x85")
        | st.characters(exclude_characters="\n", exclude_categories=["Cs"])
    )
)
SEGMENTERS: list[Segmenter] = [
    WhiteSpace(),
    Characters(),
    MaximumMatcher(["天地", "大学", "人和大", "a天", "9%"]),
    MaximumMatcher(["天地", "ab", "é天"], cut_latin=True),
]


@given(lines=LINES, number=st.integers(0, 3), ptb=st.booleans(), end=st.sampled_from([None, "<eos>"]), closed=st.booleans())
def test_blocks_of_lines_agree_with_lines_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], number: int, ptb: bool, end: str | None, closed: bool
) -> None:
    folder = tmp_path_factory.mktemp("shard")
    text = folder / "text"
    text.write_bytes(("\n".join(lines) + "\n" * closed).encode())
    span = Span(text, "text", 0, text.stat().st_size)
    corpus: Corpus = PennTreebank(folder) if ptb else Plain(text)
    segmenter = WhiteSpace() if ptb else SEGMENTERS[number]
    assert corpus.is_lines(segmenter)
    job = ShardJob(folder, corpus, segmenter, end, "replace")
    found = job.process(span, "blocks")
    corpus.is_lines = lambda segmenter: False  # type: ignore[method-assign]
    one_by_one = job.process(span, "lines")
    assert found[1:] == one_by_one[1:]
    assert found.units().tolist() == one_by_one.units().tolist()
    names, others = ({index: word for word, _, index in shard.types()} for shard in (found, one_by_one))
    assert [names[index] for index in found.ids().tolist()] == [others[index] for index in one_by_one.ids().tolist()]
    assert {word: count for word, count, _ in found.types()} == {word: count for word, count, _ in one_by_one.types()}


@given(count=st.integers(0, 500), seed=st.integers(0, 5))
def test_a_division_goes_on_after_what_was_skipped(count: int, seed: int) -> None:
    division, skipped = StratifiedDivision((90, 5, 5), seed), StratifiedDivision((90, 5, 5), seed, count)
    labels = division.take(count + 40)[count:]
    assert skipped.take(40).tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"text": "a"}\n[1]\n', r"x\.jsonl:2: no text in the column 'text', it is no object"),
        ("x.jsonl", b'{"text": "a"}\n{"text\n', r"x\.jsonl:2: no JSON object"),
        ("x.jsonl", b'{"text": "\xff"}\n', r"x\.jsonl:1: not UTF-8"),
        ("x.json", b'[{"text": "a"}]\n', r"x\.json:1: no JSON object but list; one object a line is needed; .*jq -c"),
        ("x.json", b'\n{\n"text": "a"}\n', r"x\.json:2: no JSON object: .*; one object a line is needed; .*jq -c"),
        (
            "x.txt.zst",
            b"no archive at all",
            r"x\.txt\.zst: damaged after 0 bytes of text: .*; is it packed at all\? .* take \.zst off",
        ),
        ("x.parquet", b"no parquet", r"x\.parquet: no Parquet file, or a damaged one"),
    ],
)
def test_damaged_files_are_told_with_their_place(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    if name.endswith(".zst"):
        pack_zstd(b"")
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        preprocess("plain", tmp_path / name, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_archive_of_zstd_that_ends_early_is_refused_or_counted(tmp_path: Path) -> None:
    whole = pack_zstd(os.urandom(500_000).hex().encode() + b"\na b\n" * 50)
    (tmp_path / "x.zst").write_bytes(whole[:-20])
    with pytest.raises(DataError, match="ends before its end mark"):
        preprocess("plain", tmp_path / "x.zst", tmp_path / "out")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_vanishes_or_shrinks_after_it_was_hashed(gone: bool, workers: int, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, batch in enumerate(BATCHES):
        last = write_batch(tmp_path / "parts" / f"part-{number}.txt", batch)

    def lose(stage: str, done: int, total: int | None) -> None:
        if stage == "shards" and not done:  # once, before a worker has anything
            last.unlink() if gone else last.write_bytes(b"short")

    found = "cannot be read: No such file" if gone else "it has 5 bytes, and [0-9]+ or more when this command began"
    with pytest.raises(DataError, match=rf"part-3\.txt: {found}.*; put it back, and run the same command again"):
        preprocess("plain", tmp_path / "parts", tmp_path / "out", PreprocessSettings(workers=workers), progress=lose)


def test_a_run_of_another_engine_goes_on_with_these_shards() -> None:
    """The key of a shard knows of text, reader and segmenter, never of where it is computed."""
    assert {"engine", "workers"} <= PreprocessSettings.unrecorded
