"""Small files of our own under the names that the lines of the README and of the pages of docs/ speak of."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.small_examples import write_reviews, write_vectors
from tests.small_wordnet import write_wordnet

PLACES, PEOPLE, TIMES = ("北京", "上海", "中国", "美国"), ("记者", "工人", "农民", "学生"), ("今天", "去年")
VERBS, THINGS = ("买", "卖", "看", "喜欢"), ("苹果", "水果", "电影", "报纸", "贸易")
DOING = {"sleeping": "entailment", "eating": "contradiction", "singing": "neutral"}


def write_files(folder: Path) -> None:
    """All of them, into an empty folder."""
    draw = random.Random(1)
    news = [chinese(draw) for _ in range(300)]
    write_splits(folder / "text", "{}.txt", news)
    write_splits(folder / "RELEASED_FOLDER", "{}.txt", news)
    write_splits(folder / "NEWS_FOLDER", "{}.txt", [line.replace(" ", "") for line in news] + ["上海市体育局召开会议"] * 9)
    write_lines(folder / "raw.txt", [line.replace(" ", "") for line in news[:20]])
    for name in ("gold.txt", "GOLD.txt", "TRAIN.txt", "sentences.txt"):
        write_lines(folder / name, news[20:50])
    write_lines(folder / "MONTH.txt", [line for sentence in news for line in title_and_body(sentence)])
    gold = [f"{line}\t看\t{line.split().index('看') + 1}\t1" for line in news if "看" in line]
    write_lines(folder / "senses.tsv", ["sentence\tword\tposition\tsense", *gold[:20]])
    write_lines(folder / "articles.txt", [line.replace(" ", "") for line in news[:3]])
    english = [f"The {word} is sleeping in {number} large parks ." for word in ("dog", "animal") for number in range(150)]
    draw.shuffle(english)
    write_splits(folder / "PTB_FOLDER", "ptb.{}.txt", english)
    write_splits(folder / "EN_FOLDER", "{}.txt", english)
    write_lines(folder / "words.txt", english[:5])
    write_labels(folder, draw)
    write_lexicons(folder)
    write_pairs(folder, draw)


def write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_splits(folder: Path, name: str, lines: list[str]) -> None:
    """Eight tenths, one, and one."""
    first, second = len(lines) * 8 // 10, len(lines) * 9 // 10
    for split, part in (("train", lines[:first]), ("valid", lines[first:second]), ("test", lines[second:])):
        write_lines(folder / name.format(split), part)


def chinese(draw: random.Random) -> str:
    """A sentence; what is bought follows from who buys it."""
    who = draw.choice(PEOPLE)
    thing = THINGS[PEOPLE.index(who) + draw.randrange(2)]
    return f"{draw.choice(TIMES)} {draw.choice(PLACES)} 的 {who} {draw.choice(VERBS)} {thing} 。"


def title_and_body(sentence: str) -> tuple[str, str]:
    """An article of the tagged month: a line that is a title, and a paragraph whose first sentence shares its words."""
    words = sentence.split()[:-1]
    body = [*words, "，", *words, "。"]
    return "  ".join(f"{word}/n" for word in words), "  ".join(f"{word}/n" for word in body)


def write_labels(folder: Path, draw: random.Random) -> None:
    """Pairs whose label follows from a word of the hypothesis, in both forms of SNLI, and reviews."""
    rows: dict[str, list[tuple[str, str, str]]] = {"train": [], "dev": [], "test": []}
    for split, size in (("train", 150), ("dev", 20), ("test", 20)):
        for number in range(size):
            doing = draw.choice(sorted(DOING))
            rest = f"in the large green park near house {split} {number}"
            rows[split].append((f"a man is {rest} .", f"the man is {doing} {rest} .", DOING[doing]))
        jsonl = [json.dumps({"gold_label": label, "sentence1": one, "sentence2": two}) for one, two, label in rows[split]]
        write_lines(folder / "SNLI_FOLDER" / f"snli_1.0_{split}.jsonl", jsonl)
    for name, column in (("s1", 0), ("s2", 1), ("labels", 2)):
        write_lines(folder / f"{name}.train", [row[column] for row in rows["train"]])
        write_lines(folder / f"{name}.short", [("a man", "the park", label)[column] for label in sorted(DOING.values())])
    write_lines(folder / "pairs.tsv", [f"{one}\t{two}" for one, two, _ in rows["test"][:3]])
    write_reviews(folder / "sst2")
    reviews = (folder / "sst2" / "test.tsv").read_text(encoding="utf-8").splitlines()
    write_lines(folder / "test.tsv", reviews)
    names = {"0": "negative", "1": "positive"}
    write_lines(folder / "named.tsv", [f"{text}\t{names[label]}" for text, label in (row.split("\t") for row in reviews)])


def write_lexicons(folder: Path) -> None:
    """Word vectors, lexicons in each form, lists of opposites and of paraphrases."""
    write_vectors(folder / "glove.6B.300d.txt", ["a", "man", "the", "is", *DOING], size=300)
    near = [f"{word} 0.{number} 0.2 0.3 0.4 0.5" for number, word in enumerate(sorted(DOING), start=1)]
    for name in ("vectors.txt", "v.txt"):
        write_lines(folder / name, [*near, "fine 1 1 1 1 1", "good 1.1 1 1 1 1", "bore 2 2 2 2 2", "bad 2.1 2 2 2 2"])
    rows = [("fine", "good"), ("bore", "dull"), ("bad", "good"), ("bad", "dull"), ("film", "thing"), ("nice", "good")]
    for name in ("english.tsv", "en.tsv", "ENGLISH_TABLE"):
        write_lines(
            folder / name,
            [f"{word}\t{sememe}" for word, sememe in [*rows, ("dog", "animal"), ("park", "place"), ("house", "place")]],
        )
    write_lines(folder / "new.tsv", ["word\tsememes\tcount", "苹果\t水果\t30", "贸易\t水果\t"])
    write_lines(folder / "LEMMAS", ["park\tparks", "dog\tdogs"])
    write_lines(
        folder / "synonyms.json", [json.dumps({"fine": ["good"], "bore": ["bad", "film"], "bad": ["film"], "film": ["bore"]})]
    )
    write_lines(folder / "antonyms.txt", ["fine bad", "en_good en_bad"])
    write_lines(folder / "ppdb.txt", ["fine good", "bad bore"])
    glossary = [*(f"{word}\tN\tthing|物,{number}|号" for number, word in enumerate(THINGS)), "人民\tN\thuman|人"]
    write_lines(folder / "glossary.dat", glossary)
    write_lines(folder / "hownet.txt", [line for word in PEOPLE for line in (word, "人 职位")])
    hownet = [f"NO.={n}\nW_C={word}\nG_C=N\nW_E=x\nDEF={{human|人}}\n" for n, word in enumerate(PEOPLE, start=1)]
    write_lines(folder / "HowNet.txt", hownet)
    write_wordnet(folder / "DICT")


def write_pairs(folder: Path, draw: random.Random) -> None:
    """Gigaword side by side, DUC, the parts of LCSTS, and dialogues."""
    for split, size in (("train", 40), ("valid", 8), ("test", 8)):
        titles = [f"{draw.choice(('man', 'girl'))} {draw.choice(('sleeps', 'runs'))} in {split} {n}" for n in range(size)]
        write_lines(folder / "GIGAWORD" / f"{split}.title.txt", titles)
        write_lines(
            folder / "GIGAWORD" / f"{split}.article.txt", [f"the {title} , and the rest goes home ." for title in titles]
        )
        turns = [(who, f"{draw.choice(('yes', 'no', 'well'))} {split} {n}") for n in range(size) for who in "AB"]
        write_lines(folder / "SWITCHBOARD" / f"{split}.jsonl", [json.dumps({"utts": [[who, what] for who, what in turns]})])
    sample = json.dumps({"text": "the man sleeps .", "summaries": ["man sleeps in test"] * 4})
    write_lines(folder / "duc2004.jsonl", [sample] * 3)
    write_lines(folder / "gigaword.jsonl", [json.dumps({"text": "the girl runs .", "summaries": ["girl runs"]})] * 3)
    for name, score, size in (("PART_I.txt", None, 40), ("PART_II.txt", 5, 8), ("PART_III.txt", 4, 8)):
        documents = [document(n, score, name.removesuffix(".txt"), chinese(draw).replace(" ", "")) for n in range(size)]
        for place in (folder / "LCSTS" / name, folder / name):
            write_lines(place, documents)


def document(number: int, score: int | None, part: str, text: str) -> str:
    """An entry of a PART file."""
    label = "" if score is None else f"    <human_label>{score}</human_label>\n"
    title = f"    <summary>\n        {part}{number}{text[:6]}\n    </summary>\n"
    return f"<doc id={number}>\n{label}{title}    <short_text>\n        {text}{number}\n    </short_text>\n</doc>"
