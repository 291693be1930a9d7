"""HowNet definitions (DEF) as trees: KDML, ``{human|人:domain={education|教育},{teach|教:agent={~}}}``, and the flat form of
HowNet 2000, ``human|人,#occupation|职位,*teach|教,education|教育``.

Grammar, one for both (blanks around a name are of no account)::

    definition := item ((',' | ';' | nothing, after a bracket) item)*
    item       := [name '='] marks (name | '{' body '}' | '(' body ')' | '"' name '"' | '<' [name] '>')
    body       := head [':' items] | items
    head       := marks [name]                      such as  human|人  ~  ?  $
    name       := english '|' chinese | english | chinese
    marks      := any of  # % $ * + & @ ? ! ~ ^     what the sememe is to the word: part, agent, place, ...
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NoReturn

from sememekit.errors import DataError
from sememekit.sememes.lexicon import CHINESE_RUN

MARKS = frozenset("#%$*+&@?!~^")
MAX_DEPTH = 60
"""Definitions in HowNet nest up to about ten levels."""

_CLOSING = {"{": "}", "(": ")", '"': '"', "<": ">"}
_DELIMITERS = frozenset('{}()<>"=,;:|')
_MARKS = re.compile(r"(?:\s*[#%$*+&@?!~^])+")
_RELATION = re.compile(r'\s*([^\s#%$*+&@?!~^{}()<>"=,;:|][^{}()<>"=,;:|]*(?:\|[^{}()<>"=,;:|]*)?)=')
"""A role: a name, or a sememe as in ``(institution|机构=UN|联合国)``."""


@dataclass(frozen=True)
class DefinitionNode:
    """One sememe of a definition with its children, or a bracket around several (then without a name)."""

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
    children: tuple[DefinitionNode, ...] = ()

    @property
    def sememe(self) -> str:
        return "|".join(side for side in (self.english, self.chinese) if side)


def parse_definition(text: str) -> tuple[DefinitionNode, ...]:
    """The trees of a DEF, in order. Raises DataError with the position (characters from 1), what stands there and what was
    expected."""
    return _Parser(text).definition()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def definition(self) -> tuple[DefinitionNode, ...]:
        nodes = self.items(depth=0, closing="")
        if self._peek():
            self._fail("the end, a comma or a semicolon")
        return nodes

    def items(self, depth: int, closing: str) -> tuple[DefinitionNode, ...]:
        nodes = [self._item("", "", depth)]
        while True:
            next_one = self._peek()
            if next_one in (",", ";") and next_one:
                self._position += 1
                nodes.append(self._item(next_one, "", depth))
            elif next_one and next_one in '{("<' and next_one != closing and nodes[-1].bracket:
                nodes.append(self._item("", nodes[-1].relation, depth))
            else:
                return tuple(nodes)

    def _item(self, separator: str, shared_relation: str, depth: int) -> DefinitionNode:
        if depth > MAX_DEPTH:
            self._fail(f"at most {MAX_DEPTH} levels of brackets")
        relation = shared_relation
        if not relation and (found := _RELATION.match(self._text, self._position)):
            relation, self._position = "|".join(side.strip() for side in found[1].split("|")), found.end()
        marks = self._marks()
        bracket = self._peek()
        if bracket and bracket in _CLOSING:
            self._position += 1
            node = self._bracketed(bracket, marks, depth)
            if self._peek() != _CLOSING[bracket]:
                self._fail(f"{_CLOSING[bracket]!r}")
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
            if self._peek() not in MARKS:
                english, chinese = self._name(optional=True)
                if (english or chinese) and self._peek() == ")":
                    return DefinitionNode(english, chinese, marks=marks, bracket="(")
            self._position = start
        return DefinitionNode(marks=marks, bracket=bracket, is_group=True, children=self.items(depth + 1, _CLOSING[bracket]))

    def _head(self, depth: int) -> DefinitionNode | None:
        """The head after ``{`` with its children; None, and nothing read, if this bracket is a group."""
        start = self._position
        marks = self._marks()
        english, chinese = self._name(optional=True)
        if marks or english or chinese:
            if self._peek() == "}":
                return DefinitionNode(english, chinese, marks=marks, bracket="{")
            if self._peek() == ":":
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
        if self._peek() == "|":
            if not first:
                self._fail("an English name before '|'")
            self._position += 1
            second = self._word()
            if not second:
                self._fail("a Chinese name after '|'")
            return first, second
        if not first and not optional:
            self._fail("a sememe")
        return ("", first) if CHINESE_RUN.fullmatch(first) else (first, "")

    def _word(self) -> str:
        """Everything up to the next delimiter, without the blanks around it; may be empty."""
        start = self._position
        while self._position < len(self._text) and self._text[self._position] not in _DELIMITERS:
            self._position += 1
        return self._text[start : self._position].strip()

    def _peek(self) -> str:
        while self._position < len(self._text) and self._text[self._position].isspace():
            self._position += 1
        return self._text[self._position : self._position + 1]

    def _fail(self, expected: str) -> NoReturn:
        found = repr(self._text[self._position]) if self._position < len(self._text) else "the end"
        before = self._text[max(0, self._position - 25) : self._position]
        raise DataError(f"definition, character {self._position + 1}: expected {expected}, found {found} after {before!r}")
