"""Pairs of source and target: from files of every form to the prepared folder, and what is kept beside the ids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sememekit.commands.preprocess import preprocess
from sememekit.data.examples import Original, Originals
from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.prepare.settings import PreprocessSettings

ARTICLES = ["the strife-torn u.s. city of <unk> said `` no '' in #### .", "two dogs ran -lrb- fast -rrb- on feb. # ."]
TITLES = ["city says no", "dogs run"]


def side_by_side(folder: Path, titles: list[str] | None = None, repeat: int = 5) -> Path:
    folder.mkdir(exist_ok=True)
    for split, name in (("train", "train.{}.txt"), ("valid", "valid.{}.filter.txt")):
        first = f"{split} : "
        articles = [first + text for text in ARTICLES] * repeat
        (folder / name.format("article")).write_text("\n".join(articles) + "\n", encoding="utf-8")
        chosen = titles if titles is not None and split == "train" else TITLES * repeat
        (folder / name.format("title")).write_text("\n".join(chosen) + "\n", encoding="utf-8")
    return folder


def records(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def words(data: PreparedData, split: str, example: int, text: int) -> list[str]:
    return data.vocabulary.decode(data.examples(split).text(example, text))


def test_files_side_by_side_and_the_words_beside_them(tmp_path: Path) -> None:
    test = records(tmp_path / "test.jsonl", [{"id": "1", "text": "Japan's UNK  said 12,5 .", "summaries": ["UNK Wins!"]}])
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out", files={"test": [test]})
    data = PreparedData.open(tmp_path / "out")
    summary = data.signature.examples
    assert summary is not None
    assert (summary.texts, summary.labels, summary.keeps_text) == (("source", "target"), None, True)
    assert {split: counts.examples for split, counts in summary.splits.items()} == {"train": 10, "valid": 10, "test": 1}
    assert words(data, "train", 0, 0) == ["train", ":", *ARTICLES[0].split()], "text of Gigaword comes out as it went in"
    assert words(data, "train", 1, 1) == TITLES[1].split()
    originals = data.examples("test").originals
    assert originals is not None
    assert list(originals) == [Original(("japan", "'s", "<unk>", "said", "##,#", "."), ("UNK Wins!",))]
    assert words(data, "test", 0, 0) == ["<unk>", "<unk>", "<unk>", "said", "<unk>", "."]
    assert "japan" not in data.vocabulary, "the vocabulary is that of train"
    assert len(data.examples("train").labels) == 0


def test_wordings_are_read_a_line_at_a_time_and_stand_beside_their_ids(tmp_path: Path) -> None:
    rows = [{"source": f"a{i} b{i} c", "references": [f"T  {i}", f"other “{i}”"]} for i in range(60)]
    source = records(tmp_path / "all.jsonl", rows)
    preprocess("gigaword", source, tmp_path / "out", PreprocessSettings(segmenter="none", shard_bytes=200, workers=1))
    preprocess("gigaword", source, tmp_path / "again", PreprocessSettings(segmenter="none", shard_bytes=1 << 20))
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), "shards do not show"
    data = PreparedData.open(tmp_path / "out")
    seen = set()
    for split in data.splits:
        examples = data.examples(split)
        assert examples.originals is not None
        assert len(examples.originals) == len(examples)
        for index in reversed(range(len(examples))):
            wording = examples.originals[index]
            number = wording.source[0][1:]
            seen.add(int(number))
            assert wording == Original((f"a{number}", f"b{number}", "c"), (f"T {number}", f"other “{number}”"))
            assert len(wording.source) == len(examples.text(index, 0))
            if split == "train":
                assert words(data, split, index, 0) == list(wording.source)
                assert words(data, split, index, 1) == ["T", number], "the first reference is the target"
        with pytest.raises(IndexError):
            examples.originals[len(examples)]
    assert seen == set(range(60))
    text = tmp_path / "out" / "train.texts.jsonl"
    text.write_bytes(text.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"train\.texts\.jsonl: is missing or has not the \d+ bytes"):
        PreparedData.open(tmp_path / "out")


def test_an_article_of_ten_thousand_words_stays_whole(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    path = folder / "train.article.txt"
    path.write_text(path.read_text().replace(ARTICLES[0], "very " * 9_999 + "long", 1))
    preprocess("gigaword", folder, tmp_path / "out", PreprocessSettings(segmenter="none"))
    examples = PreparedData.open(tmp_path / "out").examples("train")
    assert examples.lengths()[0].tolist() == [10_002, 3]
    assert examples.originals is not None
    assert examples.originals[0].source[-1] == "long"


def test_training_pairs_that_are_held_out_too_are_left_out(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    held = (folder / "valid.article.filter.txt").read_text().splitlines()[0]
    with (folder / "train.article.txt").open("a") as article, (folder / "train.title.txt").open("a") as title:
        article.write(f"{held}\n{held}\n")
        title.write(f"{TITLES[0]}\nanother title\n")
    report = preprocess("gigaword", folder, tmp_path / "out")
    assert report.signature.examples is not None
    assert report.signature.examples.splits["train"].examples == 11, "the same article with another title stays"
    assert report.signature.examples.left_out == {"training example that occurs in valid or test": 1}


@pytest.mark.parametrize(
    ("row", "pattern"),
    [
        ({"text": "a", "summaries": []}, r"test\.jsonl:2: no reference; a pair needs one at least"),
        ({"text": "a", "summaries": ["b", " "]}, r"test\.jsonl:2: reference 2 of 2 is empty"),
        ({"text": "a", "summary": " "}, r"test\.jsonl:2: the target is empty; .*--errors skip"),
        ({"text": " ", "summary": "a"}, r"test\.jsonl:2: the source is empty"),
        ({"text": "a"}, r"test\.jsonl:2: has none of the keys 'references', 'summaries'.*it has 'text'"),
        ({"text": 3, "summary": "a"}, r"test\.jsonl:2: the source must be a string, given 3"),
        ({"text": "a", "summaries": [1]}, r"test\.jsonl:2: the target must be a string or a list of strings"),
        (["a", "b"], r"test\.jsonl:2: not a JSON object"),
    ],
)
def test_bad_records_are_named(tmp_path: Path, row: object, pattern: str) -> None:
    test = records(tmp_path / "test.jsonl", [{"text": "good", "summary": "fine"}, row])
    with pytest.raises(DataError, match=pattern):
        preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out", files={"test": [test]})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("titles", "pattern"),
    [
        (TITLES * 4, r"train\.title\.txt: ends after 8 lines, and the files beside it go on"),
        (TITLES * 6, r"train\.article\.txt: ends after 10 lines, and the files beside it go on"),
        (["x"] * 4 + [" "] + ["x"] * 5, r"train\.article\.txt:5: the target is empty"),
    ],
)
def test_files_that_do_not_fit_each_other(tmp_path: Path, titles: list[str], pattern: str) -> None:
    with pytest.raises(DataError, match=pattern):
        preprocess("gigaword", side_by_side(tmp_path / "in", titles), tmp_path / "out")


def test_a_missing_file_of_titles_is_named(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    (folder / "train.title.txt").unlink()
    with pytest.raises(DataError, match=r"train\.title\.txt: no such file"):
        preprocess("gigaword", folder, tmp_path / "out")


PRINTED = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff"), min_size=1).filter(str.strip)


@settings(max_examples=20, deadline=None)
@given(rows=st.lists(st.tuples(PRINTED, st.lists(PRINTED, min_size=1, max_size=3)), min_size=1, max_size=4))
def test_whatever_was_written_comes_back(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, list[str]]]) -> None:
    folder = tmp_path_factory.mktemp("written")
    for split in ("train", "valid"):
        records(folder / f"{split}.jsonl", [{"text": f"{split} {text}", "references": own} for text, own in rows])
    preprocess("gigaword", folder, folder / "out", PreprocessSettings(segmenter="none"))
    originals = PreparedData.open(folder / "out").examples("train").originals
    assert originals is not None
    expected = [Original(("train", *text.split()), tuple(" ".join(one.split()) for one in own)) for text, own in rows]
    assert list(originals) == expected


# --- another corpus with the words of a run


def test_a_test_set_with_the_words_of_other_data(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "giga")
    source = records(
        tmp_path / "duc.jsonl",
        [{"text": 'The "U.S." city (Paris) ran in 1998.', "summaries": ["A one.", "B two", "C", "D “four”"]}],
    )
    with pytest.raises(ConfigError, match=r"--vocabulary RUN"):
        preprocess("duc", source, tmp_path / "duc")
    preprocess("duc", source, tmp_path / "duc", PreprocessSettings(vocabulary=tmp_path / "giga"))
    giga, duc = PreparedData.open(tmp_path / "giga"), PreparedData.open(tmp_path / "duc")
    assert duc.splits == ("test",)
    assert duc.vocabulary.fingerprint == giga.vocabulary.fingerprint
    assert duc.signature.segmenter == giga.signature.segmenter
    assert duc.signature.options["segmenter"] == "gigaword"
    originals = duc.examples("test").originals
    assert originals is not None
    assert originals[0].source == ("the", "``", "u.s.", "''", "city", "-lrb-", "paris", "-rrb-", "ran", "in", "####", ".")
    assert originals[0].references == ("A one.", "B two", "C", "D “four”")
    assert words(duc, "test", 0, 0)[4:8] == ["city", "-lrb-", "<unk>", "-rrb-"]


def test_words_are_counted_as_often_as_they_are_predicted(tmp_path: Path) -> None:
    folder = side_by_side(tmp_path / "in")
    preprocess("gigaword", folder, tmp_path / "out", PreprocessSettings(max_vocabulary=20))
    data = PreparedData.open(tmp_path / "out")
    examples, vocabulary = data.examples("train"), data.vocabulary
    predicted = [word for index in range(len(examples)) for word in [*words(data, "train", index, 1), "</s>"]]
    assert dict(zip(vocabulary.tokens, vocabulary.counts.tolist(), strict=True)) == {
        word: predicted.count(word) for word in vocabulary.tokens
    }
    assert vocabulary.token(0) == "</s>", "the most frequent of what is predicted comes first"
    assert "train" in vocabulary, "a word of the sources alone is kept, with the count 0"
    assert vocabulary.counts[vocabulary.id("train")] == 0
    assert data.signature.vocabulary_splits == ("train",)
    preprocess("gigaword", folder, tmp_path / "small", PreprocessSettings(max_vocabulary=20, shard_bytes=200))
    assert PreparedData.open(tmp_path / "small").vocabulary == vocabulary, "shards do not show"


def test_a_text_in_the_words_of_pairs_ends_its_sentences_as_targets_end(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "pairs")
    (tmp_path / "titles").mkdir()
    (tmp_path / "titles" / "train.txt").write_text("city says no\nDogs run\n")
    for name, segmenter in (("cut", "none"), ("alike", None)):
        preprocess(
            "plain",
            tmp_path / "titles",
            tmp_path / name,
            PreprocessSettings(vocabulary=tmp_path / "pairs", segmenter=segmenter),
        )
    data = PreparedData.open(tmp_path / "alike")
    assert data.vocabulary.decode(data.tokens("train")) == ["city", "says", "no", "</s>", "dogs", "run", "</s>"]
    assert data.vocabulary.end_id == data.vocabulary.id("</s>")
    assert (data.signature.end_of_sentence, data.signature.options["end_mark"]) == (True, "</s>")
    assert data.signature.vocabulary_splits == ()
    cut = PreparedData.open(tmp_path / "cut")
    assert cut.vocabulary.decode(cut.tokens("train"))[4] == "<unk>", "with --segmenter none the text is taken as it is"
    assert cut.signature.segmenter == "white space"


def test_words_of_other_data_that_do_not_fit(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "giga")
    source = records(tmp_path / "duc.jsonl", [{"text": "a", "summaries": ["b"]}])
    with pytest.raises(DataError, match=r"--segmenter none: .* was cut by: English as in Gigaword.*leave it out"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga", segmenter="none"))
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match=r"other: no file with the name of a split"):
        preprocess("duc", tmp_path / "other", tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga"))
    with pytest.raises(ConfigError, match=r"leave --min-count, --max-vocabulary and --chunks out"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga", min_count=2))
    with pytest.raises(DataError, match=r"neither prepared data .* nor a run"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "in"))
    with pytest.raises(DataError, match=r"no such folder"):
        preprocess("duc", source, tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "nowhere"))
    (tmp_path / "talk.txt").write_text("# 1\nA|hi|x\nB|ho|x\n")
    with pytest.raises(DataError, match=r"lack <same>, <other>, which switchboard needs"):
        preprocess("switchboard", tmp_path / "talk.txt", tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "giga"))


def test_half_a_surrogate_pair_in_json(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    rows = [f'{{"source": "a{number} b", "target": "t \\ud83d\\ude00"}}\n' for number in range(40)]
    rows[20] = '{"source": "half \\ud800 pair", "target": "t"}\n'
    path.write_text("".join(rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"all\.jsonl:21: half a surrogate pair \(\\ud800\).*--errors replace or --errors skip"):
        preprocess("gigaword", path, tmp_path / "out", PreprocessSettings(segmenter="none"))
    assert not (tmp_path / "out").exists()
    signature = preprocess(
        "gigaword", path, tmp_path / "replaced", PreprocessSettings(segmenter="none", errors="replace")
    ).signature
    assert signature.faults.invalid_utf8 == 1
    assert signature.examples is not None
    assert sum(split.examples for split in signature.examples.splits.values()) == 40
    signature = preprocess(
        "gigaword", path, tmp_path / "skipped", PreprocessSettings(segmenter="none", errors="skip")
    ).signature
    assert signature.faults.skipped_lines == 1
    assert "😀" in PreparedData.open(tmp_path / "skipped").vocabulary


def test_damaged_line_ends_are_no_want_of_memory(tmp_path: Path) -> None:
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out")
    lines = np.memmap(tmp_path / "out" / "train.lines.bin", dtype="<i8", mode="r+")
    for damage in (2**61, -5):
        lines[1] = damage
        lines.flush()
        with pytest.raises(DataError, match=r"train\.texts\.jsonl: the file of line ends beside it is damaged: line 1 is said"):
            Originals(tmp_path / "out", "train")[0]


# --- LCSTS


def part(*documents: tuple[str | None, str, str]) -> str:
    lines = []
    for number, (score, summary, text) in enumerate(documents):
        label = [] if score is None else [f"    <human_label>{score}</human_label>"]
        lines += [f"<doc id={number}>", *label, "    <summary>", f"        {summary}", "    </summary>"]
        lines += ["    <short_text>", f"        {text}", "    </short_text>", "</doc>"]
    return "\n".join(lines) + "\n"


def lcsts(folder: Path, test: str) -> Path:
    folder.mkdir()
    (folder / "PART_I.txt").write_text(part((None, "题目一", "文章一。"), (None, "好题目", "好文章。")), encoding="utf-8")
    (folder / "PART_II.txt").write_text(part(("5", "好题目", "好文章。"), ("2", "差", "不。")), encoding="utf-8")
    (folder / "PART_III.txt").write_text(test, encoding="utf-8")
    return folder


def test_a_lone_part_of_lcsts_is_not_divided(tmp_path: Path) -> None:
    folder = lcsts(tmp_path / "in", part(*[("4", f"题目{number}", f"文章{number}。") for number in range(60)]))
    with pytest.raises(DataError, match=r"PART_III\.txt: one file of a set that is given out in 3 .*--vocabulary RUN"):
        preprocess("lcsts", folder / "PART_III.txt", tmp_path / "out", PreprocessSettings(segmenter="characters"))


def test_lcsts(tmp_path: Path) -> None:
    folder = lcsts(tmp_path / "in", part(("3", "１２％ 增长", "他说 增长。"), ("1", "x", "y")))
    report = preprocess("lcsts", folder, tmp_path / "out", PreprocessSettings(segmenter="characters"))
    summary = report.signature.examples
    assert summary is not None
    assert {split: counts.examples for split, counts in summary.splits.items()} == {"train": 1, "valid": 1, "test": 1}
    assert summary.left_out == {"score below 3": 2, "training example that occurs in valid or test": 1}
    originals = PreparedData.open(tmp_path / "out").examples("test").originals
    assert originals is not None
    assert originals[0] == Original(tuple("他说增长。"), ("12% 增长",))


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (("<human_label>3", "<human_label>6"), r"PART_III\.txt:2: unknown score '6'; allowed are 1, 2, 3, 4, 5"),
        (("    <human_label>3</human_label>\n", ""), r"PART_III\.txt:1: no <human_label>"),
        (("    </summary>\n", ""), r"PART_III\.txt:5: <short_text> is not expected here; allowed: </summary>"),
        (("        一个题\n", ""), r"PART_III\.txt:1: the target is empty"),
        (("        一个文\n", ""), r"PART_III\.txt:1: the source is empty"),
        (("</doc>\n", ""), r"PART_III\.txt:1: the <doc> is not closed"),
        (("<doc id=0>\n", ""), r"PART_III\.txt:1: <human_label> outside a <doc>"),
        (("<doc id=0>\n", "<doc id=0>\nwords\n"), r"PART_III\.txt:2: text outside <summary>"),
        (("    <summary>\n        一个题\n    </summary>\n", ""), r"PART_III\.txt:1: the <doc> has no <summary>"),
    ],
)
def test_bad_documents_are_named(tmp_path: Path, change: tuple[str, str], pattern: str) -> None:
    with pytest.raises(DataError, match=pattern):
        preprocess("lcsts", lcsts(tmp_path / "in", part(("3", "一个题", "一个文")).replace(*change)), tmp_path / "out")


def test_jieba_over_the_dictionary_of_a_lexicon(tmp_path: Path) -> None:
    folder = lcsts(tmp_path / "in", part(("3", "中国人民", "中国人民银行说。")))
    preprocess("lcsts", folder, tmp_path / "out", lexicon_words=["中国", "人民银行", "人民"])
    data = PreparedData.open(tmp_path / "out")
    originals = data.examples("test").originals
    assert originals is not None
    assert originals[0].source == ("中国", "人民银行", "说", "。")
    assert "over 3 words" in data.signature.segmenter
    again = PreprocessSettings(vocabulary=tmp_path / "out", force=True)
    preprocess("lcsts", folder, tmp_path / "again", again)
    assert (tmp_path / "again" / "lexicon.txt").read_text(encoding="utf-8") == "中国\n人民\n人民银行"
    for name in ("out", "again"):
        (tmp_path / name / "lexicon.txt").unlink()  # as earlier versions left the folder
    with pytest.raises(DataError, match=r"kept no lexicon\.txt; name that lexicon: --lexicon"):
        preprocess("lcsts", folder, tmp_path / "again", again)
    preprocess("lcsts", folder, tmp_path / "again", again, lexicon_words=["中国", "人民银行", "人民"])
    assert PreparedData.open(tmp_path / "again").vocabulary.fingerprint == data.vocabulary.fingerprint


# --- Switchboard


def test_both_forms_of_switchboard_are_the_same_pairs(tmp_path: Path) -> None:
    turns = [("A", "Okay, uh,"), ("A", "do you?"), ("B", " "), ("B", "no"), ("A", "oh")]
    for name in ("text", "json"):
        (tmp_path / name).mkdir()
    for split in ("train", "valid"):
        block = "# 7\n" + "".join(f"{who}|{what}|x\n" for who, what in turns) + "\n# 8\nA|hi|x\nB|hi|x\n"
        (tmp_path / "text" / f"{split}.txt").write_text(block)
        record = {"utts": [[who, what, ["x", [0.1]]] for who, what in turns]}
        records(tmp_path / "json" / f"{split}.jsonl", [record, {"utts": [["A", "hi"], ["B", "hi"]]}])
    found = []
    for name in ("text", "json"):
        report = preprocess("switchboard", tmp_path / name, tmp_path / f"{name}.out", PreprocessSettings(turns=2))
        assert report.signature.examples is not None
        assert "up to 2 turns" in report.signature.normalisation
        assert report.signature.examples.left_out == {"utterance without words": 2}
        originals = PreparedData.open(tmp_path / f"{name}.out").examples("train").originals
        assert originals is not None
        found.append([(" ".join(wording.source), wording.references) for wording in originals])
    assert found[0] == found[1]
    assert found[0] == [
        ("<same> okay , uh ,", ("do you?",)),
        ("<other> okay , uh , <other> do you ?", ("no",)),
        ("<same> do you ? <other> no", ("oh",)),
        ("<other> hi", ("hi",)),
    ]


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("A|no tag", r"train\.txt:2: 2 fields with \| between, 3 are needed"),
        ("|what|x", r"train\.txt:2: the speaker is empty"),
    ],
)
def test_bad_turns_are_named(tmp_path: Path, line: str, pattern: str) -> None:
    for split in ("train", "valid"):
        (tmp_path / f"{split}.txt").write_text(f"# 1\n{line}\nB|x|y\n")
    with pytest.raises(DataError, match=pattern):
        preprocess("switchboard", tmp_path, tmp_path / "out")


def test_turns_are_for_dialogues(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gigaword has no turns"):
        preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "out", PreprocessSettings(turns=2))
    records(tmp_path / "train.jsonl", [{"utts": [["A"]]}])
    with pytest.raises(DataError, match=r"train\.jsonl:1: utterance 1 is not \[speaker, text, \.\.\.\]"):
        preprocess("switchboard", tmp_path / "train.jsonl", tmp_path / "out")


# --- the tagged month


MONTH = """
（/w  兰/nr  红光/nr  摄/v  ）/w
朝鲜/ns  驻华/b  大使/n  举行/v  宴会/n  （/w  附/v  图片/n  １/m  张/q  ）/w
新华社/nt  记者/n  孙/nr  新/nr
本报/r  北京/ns  １月/t  ４日/t  讯/Ng  朝鲜/ns  驻华/b  大使/n  今天/t  在/p  使馆/n  举行/v  新年/t  宴会/n  。/w  后/f  。/w
正文/n  还/d  有/v  很/d  多/a  的/u  话/n  。/w
另/d  一个/m  题目/n  不/d  相关/v
据/p  新华社/nt  马尼拉/ns  １月/t  ５日/t  电/n  （/w  记者/n  陈/nr  ）/w  总统/n  呼吁/v  各国/r  合作/v  １２/m  年/q  。/w
"""


def test_headlines_of_the_tagged_month(tmp_path: Path) -> None:
    (tmp_path / "month.txt").write_text(MONTH * 30, encoding="utf-8")
    report = preprocess(
        "peoples-daily-headlines", tmp_path / "month.txt", tmp_path / "out", PreprocessSettings(segmenter="characters")
    )
    summary = report.signature.examples
    assert summary is not None
    assert {split: counts.examples for split, counts in summary.splits.items()} == {"train": 24, "valid": 3, "test": 3}
    assert summary.left_out == {"no word of the title in the sentence": 30}
    originals = PreparedData.open(tmp_path / "out").examples("test").originals
    assert originals is not None
    assert originals[0] == Original(tuple("朝鲜驻华大使今天在使馆举行新年宴会。"), ("朝鲜驻华大使举行宴会",))


def test_the_month_is_divided_in_its_order(tmp_path: Path) -> None:
    blocks = []
    for number in range(40):
        name = chr(0x4E00 + number) + "厂"
        blocks.append(
            f"{name}/n  今年/t  扭亏/v  为/v  盈/v\n{name}/n  今年/t  生产/v  很/d  好/a  ，/w  扭亏/v  为/v  盈/v  。/w\n"
        )
    (tmp_path / "month.txt").write_text("".join(blocks), encoding="utf-8")
    preprocess("peoples-daily-headlines", tmp_path / "month.txt", tmp_path / "out")
    data = PreparedData.open(tmp_path / "out")
    order = [wording.references[0][0] for split in data.splits for wording in data.examples(split).originals or ()]
    assert order == [chr(0x4E00 + number) for number in range(40)]
    assert [len(data.examples(split)) for split in data.splits] == [32, 4, 4]


# --- the real files


def test_the_real_part_iii(shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / "lcsts" / "PART_III.txt").is_file():
        pytest.skip("PART_III.txt of LCSTS is not here")
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "words", PreprocessSettings(segmenter="none"))
    report = preprocess(
        "lcsts", shared_data / "lcsts" / "PART_III.txt", tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "words")
    )
    summary = report.signature.examples
    assert summary is not None
    assert summary.splits["test"].examples == 725
    assert summary.left_out == {"score below 3": 381}
    assert summary.splits["test"].examples + 381 == 1106


def test_the_real_test_set_of_gigaword(shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / "gigaword-headlines").is_dir():
        pytest.skip("the test set of Gigaword is not here")
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "words")
    report = preprocess(
        "gigaword",
        shared_data / "gigaword-headlines" / "gigaword-test1951.jsonl",
        tmp_path / "out",
        PreprocessSettings(vocabulary=tmp_path / "words"),
    )
    assert report.signature.examples is not None
    assert report.signature.examples.splits["test"].examples == 1951
    originals = PreparedData.open(tmp_path / "out").examples("test").originals
    assert originals is not None
    assert np.mean([len(wording.references) for wording in originals]) == 1


def test_the_real_duc(shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / "duc2004").is_dir():
        pytest.skip("DUC-2004 is not here")
    preprocess("gigaword", side_by_side(tmp_path / "in"), tmp_path / "words")
    preprocess(
        "duc", shared_data / "duc2004" / "duc2004.jsonl", tmp_path / "out", PreprocessSettings(vocabulary=tmp_path / "words")
    )
    originals = PreparedData.open(tmp_path / "out").examples("test").originals
    assert originals is not None
    assert [len(wording.references) for wording in originals] == [4] * 500
