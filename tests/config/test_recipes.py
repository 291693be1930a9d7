"""Recipes: bases, rows, key-wise merge, overrides, and messages that name the file, the key and the nearest spelling."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.config import (
    USUAL_VARIANTS,
    apply_overrides,
    choose_variant,
    list_recipes,
    load_recipe,
    merge_tables,
    named_variants,
    recipe_names,
)
from sememekit.config.tables import SLOTS
from sememekit.errors import ConfigError

KEYS = st.text("abcxyz_", min_size=1, max_size=3)
SCALARS = st.one_of(st.integers(-999, 999), st.booleans(), st.text("ab ", max_size=4))
SLOT_TABLES = st.dictionaries(KEYS, st.one_of(SCALARS, st.dictionaries(KEYS, SCALARS, max_size=2)), max_size=3)
TABLES = st.dictionaries(st.sampled_from(SLOTS), SLOT_TABLES, max_size=4)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


BASE = """# The base row.
[data]
path = "data/pd"
[encoder]
name = "lstm"
hidden_size = 650
[decoder]
name = "softmax"
tied = true
"""


def test_a_recipe_merges_key_by_key_over_its_base(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/row", 'base = "paper/base"\n[encoder]\nhidden_size = 200\n[run]\nseed = 3\n')
    assert load_recipe("paper/row", tmp_path) == {
        "data": {"path": "data/pd"},
        "encoder": {"name": "lstm", "hidden_size": 200},
        "decoder": {"name": "softmax", "tied": True},
        "run": {"seed": 3},
    }


def test_what_is_changed_in_a_recipe_reaches_no_later_one(tmp_path: Path) -> None:
    """The file of a recipe is parsed once in a process."""
    path = tmp_path / "mine.toml"
    path.write_text('[task]\nbatch_size = 4\n[run]\ntrack = ["a"]\n[row.other.task]\nbatch_size = 5\n', encoding="utf-8")
    for name, size in ((str(path), 4), (f"{path}:other", 5)):
        changed = load_recipe(name)
        changed["task"]["batch_size"] = 9
        changed["run"]["track"].append("b")
        changed["extra"] = 1
        again = load_recipe(name)
        assert again == {**again, "task": {"batch_size": size}, "run": {"track": ["a"]}}
        assert "extra" not in again


def test_naming_another_variant_replaces_the_table_whole(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/row", 'base = "paper/base"\n[decoder]\nname = "sdlm"\nnum_bases = 5\n')
    assert load_recipe("paper/row", tmp_path)["decoder"] == {"name": "sdlm", "num_bases": 5}
    write(tmp_path, "paper/same", 'base = "paper/base"\n[decoder]\nname = "softmax"\nbias = true\n')
    assert load_recipe("paper/same", tmp_path)["decoder"] == {"name": "softmax", "tied": True, "bias": True}


CLAIM = '[claim]\npaper = "P"\ntable = "1"\nrow = "r"\nmetric = "perplexity"\nvalue = 100.0\ntolerance = 1.0\n'


def test_a_claim_is_not_inherited_by_a_recipe_without_one(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", CLAIM)
    write(tmp_path, "paper/other", 'base = "paper/base"\n[run]\nseed = 1\n')
    write(tmp_path, "paper/row", 'base = "paper/base"\n[claim]\nrow = "s"\nvalue = 90.5\n')
    assert "claim" not in load_recipe("paper/other", tmp_path)
    assert load_recipe("paper/row", tmp_path)["claim"] == {
        **load_recipe("paper/base", tmp_path)["claim"],
        "row": "s",
        "value": 90.5,
    }


def test_a_path_is_a_recipe_too_and_may_build_on_a_shipped_one(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", BASE)
    mine = write(tmp_path / "elsewhere", "mine", 'base = "paper/base"\n[run]\nseed = 9\n')
    assert load_recipe(str(mine), tmp_path)["run"] == {"seed": 9}


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("[decodr]\n", ["row.toml", "'decodr'", "did you mean 'decoder'"]),
        ("encoder = 3\n", ["row.toml", "[encoder]", "given 3"]),
        ("[run\n", ["row.toml", "not TOML", "line 1"]),
        ('base = "paper/bse"\n', ["row.toml", "'base'", "did you mean 'paper/base'"]),
        ("base = 3\n", ["row.toml", "'base'", "given 3"]),
        ('base = "paper/row"\n', ["row.toml", "circle", "paper/row -> paper/row"]),
        ('base = "paper/round"\n', ["row.toml", "circle", "paper/row -> paper/round -> paper/row"]),
        ("row = 3\n", ["row.toml", "[row.NAME]", "given 3"]),
        ("[row]\nsmall = 3\n", ["row.toml", "[row.NAME]", "small = 3"]),
        ('[row."../up"]\n', ["row.toml", "'../up'", "letters"]),
        (CLAIM.replace("value", "valu"), ["row.toml", "[claim]", "'valu'", "did you mean 'value'"]),
        (CLAIM.replace("100.0", "nan"), ["row.toml", "[claim]", "'value'"]),
        (CLAIM.replace("100.0", '"low"'), ["row.toml", "[claim]", "'value'", "'low'"]),
    ],
)
def test_a_wrong_recipe_is_refused_with_file_key_and_hint(tmp_path: Path, text: str, fragments: list[str]) -> None:
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/round", 'base = "paper/row"\n')
    write(tmp_path, "paper/row", text)
    with pytest.raises(ConfigError) as error:
        load_recipe("paper/row", tmp_path)
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)
    assert "\n" not in str(error.value)


TABLE = """# The baseline.
# Two lines about it.
[encoder]
name = "lstm"
hidden_size = 650

# Nobody's comment.

# The large one.
# And why.
[row.large]
encoder.hidden_size = 1500
run.seed = 4

# The large one with another seed.
[row.large-again]
base = "large"

[row.large-again.run]
seed = 5

[row.bare]
base = "paper/base"
"""


def test_a_base_may_have_a_base(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/middle", 'base = "paper/base"\n[encoder]\nhidden_size = 200\n[run]\nseed = 3\n')
    write(tmp_path, "paper/row", 'base = "paper/middle"\n[decoder]\nname = "sdlm"\n[run]\nseed = 4\n')
    assert load_recipe("paper/row", tmp_path) == {
        "data": {"path": "data/pd"},
        "encoder": {"name": "lstm", "hidden_size": 200},
        "decoder": {"name": "sdlm"},
        "run": {"seed": 4},
    }


def test_rows_of_a_file_are_recipes_beside_it(tmp_path: Path) -> None:
    """A row stands on its file's own recipe unless it names another base: a row of the file, or any recipe."""
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/table", TABLE)
    assert recipe_names(tmp_path) == ["paper/bare", "paper/base", "paper/large", "paper/large-again", "paper/table"]
    own = {"encoder": {"name": "lstm", "hidden_size": 650}}
    assert load_recipe("paper/table", tmp_path) == own
    large = {"encoder": {"name": "lstm", "hidden_size": 1500}, "run": {"seed": 4}}
    assert load_recipe("paper/large", tmp_path) == large
    assert load_recipe("paper/large-again", tmp_path) == {**large, "run": {"seed": 5}}
    assert load_recipe("paper/bare", tmp_path) == load_recipe("paper/base", tmp_path)
    mine = write(tmp_path / "elsewhere", "mine", 'base = "paper/large-again"\n[row.b]\n[row.b.run]\nseed = 6\n')
    assert load_recipe(str(mine), tmp_path)["run"] == {"seed": 5}
    assert load_recipe(f"{mine}:b", tmp_path) == {**large, "run": {"seed": 6}}


def test_what_stands_above_a_row_says_what_it_is(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/table", TABLE)
    described = {info.name: (info.row, info.summary) for info in list_recipes(tmp_path)}
    assert described == {
        "paper/bare": ("bare", ""),
        "paper/base": ("", "The base row."),
        "paper/large": ("large", "The large one."),
        "paper/large-again": ("large-again", "The large one with another seed."),
        "paper/table": ("", "The baseline."),
    }


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("paper/larg", ["unknown recipe 'paper/larg'", "did you mean 'paper/large'"]),
        ("paper/table/large", ["unknown recipe"]),
        ("large", ["unknown recipe", "did you mean"]),
        ("paper/one", ["table.toml: [row.one]", "'lage'", "did you mean 'large'"]),
        ("paper/two", ["table.toml: [row.two]", "circle", "paper/two -> paper/three -> paper/two"]),
        ("paper/four", ["table.toml: [row.four]", "unknown table 'encodr'", "did you mean 'encoder'"]),
        ("paper/five", ["two recipes", "table.toml: [row.five]", "other.toml: [row.five]", "rename"]),
        ("{mine}:larg", ["table.toml has no row 'larg'", "did you mean 'large'"]),
        ("{mine}:", ["table.toml has no row ''", "its rows: large"]),
        ("absent.toml:large", ["no recipe file 'absent.toml'"]),
    ],
)
def test_a_wrong_row_is_refused_with_file_row_and_hint(tmp_path: Path, name: str, fragments: list[str]) -> None:
    write(tmp_path, "paper/base", BASE)
    rows = '[row.one]\nbase = "lage"\n[row.two]\nbase = "three"\n[row.three]\nbase = "two"\n[row.four.encodr]\n[row.five]\n'
    mine = write(tmp_path, "paper/table", TABLE + rows)
    write(tmp_path, "paper/other", "[row.five]\n")
    with pytest.raises(ConfigError) as error:
        load_recipe(name.format(mine=mine), tmp_path)
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)
    assert "\n" not in str(error.value)


def test_two_recipes_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "paper/base", BASE)
    write(tmp_path, "paper/table", "[row.base]\nrun.seed = 1\n")
    with pytest.raises(ConfigError, match="two recipes are called 'paper/base'"):
        list_recipes(tmp_path)


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path, "paper/table", TABLE)
    write(tmp_path, "paper/wrong", "[run\n")
    assert recipe_names(tmp_path) == ["paper/bare", "paper/large", "paper/large-again", "paper/table", "paper/wrong"]
    with pytest.raises(ConfigError, match=r"wrong\.toml: not TOML"):
        load_recipe("paper/wrong", tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "paper/row", "")
    path.write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_recipe("paper/row", tmp_path)


def test_unknown_names_offer_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "sdlm/pd-medium", BASE)
    with pytest.raises(ConfigError, match="did you mean 'sdlm/pd-medium'"):
        load_recipe("sdlm/pd-medum", tmp_path)
    with pytest.raises(ConfigError, match="no recipe file"):
        load_recipe("absent.toml", tmp_path)
    with pytest.raises(ConfigError, match="unknown recipe"):
        load_recipe("../sdlm/pd-medium", tmp_path)


@given(TABLES)
def test_merging_with_nothing_changes_nothing(table: dict) -> None:
    assert merge_tables({}, table) == table
    without_claim = {slot: keys for slot, keys in table.items() if slot != "claim"}
    assert merge_tables(table, {}) == without_claim


@given(TABLES, TABLES)
def test_merging_keeps_what_is_on_top_and_leaves_its_arguments_alone(base: dict, over: dict) -> None:
    before = deepcopy((base, over))
    merged = merge_tables(base, over)
    assert (base, over) == before
    assert merge_tables(merged, over) == merged
    for slot, table in over.items():
        for key, value in table.items():
            assert isinstance(value, dict) or merged[slot][key] == value
    assert set(merged) - {"claim"} == (set(base) | set(over)) - {"claim"}


@given(st.integers() | st.booleans() | st.lists(st.integers()) | st.floats(allow_nan=False, allow_infinity=False))
def test_an_override_reads_any_toml_value(value: object) -> None:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    table = apply_overrides({"encoder": {"name": "lstm"}}, [f"encoder.hidden_size={text}"])
    assert table["encoder"] == {"name": "lstm", "hidden_size": value}
    assert type(table["encoder"]["hidden_size"]) is type(value)


@given(st.text())
def test_an_override_never_sets_more_than_its_key(text: str) -> None:
    table = apply_overrides({}, [f"run.label={text}"])
    assert set(table) == {"run"}
    assert set(table["run"]) == {"label"}
    try:
        single = set(tomllib.loads(f"value = {text.strip()}")) == {"value"}
    except tomllib.TOMLDecodeError:
        single = False
    assert single or table["run"]["label"] == text.strip()


def test_overrides_reach_nested_keys_in_order_and_copy() -> None:
    table = {"encoder": {"name": "lstm", "hidden_size": 650}}
    changed = apply_overrides(table, ["encoder.hidden_size=1", "encoder.hidden_size=2", "data.path=a/b=c", "run.a.b='x'"])
    assert changed == {"encoder": {"name": "lstm", "hidden_size": 2}, "data": {"path": "a/b=c"}, "run": {"a": {"b": "x"}}}
    assert table == {"encoder": {"name": "lstm", "hidden_size": 650}}
    assert apply_overrides(table, ["encoder.name=gru", "encoder.dropout=0.1"])["encoder"] == {"name": "gru", "dropout": 0.1}


@pytest.mark.parametrize(
    ("override", "fragments"),
    [
        ("decodr.tied=true", ["decodr", "did you mean 'decoder'", "allowed"]),
        ("claim.value=1", ["claim", "allowed"]),
        ("decoder", ["slot.key=value"]),
        ("decoder=3", ["slot.key=value"]),
        ("decoder..tied=3", ["slot.key=value"]),
        ("encoder.name.x=3", ["'encoder.name'", "'lstm'", "not a table"]),
    ],
)
def test_a_wrong_override_says_what_is_allowed(override: str, fragments: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        apply_overrides({"encoder": {"name": "lstm"}}, [override])
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)


@given(st.sampled_from(list(USUAL_VARIANTS)), SLOT_TABLES, st.text("abc", min_size=1))
def test_choosing_a_variant_keeps_the_keys_only_of_the_same_one(slot: str, keys: dict, name: str) -> None:
    assert choose_variant({slot: {**keys, "name": name}}, slot, name) == {slot: {**keys, "name": name}}
    assert choose_variant({slot: {**keys, "name": name + "x"}}, slot, name) == {slot: {"name": name}}
    with pytest.raises(ConfigError, match="does not choose"):
        choose_variant({}, "data", name)


OVERRIDES = (
    "optimizer.learning_rate=0.001",
    "optimizer.name=adam",
    "encoder.hidden_size=77",
    "encoder.name=lstm",
    "decoder.num_bases=3",
    "decoder.name=sdlm",
    "task.vectors=v.txt",
    "task.name=nli",
    "constraints.share={most = 0.5}",
    "constraints.share.least=2",
    "candidates.name=table",
    "candidates.path=x.json",
)


@given(
    st.permutations(OVERRIDES),
    st.sampled_from([{}, {"encoder": {"dropout": 0.5}}, {"optimizer": {"name": "sgd", "clip": 1.0}}]),
)
def test_the_order_of_overrides_changes_nothing_and_none_is_dropped(order: list[str], below: dict) -> None:
    table = apply_overrides(below, order)
    assert table == apply_overrides(below, OVERRIDES)
    assert table["optimizer"] == {"name": "adam", "learning_rate": 0.001}
    assert table["encoder"] == {**below.get("encoder", {}), "name": "lstm", "hidden_size": 77}
    assert table["decoder"] == {"name": "sdlm", "num_bases": 3}
    assert table["task"] == {"name": "nli", "vectors": "v.txt"}
    assert table["constraints"] == {"share": {"most": 0.5, "least": 2}}
    assert table["candidates"] == {"name": "table", "path": "x.json"}


def test_the_last_of_several_values_of_one_key_holds() -> None:
    assert apply_overrides({}, ["encoder.name=gru", "encoder.hidden_size=3", "encoder.name=lstm"])["encoder"] == {
        "name": "lstm",
        "hidden_size": 3,
    }
    assert named_variants(["encoder.name=gru", "run.seed=1", "encoder.name=lstm", "optimizer.name=3"]) == {"encoder": "lstm"}


@pytest.mark.parametrize("slot", USUAL_VARIANTS)
def test_naming_the_usual_variant_keeps_the_keys_below(slot: str) -> None:
    name = USUAL_VARIANTS[slot]
    assert merge_tables({slot: {"x": 1}}, {slot: {"name": name}})[slot] == {"name": name, "x": 1}
    assert choose_variant({slot: {"x": 1}}, slot, name)[slot] == {"name": name, "x": 1}
    assert merge_tables({slot: {"x": 1}}, {slot: {"name": "other"}})[slot] == {"name": "other"}


def test_a_recipe_that_is_nested_too_deeply_is_no_bug(tmp_path: Path) -> None:
    path = write(tmp_path, "deep", "[run]\nseed = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(ConfigError, match=r"deep\.toml: values are nested too deeply"):
        load_recipe(str(path))


def test_every_shipped_recipe_is_found_and_reads() -> None:
    names = recipe_names()
    assert names, "no recipe is shipped"
    assert [info.name for info in list_recipes()] == names
    assert all(info.summary for info in list_recipes()), "the first comment line of a recipe says what it is"


def test_a_cost_belongs_to_one_recipe_and_reaches_no_training(tmp_path: Path) -> None:
    costs = "cost = { epochs = 1, cpu_hours = 1200.0, gpu_hours = 0.01 }\n"
    write(tmp_path, "paper/base", f"# Base.\n{costs}[encoder]\nhidden_size = 8\n# A row.\n[row.other]\nrun.seed = 2\n")
    base, row = list_recipes(tmp_path)
    assert str(base.cost) == "1 epoch: 1,200 h CPU, 1 min GPU"
    assert row.cost is None, "a row has other sizes"
    assert load_recipe("paper/other", tmp_path) == {"encoder": {"hidden_size": 8}, "run": {"seed": 2}}
    for wrong in ("cpu_hours = 0.0", "hours = 2.0", "epochs = 2"):
        write(tmp_path, "paper/base", f"# Base.\ncost = {{ {wrong} }}\n")
        with pytest.raises(ConfigError, match="cost"):
            load_recipe("paper/base", tmp_path)
