"""Print how many tokens of Python each room of the package has, without comments, docstrings and blank lines.

    python benchmarks/package_size.py

Prints one JSON object: the total, and each room with its share. Lines depend on the layout; tokens do not."""

import argparse
import ast
import json
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "sememekit"
_LAYOUT: Final = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


def num_tokens(path: Path) -> int:
    """Return the number of tokens of a file; a string that is a whole statement is a docstring and does not count."""
    tree = ast.parse(path.read_text("utf-8"))
    statements = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {(node.lineno, node.col_offset) for node in statements if isinstance(node, ast.Constant)}
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in _LAYOUT]
    return sum(token.type != tokenize.ENDMARKER and token.start not in docstrings for token in tokens)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    rooms: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        rooms[path.relative_to(PACKAGE).parts[0]] += num_tokens(path)
    print(json.dumps({"tokens": rooms.total(), "rooms": dict(rooms.most_common())}))


if __name__ == "__main__":
    main()
