"""Documents, candidates, constraints, goals and files of examples."""

from __future__ import annotations

import hashlib
import json
import lzma
from inspect import isabstract
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sememekit.attack import (
    AttackResources,
    Document,
    build_constraints,
    read_attack_plan,
)
from sememekit.attack.candidates import CANDIDATES, Candidates, squared_distances
from sememekit.attack.constraints import CONSTRAINTS, Constraint
from sememekit.attack.constraints.pairs import read_lists
from sememekit.attack.resources import named_apart
from sememekit.attack.searches import SEARCHES, Search
from sememekit.attack.space import Space
from sememekit.config import load_variant
from sememekit.errors import ConfigError, DataError
from sememekit.runs.attacks.running import frequent_words
from tests.attack.toys import RESOURCES, TABLE


def plan_of(**tables: Any) -> Any:
    bare = {"candidates": {"name": "table", "path": "x"}, "attack": {"constraints": "none"}}
    return read_attack_plan({**bare, **tables}, "a test")


@given(st.lists(st.text(max_size=20), min_size=1, max_size=3))
def test_a_document_gives_its_text_back(fields: list[str]) -> None:
    document = Document.read(tuple(fields))
    same = {number: word.text for number, word in enumerate(document.words)}
    assert document.replace(same) == document.replace({}) == tuple(fields)
    assert all(fields[word.field][word.begin : word.end] == word.text for word in document.words)


def test_words_and_marks() -> None:
    words = [word.text for word in Document.read(("It's a well-made film , wo n't 's <unk> ( 好 电影 ) !",)).words]
    assert words == ["It's", "a", "well-made", "film", ",", "wo", "n't", "'s", "<unk>", "(", "好", "电影", ")", "!"]


def test_replacement_in_raw_text_keeps_case_and_marks() -> None:
    document = Document.read(("Good GOOD good-ish, a good film.", "Very bad?"))
    space = Space.open(document, TABLE)
    assert [document.words[number].text for number in space.positions] == ["Good", "GOOD", "good", "film", "Very", "bad"]
    row = np.array([1, 2, 3, 1, 1, 3], dtype=np.int16)
    assert space.text(row) == ("Fine NICE good-ish, a okay movie.", "Quite dull?")


@pytest.mark.parametrize(("base", "table"), [(Candidates, CANDIDATES), (Constraint, CONSTRAINTS), (Search, SEARCHES)])
def test_the_tables_name_what_is_there(base: type, table: dict[str, str]) -> None:
    named = {load_variant("part", name, table) for name in table}

    def below(kind: type) -> set[type]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    ours = {kind for kind in below(base) if kind.__module__.startswith("sememekit.attack.")}
    assert {kind for kind in ours if not isabstract(kind)} == named


def test_files_of_one_name_keep_their_hashes(tmp_path: Path) -> None:
    """Equal names are numbered within a constraint and across constraints; the last keeps the name."""
    places = [tmp_path / name / "x.txt" for name in ("a", "b", "c")]
    for number, path in enumerate(places):
        path.parent.mkdir()
        path.write_text(f"good bad{number}\n", encoding="utf-8")
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in places]
    pairs, hashes = read_lists(map(str, places[:2]), "opposites")
    assert pairs == {frozenset(("good", "bad0")), frozenset(("good", "bad1"))}
    assert hashes == {"x.txt": digests[1], "x.txt (2)": digests[0]}
    assert named_apart([*hashes.items(), ("x.txt", digests[2]), ("y.txt", "")]) == {
        "y.txt": "",
        "x.txt": digests[2],
        "x.txt (2)": digests[0],
        "x.txt (3)": digests[1],
    }


def test_neighbours_are_by_squared_distance(tmp_path: Path) -> None:
    vectors = {"a": (0.0, 1.0), "b": (0.0, 1.6), "c": (0.5, 1.0), "d": (0.0, 0.35), "zero": (0.0, 0.0), "nought": (0.0, 0.0)}
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{word} {x} {y}\n" for word, (x, y) in vectors.items()), encoding="utf-8")

    def table(known: frozenset[str] | None = None, **settings: Any) -> dict[str, tuple[str, ...]]:
        plan = plan_of(candidates={"name": "embedding", "path": str(path), "delta": 0.5, **settings})
        candidates = plan.candidates.build(AttackResources(known, (), ("text",)))
        found = candidates.table([*vectors, "absent"])
        assert len(candidates.hashes["v.txt"]) == 64
        return {word: others for word, others in found.items() if others}

    # |a - b|^2 = 0.36 and |a - d|^2 = 0.4225 are below 0.5, though |a - d| = 0.65 is not; c is nearest to a.
    assert table() == {"a": ("c", "b", "d"), "b": ("a",), "c": ("a",), "d": ("a",)}
    assert table(most=1) == {"a": ("c",), "b": ("a",), "c": ("a",), "d": ("a",)}
    assert table(frozenset({"a", "b"})) == {"a": ("b",), "b": ("a",), "c": ("a",), "d": ("a",)}
    assert table(normalise=True)["a"] == ("b", "d", "c")


def test_distances_equal_the_plain_ones() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(7, 5)), generator.normal(size=(9, 5))
    plain = np.array([[sum((a - b) ** 2) for b in second] for a in first])
    np.testing.assert_allclose(squared_distances(first, second), plain, atol=1e-12)
    assert (squared_distances(first, first) >= 0).all()


@pytest.mark.filterwarnings("ignore:.* 'empty' has no sememes here, so graphs:sememekit.files.RunWarning")
def test_sememe_candidates(tmp_path: Path) -> None:
    (tmp_path / "lexicon.tsv").write_text(
        "word\tpos\tsememes\nwalk\tv\tgo foot\nrun\tv\tfoot go\nstroll\tn\tgo foot\nfly\tv\tgo\nhike\t\tgo foot\n"
        "big\ta\tlarge\nhuge\ta\tlarge\nempty\tn\t\nvoid\tn\t\n",
        encoding="utf-8",
    )
    (tmp_path / "lemmas.txt").write_text(
        "walk\twalked\nwalk\twalks\nrun\tran\nhike\thiked\nbig\tbigger\nhuge\thuger\n", encoding="utf-8"
    )
    settings = {"name": "sememe", "sources": [f"table:{tmp_path}/lexicon.tsv"], "lemmas": str(tmp_path / "lemmas.txt")}
    found = (
        plan_of(candidates=settings)
        .candidates.build(RESOURCES)
        .table(["walk", "walked", "walks", "big", "bigger", "stroll", "hike", "empty", "absent", "ran"])
    )
    assert found == {
        "walk": ("hike", "run"),
        "walked": ("hiked",),
        "walks": (),
        "big": ("huge",),
        "bigger": ("huger",),
        "stroll": ("hike",),
        "hike": ("run", "stroll", "walk"),
        "empty": (),
        "absent": (),
        "ran": (),
    }
    limited = plan_of(candidates={**settings, "most": 1}).candidates.build(AttackResources(frozenset({"run"}), (), ("text",)))
    assert limited.table(["walk", "big"]) == {"walk": ("run",), "big": ()}


def test_a_sense_that_a_lexicon_has_twice_counts_once(tmp_path: Path) -> None:
    pairs = ("bank money", "bank water", "bank land", "shore water", "shore land", "fund money")
    senses = "word\tpos\tsememes\n" + "".join(pair.replace(" ", "\tn\t") + "\n" for pair in pairs)
    for number, more in enumerate(("", "bank\tn\tmoney\n" * 2)):
        (tmp_path / f"{number}.tsv").write_text(senses + more, encoding="utf-8")
        settings = {"name": "sememe", "sources": [f"table:{tmp_path}/{number}.tsv"]}
        found = plan_of(candidates=settings).candidates.build(RESOURCES).table(["bank"])
        assert found == {"bank": ("shore", "fund")}, "shore shares two senses, fund one"


def test_a_list_of_lemmas_of_another_form_is_refused_and_wordnet_is_one(tmp_path: Path) -> None:
    lexicon = tmp_path / "lexicon.tsv"
    lexicon.write_text("word\tpos\tsememes\ndog\tn\tx y\nanimal\tn\ty x\nfilm\tn\tz\n", encoding="utf-8")
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("1\tdog\tn\t\t狗\tn\t\tDEF={x}\n", encoding="utf-8")
    settings = {"name": "sememe", "sources": [f"table:{lexicon}"]}
    with pytest.raises(DataError, match=r"wrong\.tsv:1: a list of lemmas has lemma TAB form, found '1\\tdog"):
        plan_of(candidates={**settings, "lemmas": str(wrong)}).candidates.build(RESOURCES).table(["dogs"])
    constraint = {"part_of_speech": {"sources": settings["sources"], "lemmas": str(wrong)}}
    with pytest.raises(DataError, match=r"wrong\.tsv:1: a list of lemmas"):
        build_constraints(plan_of(constraints=constraint), RESOURCES)
    folder = tmp_path / "wordnet"
    folder.mkdir()
    (folder / "data.noun").write_text("", encoding="utf-8")
    for kind in ("noun", "verb", "adj", "adv"):
        lines = "animal n 1 0 1 1 00000020\ndog n 1 0 1 1 00000010\nfilm n 1 0 1 1 00000030\n" if kind == "noun" else ""
        (folder / f"index.{kind}").write_text("  1 licence\n" + lines, encoding="utf-8")
        (folder / f"{kind}.exc").write_text("", encoding="utf-8")
    settings["lemmas"] = f"wordnet:{folder}"
    for words, known in ((["dogs", "animals"], RESOURCES), (["dogs"], AttackResources(None, ("animals", "dogs"), ("text",)))):
        candidates = plan_of(candidates=settings).candidates.build(known)
        assert candidates.table(words)["dogs"] == ("animals",), "a form among the texts, or the words of the victim"
        assert candidates.hashes.keys() == {"table:lexicon.tsv", "wordnet:wordnet"}
    assert plan_of(candidates=settings).candidates.build(RESOURCES).table(["dogs"]) == {"dogs": ()}, "no form of 'animal'"
    constraint = {"part_of_speech": {"sources": settings["sources"], "lemmas": f"wordnet:{folder}"}}
    (kept,) = build_constraints(plan_of(constraints=constraint), RESOURCES)
    lexicon.write_text("word\tpos\tsememes\ndog\tn\tx\nanimal\tv\tx\nfilm\tn\tz\n", encoding="utf-8")
    (other,) = build_constraints(plan_of(constraints=constraint), AttackResources(None, (), ("text",)))
    space = Space.open(Document.read(("dogs",)), {"dogs": ("animals", "films")})
    found = [constraint.narrow(space).substitutes[0] for constraint in (kept, other)]
    assert found == [("animals", "films"), ("films",)]


def test_a_table_of_candidates(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"a": {"noun": ["b", "a b", "a"], "verb": ["c", "b"]}, "d": ["e"]}), encoding="utf-8")
    candidates = plan_of(candidates={"name": "table", "path": str(path)}).candidates.build(RESOURCES)
    assert candidates.table(["a", "d", "x"]) == {"a": ("b", "c"), "d": ("e",)}
    for content, problem in (("[]", "is an object"), ("{", "not JSON"), ('{"a": 1}', "must be a list")):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(DataError, match=problem):
            candidates.table(["a"])


def narrowed(text: tuple[str, ...], resources: AttackResources = RESOURCES, **constraints: Any) -> Space:
    space = Space.open(Document.read(text), TABLE)
    for constraint in build_constraints(plan_of(constraints=constraints), resources):
        space = constraint.narrow(space)
    return space


def changeable(space: Space) -> list[str]:
    return [space.document.words[number].text for number in space.positions]


def test_the_most_frequent_words_of_a_cased_victim_are_never_touched() -> None:
    frequent = frequent_words((".", "I", "the", "The", "dog"))
    assert frequent == ("i", "the", "dog")
    resources = AttackResources(None, frequent, ("text",))
    kept = changeable(narrowed(("I saw the good dog",), resources, frequent_words={"count": 2}))
    assert not {"I", "the"} & set(kept)


def test_constraints_narrow_the_space() -> None:
    text = ("the film was very good", "a bad film in the end")
    pair = AttackResources(None, ("the", "film"), ("premise", "hypothesis"))
    space = narrowed(text, pair, positions={"fields": ["hypothesis"]}, share={"most": 0.4})
    assert (changeable(space), space.num_words, space.max_changes) == (["bad", "film", "end"], 6, 2)
    assert changeable(narrowed(text, pair, frequent_words={"count": 2})) == ["very", "good", "bad", "end"]
    assert changeable(narrowed(text, pair, stop_words={})) == ["film", "good", "bad", "film", "end"]
    assert narrowed(text, pair, positions={"fields": ["premise"]}, minimum_length={"words": 6}).refusal == "fewer than 6 words"
    assert narrowed(text, pair, minimum_length={"words": 2, "at_most": 5}).refusal == "more than 5 words"
    assert narrowed(text, pair, share={"most": 0.01, "at_least": 1}).max_changes == 1
    for fields, problem in ((["premise", "text"], "no field is called 'text'"), ([], "no field is named")):
        with pytest.raises(ConfigError, match=f"{problem}; these data have premise, hypothesis"):
            narrowed(text, pair, positions={"fields": fields})


def test_the_language_model_keeps_the_likeliest() -> None:
    asked: list[list[str]] = []

    def nats(sentences: Any) -> list[list[float]]:
        asked.extend([list(sentence) for sentence in sentences])
        return [[float(len(word)) for word in sentence] for sentence in sentences]

    resources = AttackResources(None, (), ("text",), nats)
    space = narrowed(("a good bad film",), resources, language_model={"keep": 2})
    assert space.substitutes == ((), ("fine", "nice"), ("poor", "weak"), ("movie", "picture"))
    assert ["a", "okay", "bad", "film"] in asked
    assert ["a", "good", "bad", "movie"] not in asked, "two substitutes are no crowd"
    with pytest.raises(ConfigError, match="--lm RUN"):
        narrowed(("good",), language_model={"keep": 1})


def test_goals() -> None:
    labels = ("contradiction", "neutral", "entailment")
    targets = {"entailment": ["contradiction"], "contradiction": ["entailment"], "neutral": ["entailment", "contradiction"]}
    goal = plan_of(goal={"name": "targeted", "targets": targets}).goal.build(labels)
    generator = np.random.default_rng(0)
    assert goal.aim(2, generator).target == 0
    assert goal.aim(0, generator).target == 2
    assert {goal.aim(1, generator).target for _ in range(20)} == {0, 2}
    chance = plan_of(goal={"name": "targeted"}).goal.build(labels)
    assert {chance.aim(1, generator).target for _ in range(20)} == {0, 2}, "without targets, any label but its own"
    aim = goal.aim(2, generator)
    probabilities = np.array([[0.3, 0.4, 0.3], [0.5, 0.2, 0.3]])
    np.testing.assert_array_equal(aim.scores(probabilities), [0.3, 0.5])
    np.testing.assert_array_equal(aim.reached(probabilities), [False, True])
    free = plan_of(goal={"name": "untargeted"}).goal.build(labels).aim(2, generator)
    np.testing.assert_allclose(free.scores(probabilities), [0.7, 0.7])
    np.testing.assert_array_equal(free.reached(probabilities), [True, True])
    with pytest.raises(ConfigError, match="no label 'entail'"):
        plan_of(goal={"name": "targeted", "targets": {"entail": ["neutral"]}}).goal.build(labels)


def test_plans_survive_their_table_and_refuse_strangers() -> None:
    plan = plan_of(constraints={"share": {"most": 0.2}, "positions": {"fields": ["text"]}}, search={"name": "beam", "width": 2})
    assert read_attack_plan(plan.table(), "again") == plan
    assert [part.name for part in plan.constraints] == ["positions", "share"], "the order of the table decides"
    for table, problem in (
        ({"searches": {}}, r"an attack has no table \[searches\]"),
        ({"search": {"name": "genetics"}}, "did you mean 'genetic'"),
        ({"search": {"name": "beam", "widht": 1}}, "unknown key 'widht'"),
        ({"constraints": {"share": 0.2}}, "holds tables"),
        ({"constraints": {"shares": {}}}, "did you mean 'share'"),
    ):
        with pytest.raises(ConfigError, match=problem):
            plan_of(**table)


def test_vectors_that_are_cut_off_end_before_the_attack(tmp_path: Path) -> None:
    packed = lzma.compress(b"".join(b"w%d 1 2 3\n" % number for number in range(9000)))
    (tmp_path / "v.xz").write_bytes(packed[:200])
    plan = plan_of(candidates={"name": "embedding", "path": str(tmp_path / "v.xz")})
    with pytest.raises(DataError, match="not an intact xz"):
        plan.candidates.build(RESOURCES).table(["good"])
