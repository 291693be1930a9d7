"""Every command that reads text for a run of the tagged People's Daily reads it in the form of the month."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sememekit.analysis.explanations.words import explain
from sememekit.analysis.score import score
from sememekit.errors import DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.attacks.language_model import AttackLanguageModel
from sememekit.runs.generation import generate
from sememekit.runs.run import Run
from sememekit.runs.writing import Writer
from sememekit.text.form import TextForm
from sememekit.text.segmenters import Characters

LINE = "１９９８年/t 人们/n 买/v 了/u ３/m 本/q 书/n ，/w １月/t ２日/t 开门/v 。/w\n"
APART, READ = "１９９７年 １月 ３１日 买 了 二十一 本 书", ["<year>", "1月", "<date>", "买", "了", "<N>", "本", "书"]


@pytest.fixture(scope="module", params=["none", "fmm"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a month, whose words are apart or cut by a lexicon."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "month.txt").write_text(LINE * 60, encoding="utf-8")
    words = {"none": None, "fmm": ["人们", "买", "了", "本", "书", "开门"]}[request.param]
    lexicon = "none" if words is None else None
    settings = PreprocessSettings(segmenter=request.param, lexicon=lexicon)
    preprocess("peoples-daily", folder / "month.txt", folder / "data", settings, lexicon_words=words)
    table: dict[str, Any] = {
        "data": {"path": str(folder / "data")},
        "task": {"embedding_size": 4, "batch_size": 2, "chunk_length": 5},
        "encoder": {"hidden_size": 4, "num_layers": 1},
        "schedule": {"epochs": 1},
        "run": {"threads": 1, "device": "cpu", "stall_epochs": 0},
    }
    train(table, folder / "run")
    return folder / "run"


def test_score_and_explain(run: Path) -> None:
    read = [row.read_as for row in score(run, [APART])]
    assert read == READ
    assert [word.read_as for word in explain(run, APART).context] == READ


@pytest.mark.parametrize(
    ("context", "cut"),
    [(APART, False), ("人们 买 了 梨", False), ("人们买 了 梨", True), ("１月 人们买", True)],
    ids=["known words", "one that the lexicon leaves whole", "two in one", "two in one at the end"],
)
def test_explain_says_by_whom_the_words_were_cut(run: Path, context: str, cut: bool) -> None:
    """Words outside the vocabulary are cut by the lexicon of the month; a month whose words were apart has none."""
    cut = cut and Run.open(run).signature.options["segmenter"] == "fmm"
    found = explain(run, context)
    assert [word.word for word in found.context] == (context.replace("人们买", "人们 买") if cut else context).split()
    assert found.segmentation == ("blanks, and words outside the lexicon as in the training text" if cut else "blanks")


def test_text_without_blanks(run: Path) -> None:
    bare = APART.replace(" ", "")
    if Run.open(run).signature.options["segmenter"] == "none":  # blanks cut its data, and nothing here cuts as they did
        with pytest.raises(DataError, match=r"explain: Chinese without blanks, such as .* cut it first: sememekit segment"):
            explain(run, bare)
    else:
        found = explain(run, bare)
        assert [word.read_as for word in found.context] == READ
        assert found.segmentation == "the segmenter of the training data"
        assert [row.read_as for row in score(run, [bare], segment=True)] == READ


def test_generate_reads_its_prompt_so(run: Path) -> None:
    written = [generate(run, prompt, num_tokens=3, seed=4).nats for prompt in (APART, " ".join(READ))]
    assert written[0] == written[1]
    unknown = " ".join("<unk>" if word.startswith("<") else word for word in READ)
    assert generate(run, unknown, num_tokens=3, seed=4).nats != written[0]


def test_the_language_model_of_an_attack(run: Path) -> None:
    nats = AttackLanguageModel(run, "cpu")
    assert nats([APART.split()]) == nats([READ]) != nats([["<unk>", *READ[1:]]])


def test_words_apart_for_a_model_of_pairs() -> None:
    run: Any = SimpleNamespace(form=lambda: TextForm(half_width=True), vocabulary=())
    task: Any = None
    assert Writer(run, task, None).words("１２ 月 ，") == ["12", "月", "，"]
    assert Writer(run, task, Characters()).words("１２月，") == ["1", "2", "月", "，"]
