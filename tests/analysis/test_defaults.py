"""Numbers that the functions of analysis take unless others are given."""

from __future__ import annotations

import inspect

from sememekit.analysis.analyze import analyze
from sememekit.analysis.analyze_labels import analyze_labels
from sememekit.analysis.clusters import clusters
from sememekit.analysis.compare_runs import compare
from sememekit.analysis.evaluate_ppl import compare_ppl
from sememekit.analysis.explanations.evaluation import evaluate_explanations
from sememekit.analysis.explanations.label import explain_label
from sememekit.analysis.explanations.lattice import explain_embeddings
from sememekit.analysis.explanations.words import explain
from sememekit.analysis.explanations.written_text import explain_writing
from sememekit.analysis.segmentation import evaluate_segmentation
from sememekit.analysis.suggestions import suggest_for
from sememekit.analysis.written_texts import compare_texts

DEFAULTS = {
    analyze: {"memory": 2.0, "cases": 6, "top": 4, "seed": 1},
    analyze_labels: {"contexts": 200, "top": 12, "seed": 1},
    clusters: {"top": 10, "members": 15},
    compare: {"seed": 0},
    compare_ppl: {"seed": 0},
    compare_texts: {"seed": 0},
    evaluate_explanations: {"tops": (1, 5, 10), "seed": 1},
    evaluate_segmentation: {"seed": 0},
    explain: {"top": 10, "top_sememes": 12, "min_count": 10},
    explain_embeddings: {"contexts": 5},
    explain_label: {"top_sememes": 12},
    explain_writing: {"top_sememes": 5, "min_count": 10},
    suggest_for: {"top": 5},
}


def test_numbers_and_sizes_change_on_purpose_alone() -> None:
    for function, expected in DEFAULTS.items():
        given = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
        numbers = {name: value for name, value in given.items() if type(value) in (int, float) or name == "tops"}
        assert numbers == expected, function.__name__
