"""The pages of ``explain`` for lattice models: a picture (Figures 1 and 3, Buckman and Neubig 2018), and Table 4."""

import math
from typing import Any, Final

from sememekit.analysis.explanations.lattice import EmbeddingsReport, LatticeEdge, LatticeExplanation, LatticeSentence
from sememekit.reports import pages

_STEP, _SIDE, _ARC, _BELOW = 46, 28, 34, 78
_TOKEN: Final = 15
"""Pixels of a character of a token."""


def lattice_page(explanation: LatticeExplanation) -> str:
    """A whole page for one text."""
    sentences = [(sentence, picture_of(sentence)) for sentence in explanation.sentences]
    return pages.render("lattice", explanation=explanation, sentences=sentences)


def embeddings_page(report: EmbeddingsReport) -> str:
    """A whole page of what the embeddings of words are used for."""
    return pages.render("embeddings", report=report)


def picture_of(sentence: LatticeSentence) -> dict[str, Any]:
    """Places of everything in the picture of a lattice: a step to a token, and an arc over the line to an edge."""
    step = max(_STEP, max(len(token.text) for token in sentence.tokens) * _TOKEN + 14)
    line = max(_height(edge) for edge in sentence.edges) / 2 + 30
    arcs = [(edge, _SIDE + step * edge.begin, _SIDE + step * edge.end, line - _height(edge)) for edge in sentence.edges]
    width = 2 * _SIDE + step * len(sentence.tokens)
    return {"step": step, "side": _SIDE, "line": line, "width": width, "height": line + _BELOW, "arcs": arcs}


def _height(edge: LatticeEdge) -> float:
    """Height of the control point of an arc: longer edges go higher, further embeddings above the first."""
    return _ARC * 2 * math.sqrt(edge.end - edge.begin) + _ARC * 1.4 * (edge.copy_number - 1)
