"""A corpus in many files: packed, in columns, behind fsspec; read side by side, and gone on with after a kill."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.commands.preprocess import preprocess
from sememekit.corpora.base import Corpus
from sememekit.corpora.division import StratifiedDivision
from sememekit.corpora.places import files_of_place
from sememekit.corpora.plain import Plain
from sememekit.corpora.ptb import PennTreebank
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.prepare.settings import PreprocessSettings
from sememekit.prepare.shards import process_shard
from sememekit.text.maximum_matching import MaximumMatcher
from sememekit.text.reading import Span
from sememekit.text.segmenters import Characters, Segmenter, WhiteSpace

BATCHES = [[f"w{number * other % 23} 天地 x{number % 7}" for number in range(500)] for other in (1, 3, 5, 7)]


def pack_zstd(data: bytes) -> bytes:
    zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return bytes(zstd.compress(data))


def write_batch(path: Path, lines: Sequence[str]) -> Path:
    """The lines as a file of the kind that its name says; in columns two lines are one text."""
    rows = [{"url": "x", "text": "\n".join(lines[first : first + 2])} for first in range(0, len(lines), 2)]
    if path.name.endswith(".parquet"):
        table = pytest.importorskip("pyarrow").Table.from_pylist(rows)
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
        return path
    plain = "".join(f"{json.dumps(row)}\n" for row in rows) if "json" in path.name else "".join(f"{line}\n" for line in lines)
    packers = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": pack_zstd}
    path.write_bytes(packers.get(path.suffix, bytes)(plain.encode()))
    return path


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith("signature")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one plain file of all the lines gives."""
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
from sememekit.commands.preprocess import preprocess
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
    found = process_shard(span, "blocks", folder, corpus, segmenter, end, "replace")
    corpus.is_lines = lambda segmenter: False  # type: ignore[method-assign]
    one_by_one = process_shard(span, "lines", folder, corpus, segmenter, end, "replace")
    assert found[1:] == one_by_one[1:]
    assert found.units().tolist() == one_by_one.units().tolist()
    names, others = ({index: word for word, _, index in shard.types()} for shard in (found, one_by_one))
    assert [names[index] for index in found.ids().tolist()] == [others[index] for index in one_by_one.ids().tolist()]
    assert {word: count for word, count, _ in found.types()} == {word: count for word, count, _ in one_by_one.types()}


@given(count=st.integers(0, 500), seed=st.integers(0, 5))
def test_a_division_goes_on_after_what_was_skipped(count: int, seed: int) -> None:
    division, skipped = StratifiedDivision((90, 5, 5), seed), StratifiedDivision((90, 5, 5), seed)
    labels = division.take(count + 40)[count:]
    skipped.skip(count)
    assert skipped.take(40).tolist() == labels.tolist()


@pytest.mark.parametrize("policy", ["strict", "replace", "skip"])
def test_a_byte_order_mark_before_json_lines_is_taken_off_and_counted(policy: str, tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps({'text': f'a b w{number}'})}\n" for number in range(40))
    (tmp_path / "plain.jsonl").write_text(lines)
    (tmp_path / "marked.jsonl").write_text("\ufeff" + lines, encoding="utf-8")
    plain, marked = (
        preprocess("plain", tmp_path / f"{name}.jsonl", tmp_path / name, PreprocessSettings(errors=policy))
        for name in ("plain", "marked")
    )
    assert (plain.signature.faults.byte_order_marks, marked.signature.faults.byte_order_marks) == (0, 1)
    assert marked.signature.splits == plain.signature.splits


def test_a_column_of_another_name(tmp_path: Path) -> None:
    rows = [{"body": f"a b w{number}", "id": number} for number in range(40)]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(DataError, match=r"x\.jsonl:1: no text in the column 'text', it has body, id; name the column with"):
        preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out")
    report = preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out", PreprocessSettings(column="body"))
    assert sum(split.sentences for split in report.signature.splits.values()) == 40
    assert report.signature.normalisation == "the column body"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"text": "a"}\n[1]\n', r"x\.jsonl:2: no text in the column 'text', it is no object"),
        ("x.jsonl", b'{"text": "a"}\n{"text\n', r"x\.jsonl:2: no JSON object"),
        ("x.jsonl", b'{"text": "\xff"}\n', r"x\.jsonl:1: no JSON object: .*UTF-8"),
        ("x.json", b'[{"text": "a"}]\n', r"x\.json:1: no JSON object but list; one object a line is needed; .*jq -c"),
        ("x.json", b'\n{\n"text": "a"}\n', r"x\.json:2: no JSON object: .*; one object a line is needed; .*jq -c"),
        ("x.txt.zst", b"no archive at all", r"x\.txt\.zst: damaged after 0 bytes of text"),
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


def test_a_column_of_files_without_columns_is_refused(tmp_path: Path) -> None:
    write_batch(tmp_path / "part-0.txt", BATCHES[0])
    with pytest.raises(ConfigError, match=r"--column body: .*part-0\.txt has no columns, .*; leave --column out"):
        preprocess("plain", tmp_path, tmp_path / "out", PreprocessSettings(column="body"))


def test_a_test_set_alone_takes_the_words_of_other_data(tmp_path: Path) -> None:
    """Named as such, or as a folder has it; a file that is no split is divided, and the command says so."""
    write_batch(tmp_path / "all.txt", BATCHES[0])
    preprocess("plain", tmp_path / "all.txt", tmp_path / "data", PreprocessSettings(min_count=1))
    (tmp_path / "other").mkdir()
    text = write_batch(tmp_path / "other" / "test.txt", BATCHES[0])
    write_batch(tmp_path / "other" / "notes.txt", BATCHES[1])
    settings = PreprocessSettings(vocabulary=tmp_path / "data", segmenter="none")
    for source, files, name in ((None, {"test": [text]}, "named"), (tmp_path / "other", {}, "folder")):
        report = preprocess("plain", source, tmp_path / name, settings, files=files)
        assert {split: one.sentences for split, one in report.signature.splits.items()} == {
            "test": len(text.read_text(encoding="utf-8").splitlines())
        }
    said = [
        CliRunner()
        .invoke(app, ["preprocess", "plain", *given, "--vocabulary", str(tmp_path / "data"), "--out", str(tmp_path / name)])
        .stderr
        for given, name in ((["--test", str(text)], "quiet"), ([str(text)], "told"))
    ]
    assert "was divided" not in said[0]
    assert "the text was divided into train, valid and test; a test set is named so: --test FILE" in said[1]


def test_an_unknown_word_that_train_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c a b c\n" * 9, encoding="utf-8")
    (tmp_path / "test.txt").write_text("a b d e f\n", encoding="utf-8")
    for count, told in (("1", True), ("2", False)):
        (tmp_path / "train.txt").write_text("a b c a b c\n" * 9 + "z\n", encoding="utf-8")
        given = ["--segmenter", "none", "--min-count", count, "--out", str(tmp_path / count)]
        found = CliRunner().invoke(app, ["preprocess", "plain", str(tmp_path), *given])
        assert found.exit_code == 0, found.stderr
        assert ("train has no <unk>, and 50.0 % of test are" in found.stderr) is told


NAMED = {
    "exact": ["train.txt", "dev.txt", "test.txt.gz"],
    "parts": ["ptb.train.txt", "PTB.Valid.txt", "ptb-test.txt"],
    "columns": ["train-00000-of-00002.jsonl", "train-00001-of-00002.jsonl", "validation.ndjson", "test.jsonl.xz"],
    "preferred": ["train.txt", "train.chars.txt", "notes.txt", "val.txt", "test.txt"],
}


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("url", [False, True])
def test_files_of_a_folder_that_are_named_as_splits_are_splits(kind: str, url: bool, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in NAMED[kind]:
        split = next(split for split in ("train", "test", "va", "dev", "notes") if split in name.lower())
        write_batch(tmp_path / "in" / name, [f"{split} {'chars' if 'chars' in name else 'word'}"] * 40)
    if url:
        pytest.importorskip("fsspec")
    preprocess(
        "plain", (tmp_path / "in").as_uri() if url else tmp_path / "in", tmp_path / "out", PreprocessSettings(min_count=1)
    )
    data = PreparedData.open(tmp_path / "out")
    assert {split: summary.sentences for split, summary in data.signature.splits.items()} == {
        "train": 80 if kind == "columns" else 40,
        "valid": 40,
        "test": 40,
    }
    assert set(data.vocabulary.decode(data.tokens("train"))) == {"train", "word", "<eos>"}
    if kind != "columns":
        assert [source.split for source in data.signature.sources] == ["train", "valid", "test"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a.test.txt", "a.valid.txt"], r"a\.valid\.txt is the split 'valid', and no file has 'train' in its name"),
        (["a.train.txt", "b.train.txt"], r"not clear which file is the split 'train' \(a\.train\.txt, b\.train\.txt\)"),
        (["train.txt", "dev.txt", "valid-2.txt"], r"not clear which file is the split 'valid' \(dev\.txt, valid-2\.txt\)"),
        (["train-test.txt"], r"not clear which file is the split 'train' \(train-test\.txt\)"),
        (
            ["speed-train.txt", "b.txt", "a.txt"],
            r"speed-train\.txt is the split 'train', and 2 have the name of none, such as a\.",
        ),
    ],
)
def test_names_of_splits_that_are_not_clear_are_refused(names: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in names:
        write_batch(tmp_path / "in" / name, BATCHES[0])
    with pytest.raises(DataError, match=rf"{message}.*name the files with --train FILE, .*; .*a pattern: .*in/\*"):
        preprocess("plain", tmp_path / "in", tmp_path / "out")
    report = preprocess("plain", f"{tmp_path}/in/*", tmp_path / "out")
    assert {source.split for source in report.signature.sources} == {"all"}


def test_a_text_that_is_there_packed_as_well_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.txt.xz", "a.txt.gz", "a.txt", "b.txt.gz"):
        write_batch(tmp_path / "in" / name, BATCHES[0])
    with pytest.warns(RunWarning, match=r"a\.txt\.gz and 1 more: left out, for a\.txt beside it is taken to be the same"):
        report = preprocess("plain", tmp_path / "in", tmp_path / "out")
    assert [source.name for source in report.signature.sources] == ["a.txt", "b.txt.gz"]
    with pytest.warns(RunWarning, match="left out"):
        assert [path.name for path in files_of_place(f"{tmp_path}/in/a*")] == ["a.txt"]


@pytest.mark.parametrize("name", ["x.json", "x.ndjson", "x.JSONL", "x.JSON.GZ"])
def test_lines_of_objects_under_other_endings(name: str, tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps({'text': f'a b w{number}'})}\n" for number in range(40)).encode()
    (tmp_path / name).write_bytes(gzip.compress(lines) if name.endswith("GZ") else lines)
    preprocess("plain", tmp_path / name, tmp_path / "out", PreprocessSettings(min_count=2))
    assert set(PreparedData.open(tmp_path / "out").vocabulary.tokens) == {"a", "b", "<eos>", "<unk>"}


def test_bad_bytes_in_columns_follow_the_policy(tmp_path: Path) -> None:
    good = b'{"text": "a good line"}\n' * 30
    (tmp_path / "x.jsonl").write_bytes(good + b'{"text": "caf\xe9 broken"}\n' + good)
    with pytest.raises(
        DataError, match=r"x\.jsonl:31: .*not UTF-8 at byte 13 of the line; .*--errors replace or --errors skip"
    ):
        preprocess("plain", tmp_path / "x.jsonl", tmp_path / "out")
    for policy, sentences, skipped in (("replace", 61, 0), ("skip", 60, 1)):
        report = preprocess("plain", tmp_path / "x.jsonl", tmp_path / policy, PreprocessSettings(errors=policy))
        faults = report.signature.faults
        assert (faults.invalid_utf8, faults.skipped_lines) == (1, skipped)
        assert sum(split.sentences for split in report.signature.splits.values()) == sentences


def test_sources_of_plain_exclude_each_other(tmp_path: Path) -> None:
    text = write_batch(tmp_path / "a.txt", BATCHES[0])
    with pytest.raises(ConfigError, match="either SOURCE or --train"):
        preprocess("plain", text, tmp_path / "out", files={"train": [text]})
    with pytest.raises(ConfigError, match=r"--valid: --train is missing; .*--vocabulary RUN$"):
        preprocess("plain", None, tmp_path / "out", files={"valid": [text]})
    with pytest.raises(ConfigError, match="ptb is read from a folder or a file of this machine"):
        preprocess("ptb", "s3://bucket/ptb", tmp_path / "out")


def test_the_shards_of_billion_word_are_splits(tmp_path: Path) -> None:
    train, held = (tmp_path / f"{name}-monolingual.tokenized.shuffled" for name in ("training", "heldout"))
    train.mkdir()
    held.mkdir()
    for number in (1, 2, 99):
        (train / f"news.en-{number:05d}-of-00100").write_text("the cat sat\n" * 2 + f"rare{number}\n")
    for number in (0, 1, 9, 10):
        (held / f"news.en.heldout-{number:05d}-of-00050").write_text(f"the cat held{number}\n")
    report = preprocess("billion-word", tmp_path, tmp_path / "out")
    assert {split: summary.sentences for split, summary in report.signature.splits.items()} == {
        "train": 9,
        "valid": 2,
        "test": 1,
    }
    assert set(PreparedData.open(tmp_path / "out").vocabulary.tokens) == {"<unk>", "<eos>", "the", "cat", "sat"}
    write_batch(train / "news.en-00002-of-00100.gz", ["the cat sat"] * 3)
    with pytest.warns(RunWarning, match=r"news\.en-00002-of-00100\.gz: left out, for news\.en-00002-of-00100 beside it"):
        assert preprocess("billion-word", tmp_path, tmp_path / "again").signature.splits == report.signature.splits
    (train / "news.en-00002-of-00100.gz").unlink()
    for path in held.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"no shards for the split 'valid'; looked for heldout-monolingual"):
        preprocess("billion-word", tmp_path, tmp_path / "out2")


def test_a_run_of_another_engine_goes_on_with_these_shards() -> None:
    """The key of a shard knows of text, reader and segmenter, never of where it is computed."""
    assert {"engine", "workers"} <= PreprocessSettings.unrecorded
