"""The subcommand serve: the workbench and the endpoint on runs (``sememekit.serve``)."""

import secrets
import socket
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from sememekit.commands._options import LEXICON, Device, Quiet, argument, option
from sememekit.commands._printing import remark, say
from sememekit.errors import ConfigError

if TYPE_CHECKING:
    from sememekit.serve.gate import Gate

EXAMPLES = ("sememekit serve", "sememekit serve runs/sdlm runs/softmax --port 8080")


def command(
    runs: Annotated[list[Path] | None, argument("[RUN]...", "Folders of trained models. Default: the quickstart's.")] = None,
    host: Annotated[str, option("--host", "Address to listen on; any but loopback requires a token.")] = "127.0.0.1",
    port: Annotated[int, option("--port", "Port; 0 takes a free one.", min=0, max=65535)] = 8700,
    token: Annotated[str | None, option("--token", "Token of requests. Default: none on loopback, otherwise random.")] = None,
    save: Annotated[Path, option("--save", "Folder for saved annotations and ratings.")] = Path("workbench"),
    sources: Annotated[
        list[str] | None, option("--source", "Lexicon of substitutes in attacks.", metavar=LEXICON, show_default="open")
    ] = None,
    browser: Annotated[bool, option("--browser/--no-browser", "Open the page in a browser.")] = True,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Open a local page on trained models: type a context, change annotations, attack a text; and a REST endpoint.

    Nothing leaves the machine. Stop it with Ctrl-C; what was saved stays."""
    if not (find_spec("fastapi") and find_spec("uvicorn")):
        raise ConfigError("serve needs FastAPI and uvicorn; run: pip install 'sememekit[serve]'")
    from sememekit.serve.app import make_app
    from sememekit.serve.gate import is_loopback
    from sememekit.serve.runs import Bench, quickstart_runs
    from sememekit.serve.worker import Worker

    token = token or (None if is_loopback(host) else secrets.token_urlsafe(24))
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}; --port 0 takes a free port") from None
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits 40 ms for its head to be acknowledged
    with listening, closing(Worker()) as worker, TemporaryDirectory(prefix="sememekit-serve-") as overlays:
        bench = Bench(runs or quickstart_runs(), Path(overlays), sources or ["open"], save, device)
        remark(f"reading {', '.join(bench.runs)}", quiet)
        for run in bench.runs.values():  # so that the first request need not wait
            run.load()
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"#token={token}" if token else "")
        say(address)
        sys.stdout.flush()  # a pipe gets it now, and not when the server ends
        if browser:
            webbrowser.open(address)
        remark("stop with Ctrl-C", quiet)
        run_server(make_app(bench, worker, host, token), listening)


def run_server(app: "Gate", listening: socket.socket) -> None:
    """Serve until a signal; open requests are finished first."""
    import uvicorn

    from sememekit.signals import stop_signals

    class Server(uvicorn.Server):
        """A server that a signal of ``sememekit.signals`` stops like a finished command."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            with stop_signals() as self.asked_to_stop:
                yield

        async def on_tick(self, counter: int) -> bool:
            self.should_exit |= self.asked_to_stop()
            return await super().on_tick(counter)

    config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=5, ws="none")
    Server(config).run(sockets=[listening])
