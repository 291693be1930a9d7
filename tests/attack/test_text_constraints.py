"""Constraints that look at whole texts, and parts of speech out of a lexicon."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememekit.attack import AttackResources, Document, build_constraints, read_attack_plan
from sememekit.attack.constraints import Constraint
from sememekit.attack.space import Rows, Space
from sememekit.errors import ConfigError
from tests.attack.toys import EXAMPLES, RESOURCES, TABLE, Counting, make_attack

PLAIN = {"candidates": {"name": "table", "path": "x"}, "attack": {"constraints": "none"}}
VECTORS = "film 1 0\nmovie 1 0.1\npicture 0.6 0.8\ngood 0 1\nfine 0.1 1\nnice -2 0.2\nquite 1 1\nvery 1 1\n"
WORDS = frozenset(TABLE) | {other for found in TABLE.values() for other in found} | {"Good", "the"}


def parts(resources: AttackResources = RESOURCES, **constraints: Any) -> list[Constraint]:
    return build_constraints(read_attack_plan({**PLAIN, "constraints": constraints}, "a test"), resources)


def left(space: Space, constraint: Constraint) -> dict[str, tuple[str, ...]]:
    space = constraint.narrow(space)
    return {space.document.words[number].text: space.substitutes[number] for number in space.positions}


def test_similarity_is_the_cosine_of_the_sums_of_word_vectors(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(VECTORS, encoding="utf-8")
    known = replace(RESOURCES, words=WORDS)
    space = Space.open(Document.read(("the film , Good film",)), TABLE)
    before = np.array([2.0, 1.0])

    def cosine(film: tuple[float, float], good: tuple[float, float], last: tuple[float, float]) -> float:
        after = np.sum([film, good, last], axis=0)
        return float(before @ after / np.linalg.norm(before) / np.linalg.norm(after))

    one, both = cosine((0.6, 0.8), (0, 1), (1, 0)), cosine((0.6, 0.8), (0, 1), (0.6, 0.8))
    assert both < one
    for least, films in ((one - 1e-6, ("movie", "picture")), (one + 1e-6, ("movie",))):
        (constraint,) = parts(known, similarity={"path": str(tmp_path / "v.txt"), "least": least})
        assert left(space, constraint) == {"film": films, "Good": ("Fine",)}, "nice is far; okay has no vector"
    (constraint,) = parts(known, similarity={"path": str(tmp_path / "v.txt"), "least": (one + both) / 2})
    narrow = constraint.narrow(space)
    check = constraint.check(narrow)
    assert check is not None
    rows = np.array([[0, 0, 0], [2, 0, 0], [0, 0, 2], [2, 0, 2], [1, 1, 1]], dtype=np.int16)
    assert check(rows).tolist() == [True, True, True, False, True], "picture alone passes, twice it does not"
    for each, films in ((0.5, ("movie", "picture")), (0.7, ("movie",)), (-1.0, ("movie", "picture"))):
        (constraint,) = parts(known, similarity={"path": str(tmp_path / "v.txt"), "least": 0.1, "each": each})
        assert left(space, constraint)["film"] == films, "the cosine of film and picture is 0.6"
        lost = Space.open(Document.read(("good unheard",)), {"unheard": ("fine",)})
        assert left(lost, constraint) == ({"unheard": ("fine",)} if each == -1.0 else {}), "how near fine is nobody knows"
    (constraint,) = parts(known, similarity={"path": str(tmp_path / "v.txt"), "least": (one + both) / 2})
    assert constraint.hashes.keys() == {"v.txt"}
    assert constraint.told.startswith("similarity: cosine of the text before and after at least 0.85")
    for text in ("unheard , unseen", "unheard"):
        lost = Space.open(Document.read((text,)), {"unheard": ("film",)})
        assert left(lost, constraint) == {}, "nothing is known of the text before"
    with pytest.raises(ConfigError, match="--vectors FILE"):
        parts(similarity={})


def test_the_fields_of_a_pair_are_compared_each(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(VECTORS, encoding="utf-8")
    (constraint,) = parts(replace(RESOURCES, words=WORDS), similarity={"path": str(tmp_path / "v.txt"), "least": 0.99})
    space = Space.open(Document.read(("very very very very very", "good film")), {"film": ("movie", "picture")})
    assert left(space, constraint) == {"film": ("movie",)}, "the long premise hides nothing"


def test_the_vectors_of_embedding_candidates_are_those_of_similarity() -> None:
    table = {"candidates": {"name": "embedding", "path": "v.txt"}, "constraints": {"similarity": {"least": 0.8}}}
    plan = read_attack_plan(table, "a test")
    settings = {part.name: part.settings for part in plan.constraints}
    assert settings["similarity"].path == "v.txt"  # type: ignore[attr-defined]
    assert read_attack_plan(plan.table(), "again") == plan


COSTS = {"fine": 4.0, "nice": 2.0, "movie": 1.0, "picture": 3.0}


def nats(sentences: Any) -> list[list[float]]:
    """One nat a word, but for words that cost more; the end of a sentence costs nothing."""
    return [[*(COSTS.get(word, 1.0) for word in sentence), 0.0] for sentence in sentences]


def test_perplexity_may_rise_so_far() -> None:
    resources = replace(RESOURCES, sentence_nats=nats)
    space = Space.open(Document.read(("good film good",)), {"good": ("fine", "nice"), "film": ("movie", "picture")})
    # four predictions: fine adds 3/4 nats, picture 2/4, nice 1/4, nice twice 2/4
    for ratio, good, film in ((0.74, ("nice",), ("movie", "picture")), (0.76, ("fine", "nice"), ("movie", "picture")),
                              (0.49, ("nice",), ("movie",)), (0.1, (), ("movie",))):  # fmt: skip
        (constraint,) = parts(resources, perplexity={"most": float(np.exp(ratio))})
        assert left(space, constraint) == {name: found for name, found in (("good", good), ("film", film)) if found}
    (constraint,) = parts(resources, perplexity={"most": float(np.exp(0.49))})
    check = constraint.check(constraint.narrow(space))
    assert check is not None
    rows = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 0]], dtype=np.int16)
    assert check(rows).tolist() == [True, True, False, True], "nice twice is too much"
    assert constraint.told.startswith("perplexity: at most 1.63")
    with pytest.raises(ConfigError, match="--lm RUN"):
        parts(perplexity={})


class EvenLetters(Constraint):
    """Allows texts with an even number of letters alone."""

    def narrow(self, space: Space) -> Space:
        return space

    def check(self, space: Space) -> Any:
        def allowed(rows: Rows) -> np.ndarray:
            self.hashes["asked"] = str(int(self.hashes.get("asked", "0")) + len(rows))
            return np.array([even(space.text(row)[0]) for row in rows])

        return allowed


def even(text: str) -> bool:
    return sum(map(str.isalpha, text)) % 2 == 0


@pytest.mark.parametrize("search", ["genetic", "pso", "greedy", "beam", "random", "exhaustive"])
def test_a_text_that_is_refused_is_never_asked_and_is_no_query(search: str) -> None:
    counting, small = Counting(), {"search__population": 8} if search in ("genetic", "pso") else {}
    attack = make_attack(search, function=counting, **small)
    constraint = EvenLetters(EvenLetters.Settings(), RESOURCES)
    results = list(replace(attack, constraints=[constraint]).run(EXAMPLES))
    asked = list(counting.texts)
    alone = replace(attack, constraints=[constraint], settings=attack.settings.model_copy(update={"together": 1})).run(EXAMPLES)
    assert sorted(alone, key=lambda result: result.index) == sorted(results, key=lambda result: result.index)
    given = {example.fields[0] for example in EXAMPLES}
    assert all(even(text) for text in asked if text not in given)
    won = [result for result in results if result.outcome == "success"]
    assert len(asked) == sum(result.queries for result in results) + 2 * len(won), "each success is asked again"
    assert len(won) >= 3
    assert all(result.adversarial is not None and even(result.adversarial[0]) for result in won)
    free = list(make_attack(search, **small).run(EXAMPLES))
    assert sum(result.outcome == "success" for result in free) >= len(won)
    assert any(result.adversarial is not None and not even(result.adversarial[0]) for result in free), "it would be otherwise"
    allowed = replace(attack, constraints=[Everything(EvenLetters.Settings(), RESOURCES)]).run(EXAMPLES)
    pairs = [(one, one.space and one.space.model_copy(update={"refused": ()})) for one in allowed]
    counted = [one.model_copy(update={"space": size}) for one, size in pairs]
    assert counted == free, "a check that allows all changes nothing"


class Everything(EvenLetters):
    def check(self, space: Space) -> Any:
        return lambda rows: np.ones(len(rows), dtype=bool)


def test_a_text_is_shown_to_a_constraint_once() -> None:
    constraint = EvenLetters(EvenLetters.Settings(), RESOURCES)
    attack = make_attack("random", search__draws=400, constraints={})
    list(replace(attack, constraints=[constraint]).run(EXAMPLES[2:3]))
    space = Space.open(Document.read(EXAMPLES[2].fields), TABLE)
    assert 0 < int(constraint.hashes["asked"]) <= space.num_points()


LEXICON = """word\tpos\tsememes
good\tadj\twell
fine\tadj\twell
fine\tnoun\tmoney
film\tnoun\tshow
movie\tnoun\tshow
shoot\tverb\tshow
bad\t\till
"""


def test_part_of_speech_is_kept_where_the_lexicon_knows_it(tmp_path: Path) -> None:
    (tmp_path / "l.tsv").write_text(LEXICON, encoding="utf-8")
    (tmp_path / "forms.txt").write_text("film\tfilms\nshoot\tshoots\nmovie\tmovies\n", encoding="utf-8")
    table = {
        "good": ("fine", "film", "bad", "swell"),
        "film": ("movie", "shoot", "good", "fine"),
        "films": ("movies", "shoots"),
        "Film": ("Movie", "Shoot"),
        "plot": ("shoot",),
        "bad": ("film",),
    }
    space = Space.open(Document.read(("good film films Film plot bad",)), table)
    sources = {"sources": [f"table:{tmp_path}/l.tsv"]}
    (constraint,) = parts(part_of_speech=sources)
    found = left(space, constraint)
    assert found["good"] == ("fine", "bad", "swell"), "of bad and swell nothing is known"
    assert found["film"] == ("movie", "fine")
    assert found["Film"] == ("Movie",)
    assert found["films"] == ("movies", "shoots"), "inflected words are not in the lexicon"
    assert (found["plot"], found["bad"]) == (("shoot",), ("film",))
    (inflected,) = parts(part_of_speech={**sources, "lemmas": str(tmp_path / "forms.txt")})
    assert left(space, inflected)["films"] == ("movies",)
    assert inflected.hashes.keys() == {"table:l.tsv", "forms.txt"}
    assert constraint.told == "part of speech kept where known: table:l.tsv"
    (unknowing,) = parts(part_of_speech={})
    assert (left(space, unknowing), unknowing.told) == (table, "")


def test_a_stop_does_not_wait_for_the_constraints_of_all_examples() -> None:
    seen: list[Space] = []

    class Slow(EvenLetters):
        def narrow(self, space: Space) -> Space:
            seen.append(space)
            return space

    attack = replace(make_attack("greedy"), constraints=[Slow(Slow.Settings(), RESOURCES)])
    assert list(attack.run(EXAMPLES, lambda: bool(seen))) == []
    assert len(seen) == 1


def test_a_stop_does_not_wait_for_all_texts_of_a_step_and_keeps_what_is_finished() -> None:
    plain = make_attack("greedy")
    whole = [result for result in plain.run(EXAMPLES) if result.outcome in ("success", "failed")]
    examples = [
        replace(example, index=number, fields=tuple(f"{text} x{number}" for text in example.fields))
        for number, example in enumerate(EXAMPLES * 40)
    ]
    victim = make_attack("greedy").victim
    asked = replace(plain, victim=victim, settings=plain.settings.model_copy(update={"together": len(examples)}))
    victim.batch_size = 4
    enough = len(examples) + 200  # all are classified, and the first step of some is done
    found = list(asked.run(examples, lambda: victim.texts_asked > enough))
    assert victim.texts_asked < enough + 40
    assert len(whole) < sum(result.outcome in ("success", "failed") for result in found) < len(whole) * 40
