"""Odd files through every reader of corpora: data that can be opened, or one error of ours, and no folder left behind."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import warnings
from pathlib import Path

import pytest

from sememekit.corpora import DATASETS
from sememekit.corpora.examples import EXAMPLE_SETS
from sememekit.data.prepared import PreparedData
from sememekit.errors import SememekitError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings

LINES = ["今天 老师 看 报纸 。", "the cat sat on the mat .", "<s> a b </s>", "a <eos>"] * 12


def tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo("text.txt")
        member.size = 6
        archive.addfile(member, io.BytesIO(b"a b c\n"))
    return made.getvalue()


TEXT = "\n".join(LINES) + "\n"
ODD: dict[str, bytes] = {
    "utf-16le.txt": TEXT.encode("utf-16-le"),
    "utf-16be.tsv": TEXT.encode("utf-16-be"),
    "utf-16.jsonl": ('{"text": "a", "label": "b"}\n' * 30).encode("utf-16"),
    "gb18030.txt": TEXT.encode("gb18030"),
    "tar.txt": tar(),
    "tar.txt.gz": gzip.compress(tar()),
    "no.txt.gz": TEXT.encode(),
    "zip.csv": b"PK\3\4" + bytes(range(256)) * 40,
    "parquet.parquet": b"PAR1" + b"\0" * 200 + b"PAR1",
    "nul.txt": b"a\0b\n" * 40,
    "marks.txt": b"<s>\n</s>\n<eos>\n<s> </s> <eos>\n" * 12,
    "blank.txt": b"\n \n\t\n" * 20,
    "odd blanks.txt": "a\u2028b\x85c\x0cd\u3000e\r\n".encode() * 40,
    "marks of bytes.txt": b"\xef\xbb\xbfa b\n" * 40,
    "returns.txt": b"a b\rc d\r" * 40,
    "columns.tsv": b"1\ta b\t0\n" * 40,
    "conll.txt": b"1\ta\t_\n2\tb\t_\n\n" * 30,
    "trees.txt": b"( (S (NN a) (VB b) ) )\n" * 40,
    "table.csv": b'text,label\n"a ""b"" c",0\n"d\ne",1\n' * 20,
    "open.csv": b'text,label\n"a b,0\n' * 20,
    "list.json": json.dumps([{"text": "a", "label": "b"}]).encode(),
    "deep.jsonl": b"[" * 10_000 + b"\n",
    "null.jsonl": b'{"text": null, "label": null}\n' * 30,
    "numbers.jsonl": b'{"premise": "a", "hypothesis": "b", "label": 1.5}\n' * 30,
    "wide.csv": b"a,b\n1," + b"x" * (1 << 18) + b"\n" + b"1,y\n" * 30,
}


def prepared(dataset: str, source: Path, out: Path, errors: str) -> str:
    """The message of the refusal, or nothing where data were written that can be opened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            preprocess(dataset, source, out, PreprocessSettings(errors=errors))
        except SememekitError as error:
            return str(error)
    PreparedData.open(out)
    shutil.rmtree(out)
    return ""


WAYS = [(dataset, "strict") for dataset in (*DATASETS, *EXAMPLE_SETS)]
WAYS += [(dataset, errors) for dataset in ("plain", "classification", "gigaword") for errors in ("replace", "skip")]


@pytest.mark.parametrize(("dataset", "errors"), WAYS)
def test_odd_files_give_data_or_one_error(tmp_path: Path, dataset: str, errors: str) -> None:
    for name, content in ODD.items():
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        for split in ("train", "valid", "test"):
            (folder / f"{split}{''.join(Path(name).suffixes)}").write_bytes(content)
        source = folder if dataset in EXAMPLE_SETS else next(folder.iterdir())
        told = prepared(dataset, source, tmp_path / "out", errors)
        assert "\n" not in told, (name, told)
        assert not (tmp_path / "out").exists(), name
