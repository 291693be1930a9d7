"""Where a sememe stands in a definition: how deep, and by which role; and the classes of edges that an output layer weights."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sememekit.errors import ConfigError, DataError, GraphError
from sememekit.sememes.definitions import DefinitionNode, parse_definition
from sememekit.sememes.lexicon import CHINESE_RUN

EdgeKind = Literal["depth", "role"]
"""How edges between senses and sememes are divided into classes."""

ROOT: Final = "root"
PLAIN: Final = "plain"
"""The role of a sememe that hangs in its definition without relation and without mark."""
UNKNOWN_PLACE: Final = "no structure"
DEEPEST: Final = 3
"""Deeper sememes are of this class, too."""


class Place(NamedTuple):
    """Where a sememe stands in the definition of a sense.

    Attributes:
        depth: 0 for the root, 1 for what hangs from it, and so on.
        role: ``root``; else the relation by which it hangs (``agent``), else its marks (``*``), else ``plain``.
    """

    depth: int
    role: str


@dataclass(frozen=True)
class EdgeClasses:
    """The edges between senses and sememes of a graph, divided into classes.

    Attributes:
        names: of C classes; the first is that of edges without structure, whether there are any or not.
        class_of_edge: (edges,) int64; sense by sense, within a sense by the number of the sememe.
    """

    names: tuple[str, ...]
    class_of_edge: NDArray[np.int64]


def places_in(definition: str, sememes: Sequence[str]) -> tuple[Place | None, ...]:
    """The place of each sememe of a sense in its definition; empty where there is no definition or it is no tree.

    The first part of a definition is its root, and so is one behind a semicolon, which begins another definition. The other
    parts hang from the root: HowNet 2000 writes ``human|人,#occupation|职位``, later editions ``{human|人:domain={...}}``. A
    bracket around several is no level of its own, and gives its relation to those that have none. A sememe that stands there
    several times has the place nearest to the root, then the first; one that is not found has none.

    >>> places_in("human|人,#occupation|职位,*teach|教", ("人", "教", "职位"))
    (Place(depth=0, role='root'), Place(depth=1, role='*'), Place(depth=1, role='#'))
    """
    found = _places(definition) if definition else {}
    places = tuple(found.get(name) for name in sememes)
    return places if any(places) else ()


@lru_cache(maxsize=1 << 16)
def _places(definition: str) -> Mapping[str, Place]:
    """The place of every name in a definition; many words share one."""
    try:
        trees = parse_definition(definition)
    except DataError:
        return {}  # counted by the statistics of a graph as edges without structure; lookup says what is wrong with it
    found: dict[str, Place] = {}
    for node, place in _placed(trees):
        names = [
            node.sememe,
            node.english,
            node.chinese,
            *CHINESE_RUN.findall(node.chinese),
            *CHINESE_RUN.findall(node.relation),
        ]
        for name in names:
            if name and (name not in found or place.depth < found[name].depth):
                found[name] = place
    return found


def _placed(trees: Sequence[DefinitionNode]) -> Iterator[tuple[DefinitionNode, Place]]:
    for number, node in enumerate(trees):
        is_root = number == 0 or node.separator == ";"
        yield from _below(node, Place(0, ROOT) if is_root else Place(1, _role(node) or PLAIN))


def _below(node: DefinitionNode, place: Place) -> Iterator[tuple[DefinitionNode, Place]]:
    if node.is_group:
        for number, child in enumerate(node.children):
            if place.role == ROOT:
                yield from _below(child, place if number == 0 else Place(1, _role(child) or PLAIN))
            else:
                yield from _below(child, Place(place.depth, _role(child) or place.role))
        return
    yield node, place
    for child in node.children:
        yield from _below(child, Place(place.depth + 1, _role(child) or PLAIN))


def _role(node: DefinitionNode) -> str:
    return node.relation or (node.marks if node.sememe or node.is_group else "")


def classes_of(kind: EdgeKind, places: Iterable[Place | None], known: Sequence[str] = ()) -> EdgeClasses:
    """Divide edges by their places, by ``depth`` (root, depth 1, 2, and 3 or more) or by ``role``; ``known`` are the classes of
    another graph, whose numbers are kept (default: the classes of these edges).

    Raises ConfigError: ``kind`` is no such kind. Raises GraphError: an edge has a class that is not among ``known``."""
    if kind not in ("depth", "role"):
        raise ConfigError(f"classes of edges: there is no kind {kind!r}; allowed: depth, role")
    found = [
        UNKNOWN_PLACE if place is None else _depth_name(place.depth) if kind == "depth" else place.role for place in places
    ]
    order = {name: number for number, name in enumerate((ROOT, *map(_depth_name, range(1, DEEPEST + 1))))}
    own = sorted(set(found) - {UNKNOWN_PLACE}, key=lambda name: (order.get(name, len(order)), name))
    names = tuple(known) or (UNKNOWN_PLACE, *own)
    numbers = {name: number for number, name in enumerate(names)}
    unknown = [name for name in own if name not in numbers]
    if unknown:
        raise GraphError(f"classes of edges by {kind}: {', '.join(unknown)} are not among those of the model's graph")
    return EdgeClasses(names, np.array([numbers[name] for name in found], dtype=np.int64))


def _depth_name(depth: int) -> str:
    if depth == 0:
        return ROOT
    return f"depth {depth}" if depth < DEEPEST else f"depth {DEEPEST} or more"
