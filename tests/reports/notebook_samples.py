"""Notebook views of made-up records: the tables of ``Run`` and of ``AttackResult``, without a model."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from sememekit.analysis.explanations.words import Explanation
from sememekit.analysis.score import OverlaidToken, ScoredToken
from sememekit.analysis.senses import tagging
from sememekit.notebook import run as notebook
from sememekit.notebook.attacks import AttackResult
from sememekit.notebook.run import Run
from tests.reports.samples import drawn, filled


class Asked(Run):
    """A run of any kind that was never trained."""

    def __init__(self) -> None:
        pass

    def _kind(self, method: str, *allowed: Any) -> Any:
        return allowed[0]

    def _checked(self, method: str, kind: Any, options: Any, *takers: Any) -> dict[str, Any]:
        return dict(options)


def shown() -> dict[str, tuple[Any, str]]:
    """Name -> the records, and the HTML that a notebook gets."""
    run = Asked()
    words, both = ([filled(kind) for _ in range(3)] for kind in (ScoredToken, OverlaidToken))
    explained, tagged = filled(Explanation, no_senses=None, asked=None), [filled(tagging.TaggedToken) for _ in range(3)]
    header = filled(tagging.TagHeader)
    header = header.model_copy(update={"measured": header.measured[:1]})
    answers = np.random.default_rng(1).dirichlet((1.0, 2.0, 3.0), 2)
    classifier = SimpleNamespace(check=lambda *given: None, labels=("no", "so", "yes"), probabilities=lambda given: answers)
    attacked, results = drawn("attack")[0]
    attack = AttackResult(attacked, results)
    with (
        mock.patch.object(notebook, "score", lambda *given, overlay=None, **options: words if overlay is None else both),
        mock.patch.object(notebook, "explain_words", return_value=explained),
        mock.patch.object(notebook, "load_classifier", return_value=classifier),
        mock.patch.object(notebook, "tag", return_value=tagged),
        mock.patch.object(notebook, "header_of", return_value=header),
    ):
        tables = {
            "score": (words, run.score("a b")),
            "score with an overlay": (both, run.score("a b", overlay="overlay.txt")),
            "next words": (explained, run.next_words("a b")),
            "tag": ((header, tagged), run.tag("a b")),
            "predict": ([dict(zip(classifier.labels, row, strict=True)) for row in answers.tolist()], run.predict(["a", "b"])),
        }
    tables["texts of an attack"] = (results, attack.table())
    html = {name: (records, table._repr_html_()) for name, (records, table) in tables.items()}
    named = re.sub(r"<tr><td[^>]*>(.*?)</td>", r"<tr><th>\1</th>", attack.summary()._repr_html_())  # a row is of its first cell
    return {f"notebook: {name}": one for name, one in {**html, "attack": (attacked, named)}.items()}
