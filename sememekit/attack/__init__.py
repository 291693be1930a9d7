"""Attacks on any victim, a callable from texts to probabilities; independent of tasks and models."""

from sememekit.attack.documents import Cutter, Document, Fields, long_run
from sememekit.attack.engine import Attack
from sememekit.attack.examples import Change, Example, ExampleResult, choose_examples, read_examples, words_of
from sememekit.attack.plan import GOALS, AttackPlan, build_constraints, check_parts, is_attack, read_attack_plan
from sememekit.attack.resources import AttackResources, SentenceNats
from sememekit.attack.victim import Victim
