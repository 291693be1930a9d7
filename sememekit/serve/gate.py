"""Checks of every request before it is read: sender, origin, and size."""

import asyncio
import json
import re
import secrets
import socket
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sememekit.files.reading import may_be_gb18030

NDJSON: Final = "application/x-ndjson"
STOPS: Final = "the server stops; start it again with: sememekit serve"
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


def reachable(host: str) -> str:
    """Return the address to type for the address that a server listens on: for all addresses, that in the local network."""
    try:
        if not ip_address(host.strip("[]")).is_unspecified:
            return host
    except ValueError:
        return host
    own, elsewhere = ("::1", "2001:db8::1") if ":" in host else ("127.0.0.1", "192.0.2.1")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((elsewhere, 9))  # sends nothing: the system says by which address it would
            return str(asked.getsockname()[0])
        except OSError:  # no network
            return own


class Gate:
    """An ASGI middleware.

    It refuses a ``Host`` that is not a name of the server (DNS rebinding), an ``Origin`` other than the host, a request without
    the token if there is one, and a body that is not JSON, not UTF-8, too large or too slow. It adds headers that restrict the
    page to this server. No other origin can read an answer. It cancels a request whose client left.

    ``host`` is the address that the server listens on, ``token`` the required ``Authorization: Bearer TOKEN`` (None for no
    token), ``names`` are further names of the server, such as a proxy's, ``posts`` are the paths that take JSON, and
    ``seconds`` is the timeout for receiving a request."""

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        token: str | None,
        names: Collection[str] = (),
        *,
        posts: Collection[str] = (),
        seconds: float = 10.0,
    ) -> None:
        self._app, self._host, self._token = app, host.strip("[]").lower(), token
        self._posts, self._seconds = posts, seconds
        self._proxies, machine = {name.lower() for name in names}, socket.gethostname().lower()
        self._names = {self._host, machine, f"{machine}.local", *self._proxies}
        self._open, self._stops = set[asyncio.Task[None]](), False

    async def stop(self) -> None:
        """Answer the requests in progress, and all later ones, with 503."""
        self._stops = True
        for work in (waiting := list(self._open)):
            work.cancel()
        while any(work in self._open for work in waiting):
            await asyncio.sleep(0.01)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no path takes web sockets
            return await self._app(scope, receive, send)
        answer = _Answer(send)
        work = asyncio.ensure_future(self._work(scope, receive, answer))
        self._open.add(work)
        try:
            await asyncio.wait({work})
            if work.cancelled() and self._stops:
                await answer.stop()
        finally:
            self._open.discard(work)
            work.cancel()
        return None if work.cancelled() else work.result()

    async def _work(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        if self._stops:
            raise asyncio.CancelledError
        refusal, body = self._refusal(scope, Headers(scope=scope)), b""
        if refusal is None and scope["method"] == "POST":
            try:
                body = await asyncio.wait_for(_read(Request(scope, receive)), self._seconds)
                refusal = _not_utf8(body)
            except TimeoutError:
                refusal = 408, f"the request did not arrive within {self._seconds:g} s"
            except ClientDisconnect:
                return None
            except ValueError:
                refusal = 413, f"the request has more than {MOST_BYTES:,} bytes"
        if refusal is not None:
            return await answer.refuse(*refusal)
        read: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])
        work = asyncio.current_task()
        assert work is not None

        async def replay() -> Message:
            for message in read:
                return message
            return await asyncio.get_running_loop().create_future()  # until it is cancelled

        async def leave() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            work.cancel()

        leaving = asyncio.ensure_future(leave())
        try:
            await self._app(scope, replay, answer.send)
        finally:
            leaving.cancel()
        return None

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if not self._is_own(name := _name(host)):
            named = name if re.fullmatch(r"[a-z0-9._-]{1,100}", name) else "NAME"
            return 421, f"the Host of the request, {cut(host)!r}, is not this server; if it is, add: --allow-host {named}"
        if origin is not None and not self._is_page(origin.lower(), host):
            return 403, f"requests of other pages are refused, and this one is of {cut(origin)!r}"
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and scope["path"] in self._posts and kind != "application/json":
            return 415, "the request must be JSON, with Content-Type: application/json"
        if self._token is not None and scope["path"].startswith("/v1/"):
            kind, _, given = headers.get("authorization", "").partition(" ")
            same = secrets.compare_digest(given.strip().encode(), self._token.encode())
            if kind.lower() != "bearer" or not same:
                return 401, "give the token that the server printed: Authorization: Bearer TOKEN"
        return None

    def _is_own(self, name: str) -> bool:
        """Return whether a name is of this server. Off loopback any numeric address counts: foreign names are not numeric."""
        if name in self._names or is_loopback(name):
            return True
        try:
            return not is_loopback(self._host) and bool(ip_address(name))
        except ValueError:
            return False

    def _is_page(self, origin: str, host: str) -> bool:
        """Return whether an ``Origin`` is a page of this server; a proxy may take https, and ask by another ``Host``."""
        scheme, _, of = origin.partition("://")
        return origin == f"http://{host}" or (scheme in ("http", "https") and _name(of) in self._proxies)


class _Answer:
    """An answer on its way: adds the headers, and knows how far it is."""

    def __init__(self, send: Send) -> None:
        self._send, self._started, self._streams, self._done = send, False, False, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
            self._started, self._streams = True, Headers(scope=message).get("content-type", "").startswith(NDJSON)
        self._done = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def refuse(self, status: int, message: str) -> None:
        headers = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": "1"}}.get(status, {})
        if status in (408, 413):
            headers = {"connection": "close"}  # the rest of the body is not read
        response = JSONResponse({"error": message}, status, headers)
        await self.send({"type": "http.response.start", "status": status, "headers": response.raw_headers})
        await self.send({"type": "http.response.body", "body": response.body})

    async def stop(self) -> None:
        """End an unfinished answer, because the server stops."""
        if not self._started:
            await self.refuse(503, STOPS)
        elif self._streams and not self._done:
            await self.send({"type": "http.response.body", "body": json.dumps({"error": STOPS}).encode() + b"\n"})


def cut(text: str, most: int = 60) -> str:
    """Return the beginning of a text that a message repeats."""
    return text if len(text) <= most else f"{text[:most]}…"


def _name(host: str) -> str:
    """Return a ``Host`` without its port."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() and not host.endswith("]") else host).strip("[]")


def _not_utf8(body: bytes) -> tuple[int, str] | None:
    """Return the refusal of a body that is not UTF-8, with the encoding that it seems to have."""
    try:
        body.decode()
        found = body.find(b"\0")  # UTF-16; JSON has no such character
    except UnicodeDecodeError as error:
        found = error.start
    if found < 0:
        return None
    by_mark = body[:2] in (b"\xff\xfe", b"\xfe\xff")
    seems = "UTF-16" if by_mark or b"\0" in body else "GB18030 (GBK)" if may_be_gb18030(body) else "another encoding"
    return 400, f"the body is not UTF-8 at byte {found}; it seems to be {seems}; send JSON as UTF-8"


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise ValueError
    return bytes(body)
