from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.corpora.units import ShardResult
from sememekit.engines.local import Local
from sememekit.errors import ConfigError
from sememekit.prepare.merge import hold_out, merge_vocabulary
from sememekit.text.vocabulary import Vocabulary


def write_shard(folder: Path, number: int, words: list[str]) -> ShardResult:
    counts = Counter(words)
    stem = folder / f"shard{number}"
    lines = [f"{word}\t{counts[word]}\t{index}\n" for index, word in enumerate(sorted(counts))]
    stem.with_suffix(".types").write_text("".join(lines), encoding="utf-8", newline="\n")
    return ShardResult(stem, len(words), 1, {})


def naive_counts(words: list[str], known: frozenset[str] | None, min_count: int, size: int | None) -> dict[str, int]:
    """The rule, over all words at once."""
    counts = Counter(words)
    unknown = counts.pop("<unk>", 0)
    kept = [word for word in counts if counts[word] >= min_count and (known is None or word in known or word == "，")]
    kept.sort(key=lambda word: (-counts[word], word))
    kept = kept[: None if size is None else size - 1]
    return {"<unk>": unknown + sum(counts[word] for word in set(counts) - set(kept)), **{word: counts[word] for word in kept}}


@given(
    shards=st.lists(
        st.lists(st.sampled_from(["a", "b", "字", "，", "𠀀", "<unk>", "é", "ab"]), max_size=12), min_size=1, max_size=4
    ),
    known=st.none() | st.frozensets(st.sampled_from(["a", "字", "𠀀", "é"])),
    min_count=st.integers(1, 4),
    size=st.none() | st.integers(2, 6),
)
def test_merging_agrees_with_counting_all_at_once(
    tmp_path_factory: pytest.TempPathFactory,
    shards: list[list[str]],
    known: frozenset[str] | None,
    min_count: int,
    size: int | None,
) -> None:
    folder = tmp_path_factory.mktemp("merge")
    vocabulary, coverage = merge_vocabulary(
        Local("", 1, folder),
        [write_shard(folder, number, words) for number, words in enumerate(shards)],
        is_known=None if known is None else lambda word: word in known or word == "，",
        min_count=min_count,
        max_vocabulary=size,
        specials=("<unk>",),
        folder=folder,
    )
    words = [word for shard in shards for word in shard]
    got = dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True))
    assert got == naive_counts(words, known, min_count, size)
    assert sum(got.values()) == len(words)
    if known is None or not words:
        assert coverage is None
    else:
        assert coverage == round(sum(word in known or word == "，" for word in words) / len(words), 6)


def test_more_shards_than_files_may_be_open(tmp_path: Path) -> None:
    shards = [write_shard(tmp_path, number, ["a", f"w{number % 7}"]) for number in range(300)]
    vocabulary, _ = merge_vocabulary(
        Local("", 1, tmp_path),
        shards,
        is_known=None,
        min_count=1,
        max_vocabulary=None,
        specials=("<unk>",),
        folder=tmp_path,
    )
    counts = dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True))
    assert counts == {"a": 300, "<unk>": 0, **{f"w{n}": len(range(n, 300, 7)) for n in range(7)}}


@pytest.mark.parametrize(("min_count", "size", "message"), [(0, None, "--min-count 0"), (1, 1, "--max-vocabulary 1")])
def test_impossible_sizes_are_refused(tmp_path: Path, min_count: int, size: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        merge_vocabulary(
            Local("", 1, tmp_path),
            [],
            is_known=None,
            min_count=min_count,
            max_vocabulary=size,
            specials=("<unk>",),
            folder=tmp_path,
        )


def test_words_are_held_out_by_their_counts(tmp_path: Path) -> None:
    counts = {"<unk>": 4, "<N>": 50, "，": 60, "few": 19, "a": 20, "b": 200, "c": 30, "d": 40, "many": 201}
    vocabulary = Vocabulary.from_counts(counts)
    found = {seed: hold_out(vocabulary, 0.5, seed) for seed in (1, 2, 3, 4, 5)}
    for smaller, held in found.values():
        assert len(held) == 2
        assert held.keys() < {"a", "b", "c", "d"}
        kept = {word: count for word, count in counts.items() if word not in held}
        assert smaller == Vocabulary.from_counts({**kept, "<unk>": 4 + sum(held.values())})
        assert held == {word: counts[word] for word in held}
    assert found[1][1] == hold_out(vocabulary, 0.5, 1)[1]
    assert len({tuple(held) for _, held in found.values()}) > 1
    assert {word for seed in range(20) for word in hold_out(vocabulary, 0.5, seed)[1]} == {"a", "b", "c", "d"}


@pytest.mark.parametrize(("share", "words"), [(0.0, {"<unk>": 1, "a": 30}), (1.0, {"<unk>": 1, "a": 30}), (0.4, {"a": 30})])
def test_a_share_that_holds_nothing_out_is_refused(share: float, words: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=r"--hold-out .* words of 20 to 200 occurrences"):
        hold_out(Vocabulary.from_counts(words), share, 1)
