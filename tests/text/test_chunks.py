from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.ngrams import frequent_ngrams
from sememekit.prepare.settings import PreprocessSettings
from sememekit.text.chunks import ChunkVocabulary
from sememekit.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary.from_counts({"<eos>": 9, "一": 8, "个": 7, "字": 6, "<unk>": 5})
END, ONE, GE, ZI, UNKNOWN = range(5)


def plain_counts(tokens: list[int], longest: int, never: set[int], last: set[int]) -> Counter[tuple[int, ...]]:
    """Every n-gram, counted the obvious way."""
    found: Counter[tuple[int, ...]] = Counter()
    for length in range(2, longest + 1):
        for begin in range(len(tokens) - length + 1):
            ngram = tuple(tokens[begin : begin + length])
            if never.isdisjoint(ngram) and last.isdisjoint(ngram[:-1]):
                found[ngram] += 1
    return found


@pytest.mark.parametrize("block", [7, 64, 1 << 20])
@pytest.mark.parametrize(("most", "longest"), [(5, 2), (40, 3), (10_000, 4)])
def test_counts_are_exact_whatever_fits_into_memory(tmp_path: Path, block: int, most: int, longest: int) -> None:
    tokens = np.minimum(np.random.default_rng(3).geometric(0.3, 600) - 1, 8).astype("<u2")
    ngrams, counts = frequent_ngrams(
        tokens, 9, longest=longest, most=most, never=(4,), only_last=(1,), folder=tmp_path, block=block
    )
    every = plain_counts(tokens.tolist(), longest, {4}, {1})
    expected = sorted((-count, len(ngram), ngram) for ngram, count in every.items() if count >= 2)[:most]
    assert [(-count, len(ngram), ngram) for ngram, count in zip(ngrams, counts, strict=True)] == expected
    assert not list(tmp_path.iterdir())


def test_long_ngrams_of_a_large_vocabulary_keep_apart(tmp_path: Path) -> None:
    """Five words of 200,000 do not fit into 64 bits one beside the other."""
    tokens = np.array([199_999, 5, 199_998, 7, 199_997] * 2 + [199_999, 5, 199_998, 7, 3] * 3, dtype="<u4")
    ngrams, counts = frequent_ngrams(tokens, 200_000, longest=5, most=1000, folder=tmp_path)
    assert dict(zip(ngrams, counts, strict=True)) == {
        ngram: count for ngram, count in plain_counts(tokens.tolist(), 5, set(), set()).items() if count >= 2
    }


def plain_windows(chunks: ChunkVocabulary, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    ids = {chunks.tokens(index): index for index in range(len(chunks))}
    found = np.full((*tokens.shape, chunks.max_length), -1)
    for (row, place, less), _ in np.ndenumerate(found):
        if place - less >= 0:
            found[row, place, less] = ids.get(tuple(tokens[row, place - less : place + 1].tolist()), -1)
    return found


def test_windows_agree_with_a_dictionary() -> None:
    random = np.random.default_rng(1)
    ngrams = {tuple(random.integers(0, 4, length).tolist()) for length in (2, 3, 4) for _ in range(12)}
    ngrams = {ngram for ngram in ngrams if END not in ngram[:-1]}
    ngrams |= {(ONE, ZI, ZI, GE), (0, 1)}  # whose beginnings need not be chunks, and the first one of all
    chunks = ChunkVocabulary(VOCABULARY, sorted(ngrams), [1] * len(ngrams), max_length=4)
    tokens = random.integers(-1, 5, (6, 30))
    assert chunks.windows(tokens).tolist() == plain_windows(chunks, tokens).tolist()
    assert (chunks.windows(tokens)[:, :, 1:] >= len(VOCABULARY)).any()


def test_windows_longer_than_the_text_and_chunks_of_one_word() -> None:
    chunks = ChunkVocabulary(VOCABULARY, [(ONE, GE)], [3], max_length=5)
    assert chunks.windows([[ONE]]).tolist() == [[[ONE, -1, -1, -1, -1]]]
    assert chunks.windows(np.zeros((2, 0), dtype=np.int64)).shape == (2, 0, 5)
    alone = ChunkVocabulary(VOCABULARY, max_length=1)
    assert alone.windows([[ONE, GE, -1]]).tolist() == [[[ONE], [GE], [-1]]]
    assert ChunkVocabulary(VOCABULARY, max_length=2).windows([[ONE, GE]]).tolist() == [[[ONE, -1], [GE, -1]]]


def test_ids_of_words_stay_and_ngrams_follow() -> None:
    chunks = ChunkVocabulary(VOCABULARY, [(ONE, GE, ZI), (ONE, GE), (ZI, END)], [4, 3, 2], max_length=3)
    assert (len(chunks), chunks.num_ngrams, chunks.num_tokens) == (8, 3, 5)
    assert chunks.tokens(ZI) == (ZI,)
    assert chunks.text(5) == ("一", "个", "字")
    assert [len(chunks.tokens(chunk)) for chunk in range(len(chunks))] == [1, 1, 1, 1, 1, 3, 2, 2]
    short = chunks.up_to(2)
    assert (short.max_length, short.text(5), len(short)) == (2, ("一", "个"), 7)
    assert short.windows([[ONE, GE]]).tolist() == [[[ONE, -1], [GE, 5]]]
    assert len(chunks.up_to(3, num_ngrams=1)) == 6
    assert short.fingerprint != chunks.fingerprint
    assert len(short.fingerprint) == 16
    with pytest.raises(DataError, match="allowed are 0 to 7"):
        chunks.tokens(8)


def test_a_file_goes_there_and_back_and_a_strange_one_is_refused(tmp_path: Path) -> None:
    chunks = ChunkVocabulary(VOCABULARY, [(ONE, GE, ZI), (ZI, END)], [4, 2], max_length=3)
    path = tmp_path / "chunks.tsv"
    chunks.save(path)
    again = ChunkVocabulary.load(path, VOCABULARY)
    assert again.fingerprint == chunks.fingerprint
    assert again.counts.tolist() == [4, 2]
    assert again.tokens(6) == (ZI, END)
    with pytest.raises(DataError, match=r"belong to the vocabulary .* --chunks N --chunk-length L"):
        ChunkVocabulary.load(path, Vocabulary(["a"], [1]))
    text = path.read_text(encoding="utf-8")
    for broken, message in (
        (text.replace("个", "戈"), r"chunks.tsv:2: '戈' is no word"),
        (text.replace("4", "four"), r"chunks.tsv:2: 'four.*' is no count before 2 to 3 words"),
        (text.replace("\t字\n", "\t字\t字\n", 1), r"chunks.tsv:2: .* is no count before 2 to 3 words"),
        (text[:-1], "cut short"),
        ("一\t3\n", "no file of chunks"),
    ):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            ChunkVocabulary.load(path, VOCABULARY)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    for split, lines in (("train", "一个字 一个字。\n一个\n\n字\n"), ("valid", "个字 个字 个字\n")):
        (tmp_path / "source" / f"{split}.txt").write_text(lines, encoding="utf-8")
    return tmp_path / "source"


def test_preprocess_counts_the_training_split_of_characters(text: Path, tmp_path: Path) -> None:
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(segmenter="characters", chunks=4, chunk_length=3))
    data = PreparedData.open(tmp_path / "data")
    chunks = data.chunks()
    assert data.signature.splits["train"].characters == 10
    assert {
        "".join(chunks.text(index)): count for index, count in enumerate(chunks.counts.tolist(), start=len(data.vocabulary))
    } == {
        "一个": 3,
        "个字": 2,
        "一个字": 2,
    }
    assert data.signature.chunks is not None
    assert data.signature.chunks.rarest == 2
    assert data.signature.options["chunk_length"] == 3


def test_a_folder_without_chunks_has_its_words_and_says_nothing_of_them(text: Path, tmp_path: Path) -> None:
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(segmenter="characters"))
    data = PreparedData.open(tmp_path / "data")
    assert (len(data.chunks()), data.chunks().max_length) == (len(data.vocabulary), 1)
    assert "chunk" not in (tmp_path / "data" / "signature.json").read_text(encoding="utf-8")


def test_chunks_of_another_run_are_refused(text: Path, tmp_path: Path) -> None:
    for name, length in (("two", 2), ("three", 3)):
        preprocess("plain", text, tmp_path / name, PreprocessSettings(segmenter="characters", chunks=4, chunk_length=length))
    (tmp_path / "two" / "chunks.tsv").write_bytes((tmp_path / "three" / "chunks.tsv").read_bytes())
    with pytest.raises(DataError, match="of different runs"):
        PreparedData.open(tmp_path / "two").chunks()
    (tmp_path / "three" / "chunks.tsv").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        PreparedData.open(tmp_path / "three").chunks()


@pytest.mark.parametrize(
    ("chunks", "length", "end", "message"),
    [
        (4, None, None, "go together"),
        (0, 2, None, "go together"),
        (4, 1, None, "2 words or more"),
        (4, 2, False, "end-of-sent"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    text: Path, tmp_path: Path, chunks: int, length: int | None, end: bool | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        preprocess(
            "plain", text, tmp_path / "data", PreprocessSettings(chunks=chunks, chunk_length=length, end_of_sentence=end)
        )
