"""Sets of articles and headlines: LCSTS, the tagged month of the People's Daily, and the real files where they are present."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sememekit.data.examples import Original
from sememekit.data.prepared import PreparedData
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from tests.pair_files import lcsts_part as part
from tests.pair_files import side_by_side


def lcsts(folder: Path, test: str) -> Path:
    folder.mkdir()
    (folder / "PART_I.txt").write_text(part((None, "题目一", "文章一。"), (None, "好题目", "好文章。")), encoding="utf-8")
    (folder / "PART_II.txt").write_text(part(("5", "好题目", "好文章。"), ("2", "差", "不。")), encoding="utf-8")
    (folder / "PART_III.txt").write_text(test, encoding="utf-8")
    return folder


def test_a_lone_part_of_lcsts_is_not_divided(tmp_path: Path) -> None:
    folder = lcsts(tmp_path / "in", part(*[("4", f"题目{number}", f"文章{number}。") for number in range(60)]))
    with pytest.raises(DataError, match=r"PART_III\.txt: one of the 3 files of this set .*--vocabulary RUN"):
        preprocess("lcsts", folder / "PART_III.txt", tmp_path / "out", PreprocessSettings(segmenter="characters"))


def test_a_text_that_is_no_part_of_lcsts_is_told_the_data_set_that_reads_it(tmp_path: Path) -> None:
    novel = tmp_path / "novel.txt"
    novel.write_text("他说增长。\n", encoding="utf-8")
    told = r"PART_I\.txt, .* begin with '<doc'.*sememekit preprocess plain .*novel\.txt --out DIR; pairs of your own .*gigaword"
    with pytest.raises(DataError, match=told):
        preprocess("lcsts", novel, tmp_path / "out", PreprocessSettings(segmenter="characters"))


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
        (("<human_label>3", "<human_label>6"), r"PART_III\.txt:1: this <doc> is of another form; .* <human_label> of 1 to 5"),
        (("    <human_label>3</human_label>\n", ""), r"PART_III\.txt:1: no <human_label>"),
        (("    </summary>\n", ""), r"PART_III\.txt:1: this <doc> is of another form"),
        (("        一个题\n", ""), r"PART_III\.txt:1: the target is empty"),
        (("        一个文\n", ""), r"PART_III\.txt:1: the source is empty"),
        (("</doc>\n", ""), r"PART_III\.txt:1: the <doc> is not closed at the end"),
        (("</doc>\n", "<doc id=1>\n"), r"PART_III\.txt:9: the <doc> of line 1 is not closed"),
        (("<doc id=0>\n", ""), r"PART_III\.txt:1: text outside a <doc>"),
        (("<doc id=0>\n", "<doc id=0>\nwords\n"), r"PART_III\.txt:1: this <doc> is of another form"),
        (("    <summary>\n        一个题\n    </summary>\n", ""), r"PART_III\.txt:1: this <doc> is of another form"),
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
    preprocess("lcsts", folder, tmp_path / "again", again, lexicon_words=["中国", "人民银行", "人民"])
    assert PreparedData.open(tmp_path / "again").vocabulary.fingerprint == data.vocabulary.fingerprint


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
    names = [chr(0x4E00 + number) + "国" for number in range(30)]
    (tmp_path / "month.txt").write_text("".join(MONTH.replace("朝鲜", name) for name in names), encoding="utf-8")
    report = preprocess(
        "peoples-daily-headlines", tmp_path / "month.txt", tmp_path / "out", PreprocessSettings(segmenter="characters")
    )
    summary = report.signature.examples
    assert summary is not None
    assert {split: counts.examples for split, counts in summary.splits.items()} == {"train": 24, "valid": 3, "test": 3}
    assert summary.left_out == {"no word of the title in the sentence": 30}
    originals = PreparedData.open(tmp_path / "out").examples("test").originals
    assert originals is not None
    assert originals[0] == Original(tuple(f"{names[27]}驻华大使今天在使馆举行新年宴会。"), (f"{names[27]}驻华大使举行宴会",))


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


def test_the_real_part_iii(shared_data: Path, tmp_path: Path) -> None:
    if not (shared_data / "lcsts" / "PART_III.txt").is_file():
        pytest.skip("PART_III.txt of LCSTS is not here")
    (tmp_path / "in").mkdir()
    for split in ("train", "valid"):
        rows = "".join(f"{split}今天的天气很好，人们都在第{number}个公园\t天气很好\n" for number in range(9))
        (tmp_path / "in" / f"{split}.tsv").write_text(rows, encoding="utf-8")
    preprocess("gigaword", tmp_path / "in", tmp_path / "words", PreprocessSettings(segmenter="characters"))
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
