"""Models that the command line trained, and the files of an attack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from tests.attack.toys import TABLE, TEXTS
from tests.commands.small_flags import settings

LEXICON = "中国\tN\tplace|地方,country|国家\n贸易\tV\tbuy|买,sell|卖\n贸易\tN\taffairs|事务\n今天\tTIME\ttime|时间\n"


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a graph, a sememe model ("sdlm") and a plain one ("softmax")."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "text.txt").write_text("今天 中国 贸易\n中国 今天 好\n" * 40, encoding="utf-8")
    (folder / "lexicon.tsv").write_text(LEXICON, encoding="utf-8")
    data, graph = str(folder / "data"), str(folder / "graph")
    train = ["train", "--data", data, *settings(schedule__epochs=1)]
    for arguments in (
        ["preprocess", "plain", str(folder / "text.txt"), "--out", data],
        ["build-sememe-graph", "--source", f"hownet2000:{folder / 'lexicon.tsv'}", "--data", data, "--out", graph],
        [*train, "--out", str(folder / "softmax")],
        [*train, "--out", str(folder / "sdlm"), "--decoder", "sdlm", "--graph", graph],
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return the input of an attack on the toy victim: examples, the last two without a known label, and substitutes."""
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in TEXTS) + "good\t-\nbad\tperhaps\n", encoding="utf-8")
    table = tmp_path / "table.json"
    table.write_text(json.dumps(TABLE), encoding="utf-8")
    return {"data": data, "table": table, "out": tmp_path / "out"}
