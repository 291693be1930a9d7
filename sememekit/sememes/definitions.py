"""HowNet definitions (DEF) as trees: KDML, ``{human|人:domain={education|教育},{teach|教:agent={~}}}``, and the flat form of
HowNet 2000, ``human|人,#occupation|职位,*teach|教,education|教育``; and the depth and role of a sememe in a definition.

One grammar for both (blanks around a name are ignored)::

    definition := item ((',' | ';' | nothing, after a bracket) item)*
    item       := [name '='] marks (name | '{' body '}' | '(' body ')' | '"' name '"' | '<' [name] '>')
    body       := head [':' items] | items
    head       := marks [name]                      such as  human|人  ~  ?  $
    name       := english '|' chinese | english | chinese
    marks      := any of  # % $ * + & @ ? ! ~ ^     what the sememe is to the word: part, agent, place, ..."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn

from sememekit.errors import DataError
from sememekit.sememes.lexicon import CHINESE_RUN

MARKS = frozenset("#%$*+&@?!~^")
MAX_DEPTH = 60  # deepest nesting that is read; definitions in HowNet nest up to about ten levels

_CLOSING = {"{": "}", "(": ")", '"': '"', "<": ">"}
_WORD = re.compile(r'[^{}()<>"=,;:|]*')
_MARKS = re.compile(r"(?:\s*[#%$*+&@?!~^])+")
_RELATION = re.compile(r'\s*([^\s#%$*+&@?!~^{}()<>"=,;:|][^{}()<>"=,;:|]*(?:\|[^{}()<>"=,;:|]*)?)=')
"""A role: a name, or a sememe as in ``(institution|机构=UN|联合国)``."""


@dataclass(frozen=True)
class DefinitionNode:
    """One sememe of a definition with its children, or a bracket around several sememes (then without a name)."""

    english: str = ""
    chinese: str = ""
    relation: str = ""
    """The role before ``=``; a node that follows another without a comma shares its relation."""
    marks: str = ""
    """Signs before the name; in ``{~}`` and ``{?}`` there is no name."""
    bracket: str = ""
    separator: str = ""
    is_group: bool = False
    """A bracket without a head, such as ``{neg|否,past|昔}``: it has children only."""
    children: "tuple[DefinitionNode, ...]" = ()

    @property
    def sememe(self) -> str:
        return "|".join(side for side in (self.english, self.chinese) if side)


def parse_definition(text: str) -> tuple[DefinitionNode, ...]:
    """The trees of a DEF, in order. Raises DataError with the position (from 1), the found and the expected sign."""
    parser = _Parser(text)
    nodes = parser.items(depth=0, closing="")
    if parser.peek():
        parser.fail("the end, a comma or a semicolon")
    return nodes


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def items(self, depth: int, closing: str) -> tuple[DefinitionNode, ...]:
        nodes = [self._item("", "", depth)]
        while True:
            next_one = self.peek()
            if next_one in (",", ";") and next_one:
                self._position += 1
                nodes.append(self._item(next_one, "", depth))
            elif next_one and next_one in '{("<' and next_one != closing and nodes[-1].bracket:
                nodes.append(self._item("", nodes[-1].relation, depth))
            else:
                return tuple(nodes)

    def _item(self, separator: str, shared_relation: str, depth: int) -> DefinitionNode:
        if depth > MAX_DEPTH:
            self.fail(f"at most {MAX_DEPTH} levels of brackets")
        relation = shared_relation
        if not relation and (found := _RELATION.match(self._text, self._position)):
            relation, self._position = "|".join(side.strip() for side in found[1].split("|")), found.end()
        marks = self._marks()
        bracket = self.peek()
        if bracket and bracket in _CLOSING:
            self._position += 1
            node = self._bracketed(bracket, marks, depth)
            if self.peek() != _CLOSING[bracket]:
                self.fail(f"{_CLOSING[bracket]!r}")
            self._position += 1
        else:
            english, chinese = self._name(optional=False)
            node = DefinitionNode(english, chinese, marks=marks)
        return replace(node, relation=relation, separator=separator)

    def _bracketed(self, bracket: str, marks: str, depth: int) -> DefinitionNode:
        if bracket in '"<':
            english, chinese = self._name(optional=bracket == "<")
            return DefinitionNode(english, chinese, marks=marks, bracket=bracket)
        if bracket == "{" and not marks:
            head = self._head(depth)
            if head is not None:
                return head
        elif bracket == "(":
            start = self._position
            if self.peek() not in MARKS:
                english, chinese = self._name(optional=True)
                if (english or chinese) and self.peek() == ")":
                    return DefinitionNode(english, chinese, marks=marks, bracket="(")
            self._position = start
        return DefinitionNode(marks=marks, bracket=bracket, is_group=True, children=self.items(depth + 1, _CLOSING[bracket]))

    def _head(self, depth: int) -> DefinitionNode | None:
        """Read the head after ``{`` with its children; return None, with nothing read, if this bracket is a group."""
        start = self._position
        marks = self._marks()
        english, chinese = self._name(optional=True)
        if marks or english or chinese:
            if self.peek() == "}":
                return DefinitionNode(english, chinese, marks=marks, bracket="{")
            if self.peek() == ":":
                self._position += 1
                children = self.items(depth + 1, "}")
                return DefinitionNode(english, chinese, marks=marks, bracket="{", children=children)
        self._position = start
        return None

    def _marks(self) -> str:
        """All marks up to the name or bracket, without the blanks between them: ``* *a`` is ``**a``."""
        found = _MARKS.match(self._text, self._position)
        self._position = found.end() if found else self._position
        return "".join(found[0].split()) if found else ""

    def _name(self, optional: bool) -> tuple[str, str]:
        first = self._word()
        if self.peek() == "|":
            if not first:
                self.fail("an English name before '|'")
            self._position += 1
            second = self._word()
            if not second:
                self.fail("a Chinese name after '|'")
            return first, second
        if not first and not optional:
            self.fail("a sememe")
        return ("", first) if CHINESE_RUN.fullmatch(first) else (first, "")

    def _word(self) -> str:
        """Read up to the next delimiter, without blanks around; may be empty."""
        found = _WORD.match(self._text, self._position)
        assert found is not None
        self._position = found.end()
        return found[0].strip()

    def peek(self) -> str:
        while self._position < len(self._text) and self._text[self._position].isspace():
            self._position += 1
        return self._text[self._position : self._position + 1]

    def fail(self, expected: str) -> NoReturn:
        found = repr(self._text[self._position]) if self._position < len(self._text) else "the end"
        before = self._text[max(0, self._position - 25) : self._position]
        raise DataError(f"definition, character {self._position + 1}: expected {expected}, found {found} after {before!r}")


ROOT: Final = "root"
PLAIN: Final = "plain"  # the role of a sememe without relation and without mark


class Place(NamedTuple):
    """The place of a sememe in the definition of a sense."""

    depth: int  # 0 for the root, 1 for its children, and so on
    role: str  # ``root``, or the relation to its parent (``agent``), or else its marks (``*``), or else ``plain``


def places_in(definition: str, sememes: Sequence[str]) -> tuple[Place | None, ...]:
    """Return the place of each sememe of a sense in its definition; empty without a definition that is a tree.

    The first part of a definition is its root; a semicolon begins another definition with a root. All other parts are below the
    root: HowNet 2000 writes ``human|人,#occupation|职位``, later editions ``{human|人:domain={...}}``. A bracket around several
    sememes adds no level; its sememes without a relation get the relation of the bracket. A sememe that occurs several times
    has the place nearest to the root (first of ties); a sememe that is not found has no place.

    >>> places_in("human|人,#occupation|职位,*teach|教", ("人", "教", "职位"))
    (Place(depth=0, role='root'), Place(depth=1, role='*'), Place(depth=1, role='#'))"""
    found = _places(definition) if definition else {}
    places = tuple(found.get(name) for name in sememes)
    return places if any(places) else ()


@lru_cache(maxsize=1 << 16)
def _places(definition: str) -> Mapping[str, Place]:
    """Return the place of every name in a definition (cached, since words share definitions)."""
    try:
        trees = parse_definition(definition)
    except DataError:
        return {}  # counted by the statistics of a graph as edges without structure; lookup says what is wrong with it
    found: dict[str, Place] = {}
    for number, tree in enumerate(trees):
        is_root = number == 0 or tree.separator == ";"
        for node, place in _below(tree, Place(0, ROOT) if is_root else Place(1, _role(tree) or PLAIN)):
            runs = CHINESE_RUN.findall(f"{node.chinese} {node.relation}")
            for name in (node.sememe, node.english, node.chinese, *runs):
                if name and (name not in found or place.depth < found[name].depth):
                    found[name] = place
    return found


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
