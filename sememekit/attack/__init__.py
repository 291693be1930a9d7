"""Attacks on any victim, a callable from texts to probabilities; independent of tasks and models."""

from sememekit.attack.documents import Cutter, Document, Fields, long_run
from sememekit.attack.engine import Attack, words_of
from sememekit.attack.examples import Change, Example, ExampleResult, choose_examples, read_examples
from sememekit.attack.plan import (
    GOALS,
    AttackPlan,
    build_candidates,
    build_constraints,
    build_goal,
    build_search,
    check_parts,
    is_attack,
    read_attack_plan,
)
from sememekit.attack.resources import AttackResources, SentenceNats
from sememekit.attack.victim import Victim

__all__ = [
    "GOALS",
    "Attack",
    "AttackPlan",
    "AttackResources",
    "Change",
    "Cutter",
    "Document",
    "Example",
    "ExampleResult",
    "Fields",
    "SentenceNats",
    "Victim",
    "build_candidates",
    "build_constraints",
    "build_goal",
    "build_search",
    "check_parts",
    "choose_examples",
    "is_attack",
    "long_run",
    "read_attack_plan",
    "read_examples",
    "words_of",
]
