"""Definitions: trees of both forms, round trips, and positions of faults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sememekit.errors import DataError
from sememekit.sememes.definitions import MAX_DEPTH, DefinitionNode, parse_definition
from tests.definition_text import format_definition

TEACHER = "{human|人:HostOf={Occupation|职位},domain={education|教育},{teach|教:agent={~}}}"


def walk(nodes: Sequence[DefinitionNode]) -> Iterator[DefinitionNode]:
    """Every node, a parent before its children."""
    for node in nodes:
        yield node
        yield from walk(node.children)


words = st.text("abcXYZ-. 9", min_size=1, max_size=6).map(str.strip).filter(bool)
chinese = st.text("人教育职位", min_size=1, max_size=3)
names = st.tuples(words, chinese) | st.tuples(words, st.just("")) | st.tuples(st.just(""), chinese)
marks = st.text("#%$*+&@?!~^", min_size=1, max_size=2)
relations = st.just("") | words


@st.composite
def items(draw: st.DrawFn, inner: st.SearchStrategy | None = None) -> DefinitionNode:
    """One item with its separator; relations of joined items are fixed by ``node_lists``."""
    english, chinese_name = draw(names)
    separator, relation = draw(st.sampled_from([",", ";"])), draw(relations)
    kind = draw(st.sampled_from(["plain", "quoted", "head", "sign", "group", "marked"]))
    children = draw(inner) if inner is not None else ()
    if kind == "plain":
        return DefinitionNode(english, chinese_name, relation, separator=separator)
    if kind == "marked":
        return DefinitionNode(english, chinese_name, relation, draw(marks), draw(st.sampled_from(["", "("])), separator)
    if kind == "quoted":
        return DefinitionNode(english, chinese_name, relation, bracket='"', separator=separator)
    if kind == "sign":
        return DefinitionNode(relation=relation, marks=draw(marks), bracket="{", separator=separator)
    if kind == "group" and len(children) > 1:
        return DefinitionNode(relation=relation, bracket="{", separator=separator, is_group=True, children=children)
    return DefinitionNode(english, chinese_name, relation, bracket="{", separator=separator, children=children)


def node_lists(inner: st.SearchStrategy | None = None) -> st.SearchStrategy:
    return st.lists(items(inner), min_size=1, max_size=3).map(first_without_separator)


def first_without_separator(nodes: list[DefinitionNode]) -> tuple[DefinitionNode, ...]:
    first = nodes[0]
    bare = DefinitionNode(
        first.english, first.chinese, first.relation, first.marks, first.bracket, "", first.is_group, first.children
    )
    return (bare, *nodes[1:])


definitions = node_lists(node_lists(node_lists()))


def test_the_tree_of_a_teacher() -> None:
    (human,) = parse_definition(TEACHER)
    assert human.sememe == "human|人"
    assert [(node.relation, node.sememe) for node in human.children] == [
        ("HostOf", "Occupation|职位"),
        ("domain", "education|教育"),
        ("", "teach|教"),
    ]
    (agent,) = human.children[2].children
    assert (agent.relation, agent.marks, agent.sememe) == ("agent", "~", "")


def test_the_flat_form() -> None:
    nodes = parse_definition("human|人,#occupation|职位,*teach|教,^$buy|买,(China|中国),location=<>,means=slack|偷懒")
    assert [(node.relation, node.marks, node.sememe) for node in nodes] == [
        ("", "", "human|人"),
        ("", "#", "occupation|职位"),
        ("", "*", "teach|教"),
        ("", "^$", "buy|买"),
        ("", "", "China|中国"),
        ("location", "", ""),
        ("means", "", "slack|偷懒"),
    ]


def test_neighbours_share_a_relation() -> None:
    (place,) = parse_definition('{place|地方:belong="Europe|欧洲""North America|北美",PlaceSect={capital|国都}{city|市}}')
    assert [(node.relation, node.sememe) for node in place.children] == [
        ("belong", "Europe|欧洲"),
        ("belong", "North America|北美"),
        ("PlaceSect", "capital|国都"),
        ("PlaceSect", "city|市"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        TEACHER,
        "{negative|反面};{positive|正面}",
        "{neg|否,past|昔}",
        "{partner}",
        "#(China|中国)",
        "part|部件,%institution|机构,(institution|机构=UN|联合国)",
        '{place|地方:belong="Europe|欧洲""Asia|亚洲",modifier={ProperName|专}}',
    ],
)
def test_text_comes_back(text: str) -> None:
    assert format_definition(parse_definition(text)) == text


@given(definitions)
def test_trees_come_back(nodes: tuple[DefinitionNode, ...]) -> None:
    assert parse_definition(format_definition(nodes)) == nodes


@example("* *")
@given(st.text(st.sampled_from('{}()<>"=,:;|#*~? a人'), max_size=30) | st.text(max_size=20))
def test_any_text_gives_a_tree_or_a_data_error(text: str) -> None:
    try:
        nodes = parse_definition(text)
    except DataError as error:
        assert str(error).startswith("definition, character ")  # noqa: PT017 - an error is allowed here, not required
    else:
        assert parse_definition(format_definition(nodes)) == nodes
        assert all(node.is_group or node.sememe or node.marks or node.bracket == "<" for node in walk(nodes))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 1),
        ("{", 2),
        ("{human|人", 9),
        ("{human|}", 8),
        ("a|b,", 5),
        ("{a|b}}", 6),
        ('"a|b', 5),
        ("|人", 1),
        ("a=", 3),
        ("{a|b:}", 6),
    ],
)
def test_faults_give_their_position(text: str, position: int) -> None:
    with pytest.raises(DataError, match=f"character {position}: expected .*found"):
        parse_definition(text)


def test_bottomless_nesting() -> None:
    with pytest.raises(DataError, match=f"at most {MAX_DEPTH} levels"):
        parse_definition("{a:" * 5000)
