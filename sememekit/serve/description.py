"""``GET /v1/openapi.json`` beside the types: refusals, the token, examples that this server can answer, and fields."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from pydantic import BaseModel

from sememekit.config import Record
from sememekit.sememes.statistics import sememe_counts
from sememekit.serve.answers import RunInfo, info_of
from sememekit.serve.gate import MOST_BYTES
from sememekit.serve.questions import Question
from sememekit.serve.runs import Bench
from sememekit.serve.worker import LONGEST_WAIT, MOST_WAITING


class Problem(Record):
    """A refused request."""

    error: str
    """The problem, the allowed values, and the next step."""


WHEN: Final = {
    400: "the body is not UTF-8, or its JSON cannot be parsed",
    401: "the token is missing or wrong",
    403: "a page of another server asks (`Origin`)",
    404: "no served run has this name, or there is no such path",
    405: "the path takes another method, which `Allow` names",
    408: "the request did not arrive within 10 seconds",
    409: "the run cannot answer: it is of another kind, does not know the words, or has no such sense, sememe or label",
    413: f"the request has more than {MOST_BYTES // 1024} KiB",
    415: "the request is not `application/json`",
    421: "the `Host` is not a name of the server; `--allow-host` adds one",
    422: "another key, type or value, or a text that is too long; the message says what is allowed",
    429: f"{MOST_WAITING} requests wait already, or another server saves; ask again after a second",
    500: "a fault of the server, which its terminal tells",
    503: f"no answer within {LONGEST_WAIT:g} seconds, too many connections, or the server stops",
    507: "a file or folder of the server cannot be read or written, such as on a full disk",
}
"""Status of a refusal -> when it comes; the table of docs/workbench.md."""
_OF_BODY: Final = {400, 408, 409, 413, 415, 422, 507}  # for paths that take a body
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": Problem, "description": f"{when[0].upper()}{when[1:]}."} for status, when in WHEN.items()
}


def described(schema: dict[str, Any], bench: Bench, has_token: bool) -> dict[str, Any]:
    """Complete the generated description, in place."""
    parts, shown = schema["components"], examples(bench)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": "The token of the printed link."}}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            operation["security"] = [{"token": []}] if has_token else [{}, {"token": []}]
            if method == "get":
                operation["responses"] = {
                    status: found for status, found in operation["responses"].items() if int(status) not in _OF_BODY
                }
            elif (example := shown.get(path.removeprefix("/v1/"))) is not None:
                operation["requestBody"]["content"]["application/json"]["example"] = example
            for status, answer in operation["responses"].items():
                if status != "200":  # also of streams
                    answer["content"] = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for kind in (*_classes(Record), *_classes(Question)):
        for name, text in _fields(kind).items():
            if name in (fields := parts["schemas"].get(_SYMBOLS.sub("_", kind.__name__), {}).get("properties", {})):
                fields[name].setdefault("description", text)
    return schema


def _classes(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in kind.__subclasses__():
        yield one
        yield from _classes(one)


@cache
def _fields(kind: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a class, also of those that it inherits."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        for node in _class_nodes(one.__module__).get(one.__qualname__, ()):
            found |= node
    return found


@cache
def _class_nodes(module: str) -> dict[str, list[dict[str, str]]]:
    if not module.startswith("sememekit"):
        return {}
    found: dict[str, list[dict[str, str]]] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef):
            for field, below in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                    text = ast.literal_eval(below.value) if isinstance(below.value, ast.Constant) else ""
                    found.setdefault(node.name, []).append({field.target.id: " ".join(str(text).split())})
    return found


def examples(bench: Bench) -> dict[str, dict[str, Any]]:
    """Return path -> a request that this server answers; a path that no served run answers has none."""
    known = [info_of(run) for run in bench.runs.values()]

    def first(fits: Callable[[RunInfo], bool]) -> RunInfo | None:
        return next(filter(fits, known), None)

    found: dict[str, dict[str, Any]] = {"pdf": {"width": 90, "height": 20, "shapes": [_SHAPE]}}
    if (run := first(lambda one: "words" in one.kinds and bool(one.start))) is not None:
        found["next-words"] = {"run": run.name, "context": run.start, "top": 5}
        found["explain"] = {"run": run.name, "text": run.start, "top": 5}
        found["score"] = {"run": run.name, "text": run.start}
        found["generate"] = {"run": run.name, "prompt": run.start, "num_tokens": 5}
    if (run := first(lambda one: "words" in one.kinds and one.overlays and bool(one.start))) is not None:
        found["tag"] = {"run": run.name, "text": run.start}
    if (run := first(lambda one: "lattices" in one.kinds and bool(one.start))) is not None:
        found["segment"] = {"run": run.name, "text": "".join(run.start.split())}
    if (run := first(lambda one: "labels" in one.kinds and bool(one.start))) is not None:
        texts = [run.start] * len(run.texts)
        found["predict"] = {"run": run.name, "examples": [texts]}
        found["attack"] = {"run": run.name, "texts": texts, "query_budget": 50}
    if bench.save is not None and known:
        rating = {"text": "她 喜欢 电影", "changed": "她 喜欢 影片", "old": "电影", "new": "影片"}
        found["rate"] = {"run": known[0].name, **rating, "same_meaning": True, "fluent": True}
    if (run := first(lambda one: bool(one.sememes))) is not None:
        graph, counts = bench.runs[run.name].graph, bench.runs[run.name].vocabulary.counts
        assert graph is not None
        usual = graph.sememes[int(sememe_counts(graph, counts).argmax())]
        found["sememe"] = {"run": run.name, "sememe": usual}
        found["unannotated"] = {"run": run.name, "top": 5}
        others = (one for one in graph.entries() if one.is_annotated and len(one.senses) == 1 and usual not in one.sememes())
        if (entry := next(others, None)) is not None:
            found["word"] = {"run": run.name, "word": entry.word}
            if bench.save is not None and run.overlays:
                found["save"] = {"run": run.name, "changes": [{"sense": f"{entry.word}#1", "add": [usual]}]}
    return found


_SYMBOLS: Final = re.compile(r"\W")
_SHAPE: Final = {"points": [10.0, 12.0], "text": "sememe", "colour": "#1c2024"}
