"""The files of claims, and the commands that are made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememekit.claims.chain import folder_of, result_names, shell_script, steps_of, timing_names, timings_of
from sememekit.claims.claims import is_control, load_claims
from sememekit.config import apply_overrides, load_recipe
from sememekit.errors import ConfigError
from sememekit.jobs.reproduce import differing
from sememekit.runs.plan import read_plan

CLAIMS = load_claims()

FILE = """
paper = "P"
tiny = ["schedule.epochs=1"]
[data.text]
about = "a text"
files = { "train.txt" = "corpus/train.txt", "test.txt" = "corpus/test.txt" }
lines = { "train.txt" = 100 }
prepare = "preprocess plain {text} --out {data}"
graph = "build-sememe-graph --source open --data {data} --out {graph}"
[arm.one]
data = "text"
recipe = "ours/ptb-lstm"
[arm.two]
data = "text"
recipe = "ours/ptb-lstm"
set = ["encoder.injection=cell"]
graph = true
[claim.better]
statement = "two is better"
source = "Table 1"
small = ["one", "two"]
about = ["graph", "encoder.injection"]
"""


CONTROL = """
[data.text-random]
base = "text"
about = "random labels"
graph = "build-sememe-graph --source random:open --data {data} --out {graph}"
[arm.labels]
base = "two"
data = "text-random"
[claim.meaning]
statement = "sememes are better than labels"
source = "a control"
small = ["labels", "two"]
about = ["graph"]
"""
CONTROL_WITHOUT = f'{CONTROL}without = "on"\n'


def test_every_shipped_claim_names_recipes_that_its_settings_fit() -> None:
    seen = set()
    for file, claim in CLAIMS.values():
        for recipe in claim.paper or ():
            load_recipe(recipe)
        for name in claim.small or ():
            arm = file.arm[name]
            if (arm.recipe, arm.set) not in seen:
                seen.add((arm.recipe, arm.set))
                read_plan(apply_overrides(load_recipe(arm.recipe), (*arm.set, *file.tiny)), arm.recipe)
    assert len(seen) > 20


def test_every_shipped_claim_names_all_in_which_its_models_differ() -> None:
    """Both by the recipes of today; what it names differs, too."""
    found = differing(list(CLAIMS))
    assert {name: [*also] for name, also in found.items()} == {
        name: [*claim.also] for name, (_, claim) in CLAIMS.items() if claim.small
    }
    assert found["sdlm-below-softmax"] == {"decoder.samples": ("0", "1000")}
    assert found["sdlm-exact-below-softmax"] == {}


def test_every_control_is_measured_beside_a_model_without_it() -> None:
    """Random labels, shuffled senses and the like: the third arm reads no annotation, or states the value of none."""
    controls = {name: found for name, found in CLAIMS.items() if is_control(*found)}
    assert len(controls) > 30
    marks = ("random:", "shuffled:", "single:", "bare:", "--drop-edges 1 ")
    for name, (file, claim) in CLAIMS.items():
        if claim.small is None or claim.better == "equal":
            continue
        baseline, other = (
            [arm.evaluate, file.data[arm.data].graph * arm.graph] for arm in map(file.arm.__getitem__, claim.small)
        )
        if any(mark in str(baseline) and mark not in str(other) for mark in marks):
            assert name in controls
    for name, (file, claim) in controls.items():
        third = file.arm[claim.without]
        plan = read_plan(apply_overrides(load_recipe(third.recipe), third.set), third.recipe).table()
        reads = plan.get("decoder", {}).get("name") == "sdlm" or plan["encoder"].get("injection", "none") != "none"
        extended = "extend" in str(third.evaluate)
        assert claim.without_value or ("bare:" in str(third.evaluate) if extended else not reads), name


def test_a_published_direction_is_that_of_the_claim() -> None:
    for name, (_, claim) in CLAIMS.items():
        if claim.published and claim.better != "equal":
            baseline, other = claim.published
            assert (other < baseline) == (claim.better == "lower"), name


def test_values_of_claims_are_those_of_their_recipes() -> None:
    """A claim and the recipe that it names for a row state the same number."""
    for name, (_, claim) in CLAIMS.items():
        if claim.published and claim.paper and claim.metric in {"test perplexity", "accuracy", "ROUGE-1"}:
            for printed, recipe in zip(claim.published, claim.paper, strict=True):
                stated = load_recipe(recipe).get("claim", {}).get("value")
                assert stated in {None, printed}, (name, recipe)


def test_every_claim_says_how_it_is_tried_or_why_not() -> None:
    assert len(CLAIMS) > 40
    assert sum(claim.small is not None for _, claim in CLAIMS.values()) > 30
    assert all(claim.small or claim.why_not for _, claim in CLAIMS.values())


def write(tmp_path: Path, text: str) -> dict[str, object]:
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    return dict(load_claims(tmp_path))


def test_steps_are_commands_that_share_what_they_can(tmp_path: Path) -> None:
    write(tmp_path, FILE)
    file, claim = load_claims(tmp_path)["better"]
    trials = steps_of(file, claim, Path("out"), Path("/corpora"), seeds=2)
    assert [(trial.arm, trial.seed) for trial in trials] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
    assert [step.kind for step in trials[0].steps] == ["copy", "prepare", "train", "evaluate"]
    assert [step.kind for step in trials[1].steps] == ["copy", "prepare", "graph", "train", "evaluate"]
    assert trials[0].steps[1] == trials[1].steps[1]  # one data folder for both
    assert "--seed" in trials[2].steps[2].words
    assert "/corpora" not in "\n".join(trials[0].shown)
    assert "cat CORPORA/corpus/test.txt > " in trials[0].shown[0]
    script = shell_script(trials)
    assert script.count("preprocess plain") == 1
    assert "head -n 100 /corpora/corpus/train.txt > " in script
    assert "cat /corpora/corpus/test.txt > " in script


def test_the_script_ends_with_the_turns_in_which_updates_are_timed(tmp_path: Path) -> None:
    write(tmp_path, FILE)
    file, claim = load_claims(tmp_path)["better"]
    trials, (timing,) = (
        steps_of(file, claim, Path("out"), Path("/c"), seeds=1),
        timings_of(file, claim, Path("out"), Path("/c")),
    )
    before, turns = shell_script(trials, [timing]).split("for turn in 1 2 3; do\n")
    assert before.startswith(shell_script(trials))
    first, second, done = turns.splitlines()
    assert (first.count("schedule.epochs=1"), second.count("schedule.epochs=1"), done) == (1, 1, "done")
    assert first.endswith(f" --out out/{timing.name}/one-$turn")
    assert second.endswith(f" --out out/{timing.name}/two-$turn")


def test_vectors_and_a_folder_to_write_are_put_in(tmp_path: Path) -> None:
    changed = FILE.replace(
        "graph = true\n", 'graph = true\nvectors = "glove/v.txt"\nevaluate = "attack {run} --out {out}"\n', 1
    )
    assert changed != FILE
    found = {}
    for text in (FILE, changed):
        write(tmp_path, text)
        found[text] = steps_of(*load_claims(tmp_path)["better"], Path("out"), Path("/corpora"), seeds=1)
    (one, two), (one_before, two_before) = found[changed], found[FILE]
    assert (one.name, one.steps) == (one_before.name, one_before.steps)
    assert two.name != two_before.name
    words = two.steps[-2].words
    assert words[words.index("--vectors") + 1] == "/corpora/glove/v.txt"
    loose = ("--constraints", "loose")  # stored results were made with what this preset has
    assert two.steps[-1].words == ("attack", str(two.run), "--out", f"out/runs/{two.name}.out", *loose, "--json")
    assert folder_of(two.steps[-1].made) == Path(f"out/runs/{two.name}.out")


def test_an_arm_without_vectors_is_called_as_before_arms_had_any() -> None:
    """Stored results would not be counted otherwise."""
    file, claim = load_claims()["sdlm-hownet-below-random"]
    names = ["sdlm-random-small-1-ce647a38.json", "sdlm-small-1-ba69f6ea.json", "softmax-small-1-e51cf027.json"]
    assert result_names(file, claim, seeds=1) == names, "the last is of the model without the control"


def test_a_claim_whose_updates_cost_more_after_a_cut_has_a_second_timing(tmp_path: Path) -> None:
    further = '[arm.slow]\ndata = "text"\nrecipe = "ours/ptb-lstm"\nset = ["encoder.hidden_size=9"]\n'
    write(tmp_path, FILE + 'after_cut = "slow"\n' + further)
    timings = timings_of(*load_claims(tmp_path)["better"], Path("out"), Path("/c"))
    assert [timing.arms for timing in timings] == [("one", "two"), ("one", "slow")]
    assert [timing.result.name for timing in timings] == timing_names(*load_claims(tmp_path)["better"])
    write(tmp_path, FILE + 'after_cut = "one"\n')
    assert [timing.arms for timing in timings_of(*load_claims(tmp_path)["better"], Path("out"), Path("/c"))] == [("one", "two")]
    with pytest.raises(ConfigError, match=r"after_cut = 'onr' is no arm.*'one'"):
        write(tmp_path, FILE + 'after_cut = "onr"\n')


def test_an_entry_has_the_keys_of_its_base_unless_it_has_its_own(tmp_path: Path) -> None:
    further = """
[data.other]
base = "text"
about = "the same text with another graph"
graph = "build-sememe-graph --source other --data {data} --out {graph}"
[arm.three]
base = "two"
data = "other"
[arm.four]
base = "three"
set = []
[claim.best]
statement = "four is better"
source = "Table 2"
small = ["three", "four"]
about = ["encoder.injection"]
"""
    file, _ = write(tmp_path, FILE + further)["best"]
    text, other = file.data["text"], file.data["other"]
    assert (other.files, other.lines, other.prepare) == (text.files, text.lines, text.prepare)
    assert (other.about, "--source other" in other.graph) == ("the same text with another graph", True)
    two, three, four = (file.arm[name] for name in ("two", "three", "four"))
    assert three == two.model_copy(update={"data": "other"})
    assert four == three.model_copy(update={"set": ()})


def test_a_base_is_an_entry_and_no_circle(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[arm\.two\]: no base 'on' \(did you mean 'one'\?\)"):
        write(tmp_path, FILE.replace("graph = true", 'graph = true\nbase = "on"'))
    with pytest.raises(ConfigError, match=r"bases form a circle: two -> two"):
        write(tmp_path, FILE.replace("graph = true", 'graph = true\nbase = "two"'))


def test_an_arm_is_trained_on_the_attacks_on_the_arm_without_them(tmp_path: Path) -> None:
    further = """
[arm.hardened]
data = "text"
recipe = "ours/ptb-lstm"
augment = "attack {run} --data {text}/train.txt --out {out}"
[claim.harder]
statement = "hardened is better"
source = "Table 4"
small = ["one", "hardened"]
about = ["augment"]
"""
    write(tmp_path, FILE + further)
    file, claim = load_claims(tmp_path)["harder"]
    one, hardened = steps_of(file, claim, Path("out"), Path("/corpora"), seeds=1)
    assert [step.kind for step in hardened.steps] == ["copy", "prepare", "train", "evaluate", "train", "evaluate"]
    first, attack, train = hardened.steps[2:5]
    assert first == one.steps[-2]
    assert attack.words == (
        "attack",
        str(one.run),
        "--data",
        hardened.steps[0].words[1],
        "--out",
        str(folder_of(attack.made)),
        "--constraints",
        "loose",
        "--json",
    )
    assert train.words[train.words.index("--augment") + 1] == str(folder_of(attack.made) / "examples.jsonl")
    assert hardened.run != one.run
    (timing,) = timings_of(file, claim, Path("out"), Path("/corpora"))
    assert attack in timing.steps
    assert ["--augment" in words for words in timing.trains] == [False, True]
    with pytest.raises(ConfigError, match=r"\[arm.hardened\]: it has a key 'augment', and no arm is trained as it is without"):
        write(tmp_path, FILE + further.replace("ptb-lstm", "ptb-lstm-cell"))


def test_a_claim_on_one_model_is_run_once_and_not_timed(tmp_path: Path) -> None:
    write(tmp_path, FILE.replace('small = ["one", "two"]', 'small = ["two", "two"]\nbaseline_value = "words.f1"'))
    file, claim = load_claims(tmp_path)["better"]
    assert len({trial.name for trial in steps_of(file, claim, Path("out"), Path("/c"))}) == claim.seeds
    assert timings_of(file, claim, Path("out"), Path("/c")) == []


def test_arms_that_differ_in_how_they_are_measured_are_trained_once(tmp_path: Path) -> None:
    further = """
[arm.again]
data = "text"
recipe = "ours/ptb-lstm"
set = ["encoder.injection=cell"]
graph = true
evaluate = "evaluate-ppl {run} --cache"
[claim.again-better]
statement = "again is better"
source = "Table 2"
small = ["two", "again"]
about = ["evaluate"]
[arm.bare]
data = "text"
recipe = "ours/ptb-lstm"
set = ["encoder.injection=cell"]
[claim.bare-better]
statement = "bare is better"
source = "Table 2"
small = ["two", "bare"]
about = ["graph"]
"""
    write(tmp_path, FILE + further)
    claims = load_claims(tmp_path)
    trials = steps_of(*claims["again-better"], Path("out"), Path("/c"), seeds=1)
    two, again = trials
    assert two.run == again.run
    assert two.run.name == two.name, "the run is called after the first arm, as where there is one arm alone"
    assert two.steps[:-1] == again.steps[:-1]
    assert two.steps[-1].made != again.steps[-1].made
    assert two.result != again.result
    assert again.result.stem == again.name != two.name
    assert shell_script(trials).count("sememekit train") == 1
    bare = steps_of(*claims["bare-better"], Path("out"), Path("/c"), seeds=1)[1]
    assert bare.run != two.run, "without the graph it is another training"
    assert bare.run.name == bare.name


def test_several_commands_come_before_a_measurement(tmp_path: Path) -> None:
    """The outputs lie beside the run; a command that trains continues after a stop as any training does."""
    commands = """evaluate = ["extend {run} --words {data}/held-out.tsv --out {steps}/more",
    "train --data {data} --seed {seed} --out {steps}/full", "extend {run} --against {steps}/more --data {data}"]"""
    write(tmp_path, FILE.replace('set = ["encoder', f'{commands}\nset = ["encoder'))
    file, claim = load_claims(tmp_path)["better"]
    trials = steps_of(file, claim, Path("out"), Path("corpora"))
    trial = next(trial for trial in trials if (trial.arm, trial.seed) == ("two", 2))
    *_, train, more, full, measured = trial.steps
    place = trial.run.with_suffix(".steps")
    assert [step.kind for step in (train, more, full, measured)] == ["train", "extend", "train", "evaluate"]
    assert (more.made, full.made) == (place / "more", place / "full")
    assert more.words[:2] == ("extend", str(trial.run))
    assert "--json" not in more.words
    assert full.words[full.words.index("--seed") + 1] == "2"
    assert measured.words[:4] == ("extend", str(trial.run), "--against", str(place / "more"))
    assert measured.words[-1] == "--json"


def test_tiny_trials_have_places_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, FILE)
    file, claim = load_claims(tmp_path)["better"]
    small, tiny = (steps_of(file, claim, Path("out"), Path("/c"), tiny=each) for each in (False, True))
    assert (len(small), len(tiny)) == (6, 2)
    assert {trial.result for trial in small}.isdisjoint(trial.result for trial in tiny)
    assert {step.made for trial in small for step in trial.steps}.isdisjoint(
        step.made for trial in tiny for step in trial.steps
    )
    assert "schedule.epochs=1" in tiny[0].steps[2].words
    assert tiny[0].steps[0].words[2] == "10"


def test_a_changed_arm_has_another_place(tmp_path: Path) -> None:
    write(tmp_path, FILE)
    file, claim = load_claims(tmp_path)["better"]
    before = steps_of(file, claim, Path("out"), Path("/c"))
    write(tmp_path, FILE.replace("injection=cell", "injection=gate"))
    file, claim = load_claims(tmp_path)["better"]
    after = steps_of(file, claim, Path("out"), Path("/c"))
    assert before[0].result == after[0].result
    assert before[1].result != after[1].result


def test_a_changed_recipe_has_another_place(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[optimizer]\nname = "sgd"\nlearning_rate = 1.0\n', encoding="utf-8")
    (tmp_path / "claims").mkdir()
    write(tmp_path / "claims", FILE.replace("ours/ptb-lstm", str(recipe)))

    def place() -> Path:
        file, claim = load_claims(tmp_path / "claims")["better"]
        return steps_of(file, claim, Path("out"), Path("/c"))[0].result

    before = place()
    recipe.write_text('# a remark\n[optimizer]\nname = "sgd"\nlearning_rate = 1.0\n', encoding="utf-8")
    assert place() == before
    recipe.write_text('[optimizer]\nname = "sgd"\nlearning_rate = 2.0\n', encoding="utf-8")
    assert place() != before


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('data = "text"', 'data = "txt"', r"\[arm\.one\]: no data set 'txt' \(did you mean 'text'\?\)"),
        ('small = ["one", "two"]', 'small = ["one", "too"]', r"\[claim\.better\]: no arm 'too' \(did you mean 'two'\?\)"),
        ('small = ["one", "two"]', "", "no key 'small' and no key 'why_not'; add"),
        ("graph = true", "grph = true", r"unknown key '.*grph'"),
        ('graph = "build', 'gaph = "build', r"unknown key '.*gaph'"),
        ('paper = "P"', "paper = P", "not TOML.*reproduce list"),
        (
            "[claim.better]",
            f"{CONTROL}[claim.better]",
            r"\[claim\.meaning\]: its baseline is a control, and it has no key 'without'; name the arm",
        ),
        ("[claim.better]", f"{CONTROL_WITHOUT}[claim.better]", r"\[claim\.meaning\]: no arm 'on' \(did you mean 'one'\?\)"),
        ('about = ["graph", "encoder.injection"]', "", r"no key 'about'; name the settings that the claim is about"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        write(tmp_path, FILE.replace(old, new, 1))
