"""A command that leaves everything undone ends with exit code 1 and what to type; before, such ends were remarks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.attack.folder import AttackFolder
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.seeds import train_seeds
from sememekit.jobs.sweep import sweep
from sememekit.jobs.train import train
from tests.attack.toys import TEXTS
from tests.commands.attacks import run, table_of
from tests.commands.processes import play_processes
from tests.small_run import Place

FOREIGN = "xx yy\nqq ww\n"


def refused(*arguments: object, text: str = "") -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    assert done.exit_code == 1, done.output
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("text", ["", "\n \n"])
@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["segment"], "no words in stdin, so nothing is segmented; give a text a line: echo TEXT | sememekit segment"),
        (["score", "sdlm"], "no words in stdin, so nothing is scored; give a sentence a line"),
        (["tag", "sdlm"], "no words are in stdin, so nothing is tagged; give a sentence a line"),
        (["tag", "sdlm", "--format", "conllu"], "no words are in stdin, so nothing is tagged"),
    ],
)
def test_a_text_without_words_is_refused(models: Path, command: list[str], told: str, text: str) -> None:
    name, *rest = command
    runs = [models / part if part == "sdlm" else part for part in rest]
    assert told in refused(name, *runs, text=text)


def test_a_text_of_which_a_model_knows_no_word_is_refused(models: Path, headlines: Path) -> None:
    for command in (["score", models / "sdlm"], ["tag", models / "sdlm"], ["generate", headlines, "--input", "-"]):
        told = refused(*command, text=FOREIGN)
        assert "the model knows none of the words, such as 'xx yy" in told, command
        assert "cut into words by: sememekit segment" in told
    assert "explain: the model knows none of the words" in refused("explain", headlines, "xx yy")


def test_words_that_are_asked_for_and_not_there_are_refused(models: Path) -> None:
    assert "the text has none of the words 苹果; give words as they stand in the text" in refused(
        "tag", models / "sdlm", "--words", "苹果", text="今天 中国 好\n"
    )


def test_a_lattice_that_knows_no_token_of_a_text_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "lattice", end_of_sentence=True, chunks=8, chunk_length=2)
    task = {"name": "lattice", "embedding_size": 6, "sub_size": 5, "longest_chunk": 2, "batch_size": 8}
    train(
        {**place.table(schedule__epochs=1), "task": task, "encoder": {"name": "lattice_lstm", "hidden_size": 6}}, tmp_path / "r"
    )
    segment = ["segment", "--model", str(tmp_path / "r")]
    assert "stdin: the model knows none of the words, such as 'xx yy qq ww'" in refused(*segment, text=FOREIGN)
    done = CliRunner().invoke(app, segment, input=f"\n{FOREIGN}我 吃\n")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 4), "one known word is enough"
    assert "explain: the model knows none of the words" in refused("explain", tmp_path / "r", "xx yy")


def test_no_suggestion_at_all_is_refused_and_no_table_is_written(models: Path, tmp_path: Path) -> None:
    source = f"hownet2000:{models / 'lexicon.tsv'}"
    told = refused("lookup", "--suggest", "zzzzz", "--source", source, "--dump", tmp_path / "dump.tsv")
    assert "nothing speaks for any sememe of zzzzz; add word vectors with --vectors RUN" in told
    assert not (tmp_path / "dump.tsv").exists()


@pytest.mark.parametrize(
    ("table", "search", "told"),
    [
        ({}, {}, r"\(no_candidates: no word has a substitute\); give candidates in the language of the texts"),
        ({"zzz": ["yyy"]}, {}, r"\(no_candidates: no word has a substitute\)"),
        (None, {"name": "exhaustive", "limit": 1}, r"\(skipped: more texts to try than search\.limit 1\); raise this limit"),
    ],
)
def test_an_attack_that_had_nothing_to_try_is_refused(
    files: dict[str, Path], table: dict[str, list[str]] | None, search: dict[str, object], told: str
) -> None:
    if table is not None:
        files["table"].write_text(json.dumps(table), encoding="utf-8")
    plan = table_of(files)
    with pytest.raises(DataError, match=rf"^the attack on .* had nothing to try {told}.* with another --out; see .*out$"):
        run(files, files["out"], table={**plan, "search": search or plan["search"]})
    assert len(AttackFolder.open(files["out"]).results()) == len(TEXTS) + 2, "what was found is kept"


@pytest.mark.parametrize("slot", ["data", "graph"])
def test_what_every_training_lacks_is_told_before_there_is_a_folder(
    place: Place, tmp_path: Path, slot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each trial of a sweep ended with this error, and the folder was taken then."""
    pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")
    table = {name: keys for name, keys in place.table("sdlm", schedule__epochs=1).items() if name != slot}
    told = {"data": "no data given; add --data DIR", "graph": "needs a sememe graph"}[slot]
    with pytest.raises(ConfigError, match=told):
        sweep(table, tmp_path / "sweep", ("optimizer.learning_rate=1,2",), trials=2, jobs=1)
    with pytest.raises(ConfigError, match=told):
        train_seeds(table, tmp_path / "seeds", (1, 2))
    assert not list(tmp_path.iterdir())
    own = Path(place.table("sdlm")[slot]["path"])
    (shutil.copytree if own.is_dir() else shutil.copy2)(own, tmp_path / "copy")
    play_processes(monkeypatch)
    found = sweep(table, tmp_path / "sweep", (f"{slot}.path={own},{tmp_path / 'copy'}",), trials=1, jobs=1)
    assert found.best, "what --over gives is not missed"
