"""The preset ``standard``: first senses, names, common words and lengths, and what each would have cost a loose attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sememekit.attack import AttackResources, Document, build_constraints, read_attack_plan
from sememekit.attack.space import Space
from sememekit.jobs.attack import attack
from tests.attack import toys
from tests.commands.attacks import VICTIM

LEXICON = """word\tpos\tsememes
cat\tn\tanimal
cat\tn\texamine
tabby\tn\tanimal
scan\tn\texamine
examine\tv\texamine
dog\tn\texamine
dog\tn\tanimal
york\tn\tcity ProperName|专
new_york\tn\tcity ProperName|专
new\ta\tfresh
refreshing\ta\tfresh
duke\tn\tperson
duke\tn\tcity ProperName|专
lord\tn\tperson
even\tr\tFuncWord|功能词
even\ta\tbalanced
powerful\tr\tFuncWord|功能词
level\ta\tbalanced
中国\tn\tcountry
国家\tn\tcountry
祖国\tn\tcountry
共和国联邦\tn\tcountry
"""


@pytest.fixture
def lexicon(tmp_path: Path) -> str:
    path = tmp_path / "lexicon.tsv"
    path.write_text(LEXICON, encoding="utf-8")
    return f"table:{path}"


def narrowed(
    text: str, table: dict[str, tuple[str, ...]], lexicon: str, *names: str, known: int | None = None
) -> dict[str, Any]:
    plan = read_attack_plan({"candidates": {"name": "sememe", "sources": [lexicon]}}, "a test")
    words = ("tabby", "film", "cat", "scan")
    resources = AttackResources(None if known is None else frozenset(words), words, ("text",))
    space = Space.open(Document.read((text,), str.split), table)
    parts = zip(plan.constraints, build_constraints(plan, resources), strict=True)
    for part, constraint in parts:
        space = constraint.narrow(space) if part.name in names else space
    return {word.text: found for word, found in zip(space.document.words, space.substitutes, strict=True) if found}


def test_substitutes_share_a_first_sense(lexicon: str) -> None:
    table = {"cat": ("tabby", "scan", "dog", "examine", "unheard"), "scan": ("cat", "dog")}
    assert narrowed("a cat scan", table, lexicon, "first_senses") == {"cat": ("tabby", "unheard"), "scan": ("dog",)}
    even = {"even": ("powerful", "level")}
    assert narrowed("even", even, lexicon, "first_senses") == {"even": ("level",)}, "a function word says nothing of meaning"
    assert narrowed("a cat scan", table, lexicon, "part_of_speech") == table, "no lexicon of its own"
    two = read_attack_plan(
        {"candidates": {"name": "sememe", "sources": [lexicon]}, "constraints": {"first_senses": {"most": 2}}}, "a test"
    )
    [part] = [part for part in two.constraints if part.name == "first_senses"]
    assert (part.settings.sources, part.settings.most) == ((lexicon,), 2)  # type: ignore[attr-defined]


def test_names_stay_and_none_is_put_in(lexicon: str) -> None:
    table = {"new": ("refreshing",), "york": ("london",), "duke": ("lord", "york"), "car": ("auto",), "Tanner": ("forger",)}
    assert narrowed("a new york duke", table, lexicon, "names") == {"duke": ("lord",)}, "its second sense alone is a name"
    assert narrowed("a new car", table, lexicon, "names") == {"new": ("refreshing",), "car": ("auto",)}
    assert narrowed("his car Tanner", table, lexicon, "names") == {"car": ("auto",)}, "a capital inside a sentence"
    assert narrowed("Tanner . Tanner", table, lexicon, "names") == {"Tanner": ("forger",)}
    assert "Tanner" in narrowed("HIS CAR Tanner".upper().replace("TANNER", "Tanner"), table, lexicon, "length")


def test_common_words_and_lengths(lexicon: str) -> None:
    table = {"cat": ("tabby", "zibeline"), "中国": ("国家", "祖国", "共和国联邦")}
    assert narrowed("cat 中国", table, lexicon, "common_words", known=4) == {"cat": ("tabby",)}
    assert narrowed("cat 中国", table, lexicon, "common_words") == table, "a victim that names no words"
    assert narrowed("cat 中国", table, lexicon, "length") == {"cat": table["cat"], "中国": ("国家", "祖国")}


def test_other_candidates_take_the_lexicon_of_parts_of_speech_for_names(lexicon: str) -> None:
    table = {"candidates": {"name": "wordnet"}, "constraints": {"part_of_speech": {"sources": [lexicon], "lemmas": "l.tsv"}}}
    plan = read_attack_plan(table, "a test")
    settings = {part.name: part.settings for part in plan.constraints}
    assert (settings["names"].sources, settings["names"].lemmas) == ((lexicon,), "l.tsv")  # type: ignore[attr-defined]
    assert settings["first_senses"].sources == ()  # type: ignore[attr-defined]
    assert read_attack_plan(plan.table(), "again") == plan


def test_a_loose_attack_says_what_standard_would_refuse(tmp_path: Path) -> None:
    rows = ["good\ta\tx", "good\ta\ty", "fine\ta\ty", "okay\ta\tx", "bad\ta\tz", "poor\ta\tz", "weak\ta\tw", "weak\ta\tz"]
    (tmp_path / "l.tsv").write_text("word\tpos\tsememes\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    (tmp_path / "d.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in toys.TEXTS), encoding="utf-8")

    def run(preset: str) -> Any:
        table: dict[str, Any] = {"search": {"name": "greedy"}, "attack": {"constraints": preset}}
        table["candidates"] = {"name": "sememe", "sources": [f"table:{tmp_path / 'l.tsv'}"]}
        return attack(VICTIM, tmp_path / "d.tsv", tmp_path / preset, table=table, labels=toys.LABELS)

    loose, standard = run("loose"), run("standard")
    assert (standard.refused_by_standard, standard.refused_by_any) == ({}, None)
    assert set(standard.refused_substitutes) == {*loose.refused_substitutes, *loose.refused_by_standard}
    spaces = {name: report.coverage for name, report in (("loose", loose), ("standard", standard))}
    per_word = {name: found.changeable * (found.mean_substitutes or 0) for name, found in spaces.items()}
    refused = sum(standard.refused_substitutes[name] for name in loose.refused_by_standard)
    assert refused == standard.refused_substitutes["first_senses"] == round(per_word["loose"] - per_word["standard"]) > 0
    assert set(loose.refused_by_standard) == {"names", "first_senses", "agreement", "common_words", "length"}
    results = [line for line in (tmp_path / "loose" / "examples.jsonl").read_text().splitlines() if '"success"' in line]
    broken = sum(any(f'"new":"{word}"' in line for word in ("fine", "weak")) for line in results)
    assert loose.refused_by_standard["first_senses"] == loose.refused_by_any == broken > 0
    assert set(run("none").refused_by_standard) >= {"stop_words", "protected", "opposites", "first_senses"}
