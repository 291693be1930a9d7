"""Files of pairs of a source and a target, as Gigaword has them."""

from __future__ import annotations

import json
from pathlib import Path

from sememekit.data.prepared import PreparedData

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


def lcsts_part(*documents: tuple[str | None, str, str]) -> str:
    """A file of LCSTS: score, headline and text of each document."""
    lines = []
    for number, (score, summary, text) in enumerate(documents):
        label = [] if score is None else [f"    <human_label>{score}</human_label>"]
        lines += [f"<doc id={number}>", *label, "    <summary>", f"        {summary}", "    </summary>"]
        lines += ["    <short_text>", f"        {text}", "    </short_text>", "</doc>"]
    return "\n".join(lines) + "\n"
