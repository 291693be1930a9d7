from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sememekit.corpora.division import StratifiedDivision
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.vocabulary import Vocabulary

WORDS = ["天", "地", "人和", "大学", "。", "ab", "é", "𠀀"]


def write_text(path: Path, lines: int = 3000) -> Path:
    """Pseudo-random lines of known words and some rare ones."""
    out = []
    state = 12345
    for number in range(lines):
        words = []
        for _ in range(2 + number % 9):
            state = (1103515245 * state + 12345) % 2**31
            words.append(WORDS[state >> 16 & 7] if state >> 24 & 7 else f"r{state % 97}")
        out.append(" ".join(words))
    path.write_text("\n".join(out) + "\n", encoding="utf-8", newline="\n")
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt")


def bytes_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def expected(text: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("expected") / "out"
    preprocess("plain", text, out, PreprocessSettings(min_count=5))
    return bytes_of(out)


def test_the_folder_agrees_with_a_plain_twin(text: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"settings of preprocess: unknown key 'min_cont' \(did you mean 'min_count'\?\)"):
        preprocess("plain", text, tmp_path / "out", {"min_cont": 40})
    preprocess("plain", text, tmp_path / "out", {"min_count": 40, "seed": 4, "shard_bytes": 5000})
    data = PreparedData.open(tmp_path / "out")
    lines = text.read_text(encoding="utf-8").splitlines()
    labels = StratifiedDivision((90, 5, 5), 4).take(len(lines)).tolist()
    train = [line for line, label in zip(lines, labels, strict=True) if label == 0]
    counts = Counter(word for line in train for word in line.split())
    kept = {word for word, count in counts.items() if count >= 40}
    expected = Counter([word if word in kept else "<unk>" for line in train for word in line.split()] + ["<eos>"] * len(train))
    assert data.signature.vocabulary_splits == ("train",)
    assert data.vocabulary == Vocabulary.from_counts(expected)
    assert 0 < data.vocabulary.counts[data.vocabulary.id("<unk>")] < len(lines)
    got = Counter(
        sentence.strip()
        for split in data.splits
        for sentence in " ".join(data.vocabulary.decode(data.tokens(split))).split("<eos>")[:-1]
    )
    assert got == Counter(" ".join(word if word in kept else "<unk>" for word in line.split()) for line in lines)
    assert sum(summary.characters for summary in data.signature.splits.values()) == len("".join("".join(lines).split()))
    for split, summary in data.signature.splits.items():
        ids = data.tokens(split)
        assert (summary.tokens, summary.types) == (len(ids), len(set(ids.tolist())))
        assert summary.unknown == (ids == data.vocabulary.unknown_id).sum()
        assert summary.sentences == (ids == data.vocabulary.end_id).sum()
        assert summary.sha256 == hashlib.sha256(ids.tobytes()).hexdigest()


@pytest.mark.parametrize("options", [{}, {"shard_bytes": 3000}, {"shard_bytes": 30_000, "workers": 2}])
def test_same_input_same_bytes(text: Path, expected: dict[str, str], options: dict[str, int], tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (moved / "text.txt").write_bytes(text.read_bytes())
    preprocess("plain", moved / "text.txt", tmp_path / "out", PreprocessSettings(min_count=5, **options))  # type: ignore[arg-type]
    assert bytes_of(tmp_path / "out") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "out"]
    assert str(tmp_path) not in (tmp_path / "out" / "signature.json").read_text(encoding="utf-8")


def test_another_seed_divides_otherwise(text: Path, expected: dict[str, str], tmp_path: Path) -> None:
    preprocess("plain", text, tmp_path / "out", PreprocessSettings(min_count=5, seed=2))
    assert bytes_of(tmp_path / "out")["train.bin"] != expected["train.bin"]
    assert bytes_of(tmp_path / "out")["vocabulary.tsv"] != expected["vocabulary.tsv"], "counted on another train"


class Watch:
    """A progress callback that notes its arguments and stops the run at one place."""

    def __init__(self, stop: tuple[str, int] | None = None) -> None:
        self.stop = stop
        self.seen: list[tuple[str, int, int]] = []

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.seen.append((stage, done, total))
        if self.stop == (stage, done):
            raise KeyboardInterrupt

    def shards(self) -> list[int]:
        return [done for stage, done, _ in self.seen if stage == "shards"]


@pytest.mark.parametrize("stop", [("hash", 0), ("shards", 2), ("encode", 1)])
def test_a_stopped_run_goes_on_from_its_last_shard(
    stop: tuple[str, int], text: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        preprocess("plain", text, out, PreprocessSettings(min_count=5, shard_bytes=10_000), progress=Watch(stop))
    assert not out.exists()
    again = Watch()
    preprocess("plain", text, out, PreprocessSettings(min_count=5, shard_bytes=10_000), progress=again)
    total = again.seen[-1][2]
    assert again.shards()[0] == {"hash": 0, "shards": 2, "encode": total}[stop[0]]
    assert bytes_of(out) == expected
    assert not (tmp_path / ".out.partial").exists()


def test_a_run_killed_outright_goes_on_from_its_last_shard(text: Path, expected: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = (
        "import os, signal, sys\n"
        "from sememekit.jobs.preprocess import preprocess\n"
        "from sememekit.prepare.settings import PreprocessSettings\n"
        "def stop(stage, done, total):\n"
        "    if (stage, done) == ('shards', 3): os.kill(os.getpid(), signal.SIGKILL)\n"
        "preprocess('plain', sys.argv[1], sys.argv[2], PreprocessSettings(min_count=5, shard_bytes=10_000), progress=stop)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(text), str(out)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert not out.exists()
    again = Watch()
    preprocess("plain", text, out, PreprocessSettings(min_count=5, shard_bytes=10_000), progress=again)
    assert again.shards()[0] == 3
    assert bytes_of(out) == expected


def test_shards_of_another_input_are_not_taken_over(text: Path, tmp_path: Path) -> None:
    mine = tmp_path / "text.txt"
    mine.write_bytes(text.read_bytes())
    with pytest.raises(KeyboardInterrupt):
        preprocess("plain", mine, tmp_path / "out", PreprocessSettings(shard_bytes=10_000), progress=Watch(("shards", 4)))
    mine.write_bytes(mine.read_bytes() + b"b\n")
    again = Watch()
    preprocess("plain", mine, tmp_path / "out", PreprocessSettings(shard_bytes=10_000), progress=again)
    assert again.shards()[0] == 0
    with pytest.raises(KeyboardInterrupt):
        preprocess("plain", mine, tmp_path / "out2", PreprocessSettings(shard_bytes=10_000), progress=Watch(("shards", 4)))
    again = Watch()
    preprocess("plain", mine, tmp_path / "out2", PreprocessSettings(shard_bytes=10_000, segmenter="jieba"), progress=again)
    assert again.shards()[0] == 0


def test_a_torn_marker_is_no_marker(text: Path, expected: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        preprocess(
            "plain", text, tmp_path / "out", PreprocessSettings(min_count=5, shard_bytes=10_000), progress=Watch(("shards", 2))
        )
    marker = next((tmp_path / ".out.partial").glob("*.done"))
    marker.write_bytes(marker.read_bytes()[:10])
    again = Watch()
    preprocess("plain", text, tmp_path / "out", PreprocessSettings(min_count=5, shard_bytes=10_000), progress=again)
    assert again.shards()[0] == 1
    assert bytes_of(tmp_path / "out") == expected


def test_only_a_folder_of_ours_is_replaced(text: Path, expected: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    preprocess("plain", text, out)
    before = bytes_of(out)
    with pytest.raises(DataError, match=r"out: prepared data are there already; give another folder, or replace .* --force"):
        preprocess("plain", text, out, PreprocessSettings(min_count=5))
    assert bytes_of(out) == before
    preprocess("plain", text, out, PreprocessSettings(min_count=5, force=True))
    assert bytes_of(out) == expected
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match="holds other files and no signature"):
        preprocess("plain", text, other)
    with pytest.raises(DataError, match="a file is there already"):
        preprocess("plain", text, other / "thesis.tex")
    assert (other / "thesis.tex").read_text() == "years of work"


def test_two_runs_into_one_folder_are_refused(text: Path, expected: dict[str, str], tmp_path: Path) -> None:
    refusals = []

    def second(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("shards", 1) and not refusals:
            with pytest.raises(DataError, match="another preprocess is writing this folder") as caught:
                preprocess("plain", text, tmp_path / "out")
            refusals.append(caught.value)

    preprocess("plain", text, tmp_path / "out", PreprocessSettings(min_count=5, shard_bytes=10_000), progress=second)
    assert len(refusals) == 1
    assert bytes_of(tmp_path / "out") == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_line_ends_the_run_with_its_place(workers: int, tmp_path: Path) -> None:
    path = write_text(tmp_path / "text.txt", 800)
    content = path.read_bytes().split(b"\n")
    content[700] += b"\xff"
    path.write_bytes(b"\n".join(content))
    with pytest.raises(DataError, match=r"text.txt:701: not UTF-8 at byte \d+ \(ff\)"):
        preprocess("plain", path, tmp_path / "out", PreprocessSettings(shard_bytes=5000, workers=workers))
    report = preprocess("plain", path, tmp_path / "out", PreprocessSettings(shard_bytes=5000, errors="skip"))
    assert report.signature.faults.skipped_lines == 1
    assert sum(split.sentences for split in report.signature.splits.values()) == 799


def test_a_place_that_cannot_be_written_is_told_as_it_was_typed(tmp_path: Path) -> None:
    text, out = write_text(tmp_path / "text.txt", 20), tmp_path / "text.txt" / "out"
    with pytest.raises(DataError, match=rf"^--out {out}: cannot write in {text} \(.*\); give a folder elsewhere$"):
        preprocess("plain", text, out)


def test_a_text_of_another_encoding_is_not_replaced(tmp_path: Path) -> None:
    text = "".join(f"第{number}天 ， 老师 在 学校 里 教 中文 。\n" for number in range(30))
    (tmp_path / "text.txt").write_bytes(text.encode("gb18030"))
    for errors in ("strict", "replace"):
        with pytest.raises(DataError, match=r"text\.txt.*UTF-8.*iconv -f GB18030 -t UTF-8 \S*text\.txt > "):
            preprocess("plain", tmp_path / "text.txt", tmp_path / "out", PreprocessSettings(errors=errors))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]
    rows = "".join(f"老师在学校里教中文\t{number % 2}\n" for number in range(30))
    (tmp_path / "rows.tsv").write_bytes(rows.encode("gb18030"))
    with pytest.raises(DataError, match=r"rows\.tsv: 30 of 30 lines are not UTF-8"):
        preprocess("classification", tmp_path / "rows.tsv", tmp_path / "out", PreprocessSettings(errors="replace"))


def test_one_enormous_line_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"word " * 600_000)  # three caps of one MiB in 3 MB
    folder = tmp_path / "folder"
    folder.mkdir()
    path.rename(folder / "train.txt")
    (folder / "valid.txt").write_bytes("字".encode() * 1_000_000)
    report = preprocess("plain", folder, tmp_path / "out", PreprocessSettings(end_of_sentence=True))
    data = PreparedData.open(tmp_path / "out")
    assert data.signature.splits["train"].tokens == 600_001
    assert data.vocabulary.decode(data.tokens("train")[-2:]) == ["word", "<eos>"]
    assert report.signature.faults.long_lines == 2
    assert report.signature.faults.cut_words == 2
    assert data.signature.splits["valid"].characters == 1_000_000


def test_wide_ids_when_the_vocabulary_is_large(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "train.txt").write_text("\n".join(f"w{number} w{number}" for number in range(70_000)), encoding="utf-8")
    preprocess("plain", folder, tmp_path / "out")
    data = PreparedData.open(tmp_path / "out")
    assert data.tokens("train").dtype.itemsize == 4
    assert data.vocabulary.decode(data.tokens("train")[-6:]) == ["w69998", "w69998", "<eos>", "w69999", "w69999", "<eos>"]


def test_no_workers_is_refused(text: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--workers 0: 1 or more"):
        preprocess("plain", text, tmp_path / "out", PreprocessSettings(workers=0))
