"""The server: its limits of connections, and how it stops."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from sememekit.serve.gate import Gate
from sememekit.signals import stop_signals

MOST_CONNECTIONS: Final = 256
"""Most open connections, or half of the files that the process may open if those are fewer. Beyond it the connection that has
been without a request for longest is closed."""
LONGEST_HEAD: Final = 10.0  # seconds without a whole head of a request after which a connection is closed


def run_server(app: Gate, listening: socket.socket) -> None:
    """Serve until a signal. Requests in progress are then answered with 503, streams end with an ``error`` line, and what is
    computed for them ends at its next step."""
    make_server(app).run(sockets=[listening])


def make_server(app: Gate) -> uvicorn.Server:
    """Return the server, which a signal of ``sememekit.signals`` stops like a finished command."""
    most = min(MOST_CONNECTIONS, _files() // 2)
    backlog = max(1, min(64, _files() // 16))  # so many are accepted in each of the four steps until one of them is closed

    class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """A connection that counts, and remembers since when it has had no request."""

        def connection_made(self, transport: Any) -> None:
            self.since = asyncio.get_running_loop().time()
            super().connection_made(transport)
            if len(self.connections) > most:
                idle = [one for one in self.connections if _is_idle(one) and one is not self]
                min(idle or [self], key=lambda one: one.since).transport.abort()

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            with stop_signals() as self.asked_to_stop:
                yield

        async def on_tick(self, counter: int) -> bool:
            self.should_exit |= self.asked_to_stop()
            now = asyncio.get_running_loop().time()
            connections: list[Any] = list(self.server_state.connections)
            for one in connections:
                if not _is_idle(one):
                    one.since = now
                elif now - one.since > 2 * LONGEST_HEAD:  # it does not read what it was sent
                    one.transport.abort()
                elif now - one.since > LONGEST_HEAD:
                    one.transport.close()
            return await super().on_tick(counter)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:  # so that no request comes after those that are answered now
                server.close()
            await app.stop()
            asyncio.get_running_loop().call_later(1.0, self.abort)  # clients that do not read
            await super().shutdown(sockets)

        def abort(self) -> None:
            connections: list[Any] = list(self.server_state.connections)
            for one in connections:
                one.transport.abort()

    ends: dict[str, Any] = {"server_header": False, "lifespan": "off", "timeout_graceful_shutdown": 5}
    config = uvicorn.Config(app, http=Connection, ws="none", backlog=backlog, log_level="warning", **ends)
    return Server(config)


def _is_idle(connection: Any) -> bool:
    return connection.cycle is None or bool(connection.cycle.response_complete)


def _files() -> int:
    """Return how many files the process may open, after raising a lower limit as far as the system lets it."""
    try:
        import resource
    except ImportError:  # Windows
        return 512
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * MOST_CONNECTIONS if hard < 0 else min(4 * MOST_CONNECTIONS, hard)
    if 0 < soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft if soft > 0 else 2 * MOST_CONNECTIONS
