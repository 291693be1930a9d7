"""The subcommand serve: the workbench and the endpoint on runs (``sememekit.serve``)."""

import os
import secrets
import socket
import sys
import webbrowser
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from sememekit.commands._options import LEXICON, Device, Quiet, argument, option
from sememekit.commands._printing import remark, say
from sememekit.errors import ConfigError

TOKEN = "SEMEMEKIT_TOKEN"
"""Environment variable with the token, which is then in no list of processes."""

EXAMPLES = ("sememekit serve", "sememekit serve runs/sdlm runs/softmax --port 8080")


def command(
    runs: Annotated[list[Path] | None, argument("[RUN]...", "Folders of trained models. Default: the quickstart's.")] = None,
    host: Annotated[str, option("--host", "Address to listen on; any but loopback requires a token.")] = "127.0.0.1",
    port: Annotated[int, option("--port", "Port; 0 takes a free one.", min=0, max=65535)] = 8700,
    token: Annotated[
        str | None, option("--token", "Token of requests. Default: $SEMEMEKIT_TOKEN, none on loopback, otherwise random.")
    ] = None,
    names: Annotated[
        list[str] | None, option("--allow-host", "Further host name of this server, such as a proxy's.", metavar="NAME")
    ] = None,
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
    from sememekit.serve.gate import is_loopback, reachable
    from sememekit.serve.runs import Bench, quickstart_runs
    from sememekit.serve.server import run_server
    from sememekit.serve.worker import Worker

    token = token or os.environ.get(TOKEN) or (None if is_loopback(host) and not names else secrets.token_urlsafe(24))
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}; --port 0 takes a free port") from None
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a body waits 40 ms for its head to be acknowledged
    with listening, closing(Worker()) as worker:
        folders = runs or quickstart_runs()
        remark(f"reading {', '.join(folder.resolve().name for folder in folders)}", quiet)
        bench = Bench(folders, sources or ["open"], save, device)
        shown = reachable(host)
        shown = f"[{shown}]" if ":" in shown else shown
        address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"#token={token}" if token else "")
        say(address)
        sys.stdout.flush()  # a pipe gets it now, and not when the server ends
        if browser:
            webbrowser.open(address)
        remark("stop with Ctrl-C", quiet)
        run_server(make_app(bench, worker, host, token, names or ()), listening)
