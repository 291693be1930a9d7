"""The text of parsed definitions, for tests that parse and write again."""

from collections.abc import Sequence

from sememekit.sememes.definitions import DefinitionNode

_CLOSING = {"{": "}", "(": ")", '"': '"', "<": ">"}


def format_definition(nodes: Sequence[DefinitionNode]) -> str:
    """The DEF of the trees; the inverse of ``parse_definition``."""
    return "".join(_format(node, joined=index > 0 and not node.separator) for index, node in enumerate(nodes))


def _format(node: DefinitionNode, joined: bool) -> str:
    relation = f"{node.relation}=" if node.relation and not joined else ""
    inside = format_definition(node.children)
    if node.is_group:
        body = node.marks + node.bracket + inside + _CLOSING[node.bracket]
    else:
        head = node.sememe + (f":{inside}" if node.children else "")
        if node.bracket == "{":
            body = "{" + node.marks + head + "}"
        else:
            body = node.marks + node.bracket + head + _CLOSING.get(node.bracket, "")
    return node.separator + relation + body
