"""Word clusters that an arm is given: learned once from its data, by commands of the data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.claims.chain import Step, Trial, result_names, steps_of, timings_of
from sememekit.claims.claims import load_claims
from sememekit.errors import ConfigError
from sememekit.jobs.trials import run_trial
from sememekit.signals import Stopped

FILE = """
paper = "P"
[data.text]
about = "a text"
files = { "train.txt" = "corpus/train.txt" }
prepare = "preprocess plain {text} --out {data}"
CLUSTERS
[arm.one]
data = "text"
recipe = "ours/gigaword-softmax"
[arm.two]
data = "text"
recipe = "ours/gigaword-self-organized"
clusters = true
[claim.better]
statement = "two is better"
source = "Table 1"
small = ["one", "two"]
about = ["clusters", "decoder.name"]
"""
CLUSTERS = """clusters = [
  "preprocess plain {text} --vocabulary {data} --out {clusters}/titles",
  "train --recipe ours/gigaword-titles --data {clusters}/titles --out {clusters}/run",
  "clusters {clusters}/run --save {clusters}/found.json",
]"""


def trials(tmp_path: Path, clusters: str = CLUSTERS, seeds: int = 2) -> list[Trial]:
    (tmp_path / "p.toml").write_text(FILE.replace("CLUSTERS", clusters), encoding="utf-8")
    return steps_of(*load_claims(tmp_path)["better"], Path("out"), Path("/c"), seeds=seeds)


def test_the_arm_that_asks_for_clusters_has_their_steps_and_is_given_the_file(tmp_path: Path) -> None:
    one, two, _, again = trials(tmp_path)
    assert [step.kind for step in one.steps] == ["copy", "prepare", "train", "evaluate"]
    assert [step.kind for step in two.steps] == ["copy", "prepare", "clusters", "train", "clusters", "train", "evaluate"]
    assert two.steps[:5] == again.steps[:5], "one model of the titles for all seeds"
    folder = two.steps[4].made.parent
    assert folder.parent == two.steps[1].made.parent
    assert [step.made for step in two.steps[2:5]] == [folder / "titles", folder / "run", folder / "found.json"]
    words = two.steps[5].words
    assert words[words.index("--clusters") + 1] == str(folder / "found.json")
    assert "--clusters" not in one.steps[2].words
    assert one.steps[1] == two.steps[1], "one text for both"
    (timing,) = timings_of(*load_claims(tmp_path)["better"], Path("out"), Path("/c"))
    assert set(two.steps[:5]) == set(timing.steps)
    assert "--clusters" in timing.trains[1]


def test_other_clusters_are_another_trial(tmp_path: Path) -> None:
    before = trials(tmp_path)
    after = trials(tmp_path, CLUSTERS.replace("ours/gigaword-titles", "ours/ptb-lstm"))
    assert before[1].result != after[1].result
    assert before[1].steps[4].made != after[1].steps[4].made, "the clusters of before are not taken"
    assert before[0] == after[0], "the arm that takes none is as it was"


def test_a_changed_recipe_of_the_clusters_is_another_trial(tmp_path: Path) -> None:
    recipe = tmp_path / "recipes" / "titles.toml"
    recipe.parent.mkdir()
    clusters = CLUSTERS.replace("ours/gigaword-titles", str(recipe))
    recipe.write_text('[optimizer]\nname = "sgd"\nlearning_rate = 1.0\n', encoding="utf-8")
    before = trials(tmp_path, clusters)[1]
    recipe.write_text('[optimizer]\nname = "sgd"\nlearning_rate = 2.0\n', encoding="utf-8")
    after = trials(tmp_path, clusters)[1]
    assert before.result != after.result
    assert before.steps[4].made != after.steps[4].made


def test_clusters_of_no_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[arm\.two\]: clusters = true, but \[data\.text\] has no key 'clusters'"):
        trials(tmp_path, "")


def test_results_of_before_there_were_clusters_keep_their_names() -> None:
    claims = load_claims()
    assert result_names(*claims["sdlm-headlines"], seeds=1)[0] == "headlines-softmax-small-1-722f4dd6.json"
    assert result_names(*claims["mos-below-softmax"], seeds=1)[0] == "ptb-softmax-small-1-cda4d835.json"


def test_a_stopped_model_of_the_titles_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the model is there from the first second: as any other step it would count as done."""
    run, clusters = tmp_path / "clusters" / "run", tmp_path / "clusters" / "found.json"
    steps = (
        Step("train", ("train", "--out", str(run)), run),
        Step("clusters", ("clusters", str(run), "--save", str(clusters)), clusters),
    )
    trial = Trial("x", "arm", 1, False, steps, (), tmp_path, tmp_path / "runs" / "x", tmp_path / "result.json")
    called: list[tuple[str, ...]] = []

    def call(step: Step, spent: list[float], **more: object) -> str:
        called.append(step.words)
        spent.append(1.0)
        if len(called) == 1:
            run.mkdir()
            (run / "plan.json").touch()
        if step.kind == "train" and "--resume" in step.words:
            return ""
        raise Stopped

    monkeypatch.setattr("sememekit.jobs.trials.call", call)
    for _ in range(3):
        with pytest.raises(Stopped):
            run_trial(trial, lambda line: None, lambda: False, {})
    first, second, third, fourth = called
    assert (first, second) == (steps[0].words, (*steps[0].words, "--resume"))
    assert third == fourth == steps[1].words, "a training that is done is not begun again"
