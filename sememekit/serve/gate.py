"""Checks of every request before it is read: sender, origin, and size."""

import asyncio
import secrets
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 256 * 1024  # most bytes of a request; larger ones are refused with 413, unread

_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Gate:
    """An ASGI middleware.

    It refuses a ``Host`` that is not an address of the server (DNS rebinding), an ``Origin`` other than the host, a request
    without the token if there is one, and a body that is not JSON, too large or too slow. It adds headers that restrict the
    page to this server. No other origin can read an answer.

    ``host`` is the address that the server listens on, ``token`` the required ``Authorization: Bearer TOKEN`` (None for no
    token), and ``seconds`` the timeout for receiving a request."""

    def __init__(self, app: ASGIApp, host: str, token: str | None, *, seconds: float = 10.0) -> None:
        self._app, self._host, self._token, self._seconds = app, host.strip("[]"), token, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no path takes web sockets
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal, body = self._refusal(scope, Headers(scope=scope)), b""
        if refusal is None and scope["method"] == "POST":
            try:
                body = await asyncio.wait_for(_read(Request(scope, receive)), self._seconds)
            except TimeoutError:
                refusal = 408, f"the request did not arrive within {self._seconds:g} s"
            except ClientDisconnect:
                return None
            except ValueError:
                refusal = 413, f"the request has more than {MOST_BYTES:,} bytes"
        if refusal is not None:
            status, message = refusal
            close = {"connection": "close"} if status in (408, 413) else None  # the rest of the body is not read
            return await JSONResponse({"error": message}, status, close)(scope, receive, send_with_headers)
        read: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(read, None) or await receive()

        return await self._app(scope, replay, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_own(host):
            return 421, "the Host of the request is not this server"
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "requests of other pages are refused"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "allowed are GET and POST"
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "the request must be JSON, with Content-Type: application/json"
        if self._token is not None and scope["path"].startswith("/v1/"):
            kind, _, given = headers.get("authorization", "").partition(" ")
            same = secrets.compare_digest(given.strip().encode(), self._token.encode())
            if kind.lower() != "bearer" or not same:
                return 401, "give the token that the server printed: Authorization: Bearer TOKEN"
        return None

    def _is_own(self, host: str) -> bool:
        """Return whether a ``Host`` is this server. Off loopback any numeric address counts: foreign names are not numeric."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
        name = name.strip("[]").lower()
        if name == self._host.lower() or is_loopback(name):
            return True
        try:
            return not is_loopback(self._host) and bool(ip_address(name))
        except ValueError:
            return False


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise ValueError
    return bytes(body)
