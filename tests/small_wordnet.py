"""The files of a WordNet of a few lines: the database, and the index with its exceptions."""

from __future__ import annotations

from pathlib import Path

LICENCE = "  1 This software and database is being provided to you\n"
DATABASE = {
    "data.noun": '00000010 03 n 02 dog 0 domestic_dog 0 001 @ 00000020 n 0000 | a barking animal; "good dog"\n'
    "00000020 03 n 01 animal 0 000 | a living being\n",
    "data.verb": "00000010 30 v 02 dog 0 chase 1 000 01 + 08 00 | go after\n",
    "data.adj": "00000010 00 s 03 galore(ip) 0 Big 0 large 0 000 | of size\n",
    "data.adv": "00000010 02 r 01 quickly 0 000 | fast\n",
}
INDEX = {
    "index.noun": "animal n 1 0 1 1 00000020  \ndog n 1 1 @ 1 1 00000010  \ndomestic_dog n 1 1 @ 1 0 00000010  \n",
    "index.verb": "chase v 1 1 @ 1 0 00000010  \ndog v 1 1 @ 1 1 00000010  \n",
    "index.adj": "big a 1 0 1 1 00000010  \ngalore a 1 0 1 1 00000010  \nlarge a 1 0 1 1 00000010  \n",
    "index.adv": "quickly r 1 0 1 1 00000010  \n",
    "noun.exc": "hounds dog\n",
    "verb.exc": "",
    "adj.exc": "",
    "adv.exc": "",
}


def write_database(folder: Path, **changes: str) -> Path:
    """The files of ``DATABASE``; ``data_noun="..."`` is another text of one."""
    folder.mkdir(exist_ok=True)
    for name, text in {**DATABASE, **{key.replace("_", "."): value for key, value in changes.items()}}.items():
        (folder / name).write_text(LICENCE + text, encoding="utf-8")
    return folder


def write_wordnet(folder: Path) -> Path:
    """Database and index."""
    write_database(folder)
    for name, text in INDEX.items():
        (folder / name).write_text(LICENCE + text if name.startswith("index") else text, encoding="utf-8")
    return folder
