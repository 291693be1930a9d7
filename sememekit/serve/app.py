"""The application: paths of the endpoint, responses to errors, and files of the page."""

import json
import mimetypes
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

from sememekit import __version__
from sememekit.config import Record
from sememekit.errors import SememekitError
from sememekit.serve import annotations, answers, attacks
from sememekit.serve.gate import Gate
from sememekit.serve.runs import Bench, UnknownRunError
from sememekit.serve.worker import BusyError, LateError, Worker

T = TypeVar("T")

ANSWERS: Final[dict[str, Callable[[Bench, Any], Any]]] = {
    "next-words": answers.next_words,
    "score": answers.scores,
    "tag": answers.tags,
    "explain": answers.explanation,
    "segment": answers.segmented,
    "predict": answers.predicted,
    "sememe": annotations.sememe,
    "word": annotations.word,
    "unannotated": annotations.unannotated,
    "save": annotations.save,
    "rate": attacks.rate,
    "pdf": answers.pdf,
}
"""Path below /v1 -> the function that answers it."""
NDJSON: Final = "application/x-ndjson"
STREAMS: Final[dict[str, Callable[[Bench, Any], Iterator[Any]]]] = {"generate": answers.generated, "attack": attacks.attack}
"""Path below /v1 -> the generator whose items are streamed as lines of JSON."""


class Answered(Record, Generic[T]):
    """An answer, and remarks on the request."""

    result: T
    remarks: tuple[str, ...]


def make_app(bench: Bench, worker: Worker, host: str = "127.0.0.1", token: str | None = None) -> Gate:
    """Return the endpoint and the page, behind a ``Gate``."""
    app = FastAPI(
        title="sememekit",
        version=__version__,
        description="Ask trained runs what the commands of sememekit ask them.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    _add_errors(app)
    for path, function in {**ANSWERS, **STREAMS}.items():
        _add(app, path, function, bench, worker)

    @app.get("/v1/runs", response_model=Answered[answers.RunList])
    async def runs() -> Response:
        """The runs that are served."""
        served, remarks = await worker.ask(lambda: tuple(map(answers.info_of, bench.runs.values())))
        return _reply(answers.RunList(runs=served, saves=bench.save is not None), remarks)

    for file in sorted((Path(__file__).parent / "static").iterdir()):  # read now, so that no path of a request is ever opened
        content = Response(file.read_bytes(), media_type=mimetypes.guess_type(file.name)[0])
        app.router.routes.append(Route("/" if file.name == "index.html" else f"/{file.name}", content))
    return Gate(app, host, token)


def _reply(result: Any, remarks: list[str]) -> Response:
    body = Answered.model_construct(result=result, remarks=tuple(remarks)).model_dump_json(serialize_as_any=True)
    return Response(body, media_type="application/json")


def _add(app: FastAPI, path: str, function: Callable[[Bench, Any], Any], bench: Bench, worker: Worker) -> None:
    hints = get_type_hints(function)

    async def answer(question: Any) -> Response:
        if path in STREAMS:
            return StreamingResponse(_lines(await worker.stream(function(bench, question))), media_type=NDJSON)
        key = "" if path in ("save", "rate") else path + question.model_dump_json(exclude_unset=True)
        return _reply(*await worker.ask(partial(function, bench, question), key))

    answer.__annotations__["question"] = hints["question"]
    model, responses = hints["return"], dict[int | str, Any]()
    if path in STREAMS:
        [model] = get_args(model)
        responses[200] = {"content": {NDJSON: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}}
    else:
        model = Answered.__class_getitem__(model)
    app.post(f"/v1/{path}", response_model=model, name=path, description=function.__doc__, responses=responses)(answer)


async def _lines(items: AsyncIterator[Record]) -> AsyncIterator[str]:
    try:
        async for item in items:
            yield item.model_dump_json(exclude_none=True) + "\n"
    except (SememekitError, BusyError, LateError) as error:
        yield json.dumps({"error": str(error)}) + "\n"


STATUS: Final[dict[type[Exception], int]] = {BusyError: 429, LateError: 503, UnknownRunError: 404, SememekitError: 422}


def _error(message: str, status: int, again: bool = False) -> Response:
    return JSONResponse({"error": message}, status, {"retry-after": "1"} if again else None)


def _add_errors(app: FastAPI) -> None:
    async def refused(request: Request, error: Any) -> Response:
        if isinstance(error, RequestValidationError):
            return _wrong(request.url.path, error)
        if isinstance(error, HTTPException):
            return _error(str(error.detail), error.status_code)
        for kind, status in STATUS.items():
            if isinstance(error, kind):
                return _error(str(error), status, again=isinstance(error, BusyError | LateError))
        return _error("a fault of the server, which its terminal tells", 500)

    for kind in (*STATUS, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, refused)


def _wrong(path: str, error: RequestValidationError) -> Response:
    """Return an error with the field and its requirement. The given value is left out, since it may not be text."""
    found = error.errors()[:5]
    faults = [f"{'.'.join(map(str, one['loc'][1:])) or 'the request'}: {one['msg']}" for one in found]
    if any(one["type"] in ("missing", "extra_forbidden") for one in found):
        question = get_type_hints({**ANSWERS, **STREAMS}[path.removeprefix("/v1/")])["question"]
        faults.append(f"fields of this request: {', '.join(question.model_fields)}")
    return _error("; ".join(faults), 413 if any(one["type"] == "string_too_long" for one in found) else 422)
