"""The application: paths of the endpoint, responses to errors, and files of the page."""

import json
import mimetypes
from collections.abc import AsyncIterator, Callable, Collection, Iterator
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
from sememekit.serve.description import REFUSALS, described
from sememekit.serve.gate import NDJSON, Gate, cut
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
STREAMS: Final[dict[str, Callable[[Bench, Any], Iterator[Any]]]] = {"generate": answers.generated, "attack": attacks.attack}
"""Path below /v1 -> the generator whose items are streamed as lines of JSON."""


class Answered(Record, Generic[T]):
    """An answer, and remarks on the request."""

    result: T
    """The answer."""
    remarks: tuple[str, ...]
    """Remarks for the person who asked, such as words that the model does not know."""


def make_app(
    bench: Bench, worker: Worker, host: str = "127.0.0.1", token: str | None = None, names: Collection[str] = ()
) -> Gate:
    """Return the endpoint and the page, behind a ``Gate``; ``names`` are further names of the server."""
    app = FastAPI(
        title="sememekit",
        version=__version__,
        description="Ask trained runs what the commands of sememekit ask them.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        responses=REFUSALS,
    )
    _add_errors(app, bench)
    for path, function in {**ANSWERS, **STREAMS}.items():
        _add(app, path, function, bench, worker)

    @app.get("/v1/runs", response_model=Answered[answers.RunList])
    async def runs() -> Response:
        """The runs that are served."""
        served, remarks = await worker.ask(lambda: tuple(map(answers.info_of, bench.runs.values())))
        return _reply(answers.RunList(runs=served, saves=bench.save is not None), remarks)

    generated = app.openapi
    app.openapi = lambda: described(generated(), bench, token is not None)  # type: ignore[method-assign]
    for file in sorted((Path(__file__).parent / "static").iterdir()):  # read now, so that no path of a request is ever opened
        content = Response(file.read_bytes(), media_type=mimetypes.guess_type(file.name)[0])
        path = "/" if file.name == "index.html" else f"/{file.name}"
        app.router.routes.append(Route(path, lambda _, content=content: content, methods=["GET"]))
    return Gate(app, host, token, names, posts={f"/v1/{path}" for path in (*ANSWERS, *STREAMS)})


def _reply(result: Any, remarks: list[str]) -> Response:
    body = Answered.model_construct(result=result, remarks=tuple(remarks)).model_dump_json(serialize_as_any=True)
    return Response(body, media_type="application/json")


def _add(app: FastAPI, path: str, function: Callable[[Bench, Any], Any], bench: Bench, worker: Worker) -> None:
    hints = get_type_hints(function)

    async def answer(question: Any) -> Response:
        if path in STREAMS:
            return _Lines(_lines(await worker.stream(function(bench, question)), bench))
        writes = path in ("save", "rate")
        key = "" if writes else path + question.model_dump_json(exclude_unset=True)
        return _reply(*await worker.ask(partial(function, bench, question), key, whole=writes))

    answer.__annotations__["question"] = hints["question"]
    streams, model = path in STREAMS, hints["return"]
    app.post(
        f"/v1/{path}",
        response_model=get_args(model)[0] if streams else Answered.__class_getitem__(model),
        response_class=_Lines if streams else JSONResponse,
        name=path,
        description=function.__doc__,
    )(answer)


class _Lines(StreamingResponse):
    media_type = NDJSON


async def _lines(items: AsyncIterator[Record], bench: Bench) -> AsyncIterator[str]:
    try:
        async for item in items:
            yield item.model_dump_json(exclude_none=True) + "\n"
    except Exception as error:
        yield json.dumps({"error": _message(error, bench)}) + "\n"
        if not isinstance(error, tuple(STATUS)):
            raise


STATUS: Final[dict[type[Exception], int]] = {
    BusyError: 429,
    LateError: 503,
    UnknownRunError: 404,
    SememekitError: 409,
    OSError: 507,
}


def _message(error: Exception, bench: Bench) -> str:
    if isinstance(error, OSError):
        return bench.public(f"{error.filename or 'a file'}: {error.strerror or error}; make room, or repair what stands there")
    return bench.public(str(error)) if isinstance(error, tuple(STATUS)) else "a fault of the server, which its terminal tells"


def _add_errors(app: FastAPI, bench: Bench) -> None:
    async def refused(request: Request, error: Any) -> Response:
        headers: dict[str, str] = {}
        if isinstance(error, RequestValidationError):
            status, message = _wrong(request.url.path, error)
        elif isinstance(error, HTTPException):
            status, message, headers = error.status_code, str(error.detail), dict(error.headers or {})
        else:
            status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
            message = _message(error, bench)
            if isinstance(error, BusyError | LateError):
                headers = {"retry-after": "1"}
        return JSONResponse({"error": message}, status, headers)

    for kind in (*STATUS, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, refused)


def _wrong(path: str, error: RequestValidationError) -> tuple[int, str]:
    """Return the status, and the field with its requirement. The given value is left out, since it may not be text."""
    found = error.errors()[:5]
    faults = [f"{cut('.'.join(map(str, one['loc'][1:]))) or 'the request'}: {one['msg']}" for one in found]
    if any(one["type"] in ("missing", "extra_forbidden") for one in found):
        question = get_type_hints({**ANSWERS, **STREAMS}[path.removeprefix("/v1/")])["question"]
        faults.append(f"fields of this request: {', '.join(question.model_fields)}")
    return 422, "; ".join(faults)
