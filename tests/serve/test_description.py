"""The description of the endpoint says what the endpoint does: types, statuses, examples, and a text for each field."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sememekit.serve.app import make_app
from sememekit.serve.runs import Bench
from sememekit.serve.worker import Worker
from tests.serve.conftest import serving

pytest.importorskip("schemathesis", reason="schemathesis is not installed")
httpx2 = pytest.importorskip("httpx2")
ROOT = Path(__file__).resolve().parent.parent.parent


QUICK = ("--include-path-regex", "/v1/(word|rate|runs|sememe)$", "--phases", "examples,fuzzing", "--max-examples", "4")


@pytest.mark.parametrize("token", [None, pytest.param("geheim", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "how", [QUICK, pytest.param(("--phases", "examples,coverage,fuzzing", "--max-examples", "20"), marks=pytest.mark.slow)]
)
@pytest.mark.timeout(3600)
def test_it_answers_as_described(bench: Bench, tmp_path: Path, how: tuple[str, ...], token: str | None) -> None:
    """By schemathesis, with all its checks. A body of more than 256 KiB is refused by its size, before its fields are read."""
    statuses = '[400, 401, 403, 404, 405, 409, 413, 415, 422, 429, "5xx"]'
    file = tmp_path / "schemathesis.toml"
    file.write_text(f"request-timeout = 120\n[checks.negative_data_rejection]\nexpected-statuses = {statuses}\n", "utf-8")
    with serving(bench, token) as address:
        command = [
            sys.executable,
            "-c",
            "from schemathesis.cli import schemathesis; schemathesis()",
            "--config-file",
            str(file),
        ]
        header = [] if token is None else ["--header", f"Authorization: Bearer {token}"]
        command += ["run", f"{address}/v1/openapi.json", "--generation-deterministic", *header, *how]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]


def test_each_path_answers_its_example(address: str) -> None:
    with httpx2.Client(base_url=address, timeout=60) as client:
        for path, methods in client.get("/v1/openapi.json").json()["paths"].items():
            if "post" in methods:
                content = methods["post"]["requestBody"]["content"]["application/json"]
                answer = client.post(path, json=content["example"])
                assert answer.status_code == 200, (path, answer.text)
                assert answer.headers["content-type"].partition(";")[0] in methods["post"]["responses"]["200"]["content"]


def test_a_client_reads_an_error_by_the_description(client: TestClient) -> None:
    """A generated client works: it takes the schema of the status, and reads the field that is there."""
    description = client.get("/v1/openapi.json").json()
    answers = description["paths"]["/v1/generate"]["post"]["responses"]

    def read(status: int, body: dict[str, Any]) -> str:
        schema = answers[str(status)]["content"]["application/json"]["schema"]
        kind = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert set(body) == set(kind["required"]) == {"error"}
        return str(body["error"])

    def asked(content: bytes = b"{}", host: str = "localhost", **headers: str) -> str:
        given = {"content-type": "application/json", "host": host, **headers}
        answer = client.post("/v1/generate", content=content, headers=given)
        return f"{answer.status_code} {read(answer.status_code, answer.json())}"

    assert asked('{"run": "sdlm", "prompt": "苹果"}'.encode("gb18030")) == (
        "400 the body is not UTF-8 at byte 29; it seems to be GB18030 (GBK); send JSON as UTF-8"
    )
    assert asked('{"run": "sdlm"}'.encode("utf-16")).endswith("it seems to be UTF-16; send JSON as UTF-8")
    assert asked('{"run": "sdlm"}'.encode("utf-16-le")).endswith("it seems to be UTF-16; send JSON as UTF-8")
    assert asked(origin="http://evil.example").startswith("403 requests of other pages")
    assert asked(b'{"run": "absent"}').startswith("404 no run 'absent' is served; there are sdlm, softmax")
    assert asked(b'{"run": "films-run"}').startswith(
        "409 generate needs a model of headlines or dialogue or a model that predi"
    )
    assert asked(b" " * 300_000).startswith("413 ")
    assert asked(**{"content-type": "text/plain"}).startswith("415 ")
    assert asked(host="lab-server").startswith("421 ")
    assert asked().startswith("422 run: Field required")
    assert "429" in answers
    for method, path in (
        ("get", "/v1/generate"),
        ("delete", "/v1/generate"),
        ("options", "/v1/generate"),
        ("post", "/v1/runs"),
    ):
        answer = client.request(method, path)
        assert (answer.status_code, list(answer.json())) == (405, ["error"])
        assert answer.headers["allow"] == ("GET" if path == "/v1/runs" else "POST")


def test_the_token_is_described(bench: Bench) -> None:
    open_one, guarded = (
        TestClient(make_app(bench, Worker(), token=token), base_url="http://localhost", headers={"authorization": "Bearer x"})
        for token in (None, "x")
    )
    for client, expected in ((open_one, [{}, {"token": []}]), (guarded, [{"token": []}])):
        description = client.get("/v1/openapi.json").json()
        assert description["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
        assert description["paths"]["/v1/runs"]["get"]["security"] == expected


def test_each_field_has_a_text_of_its_own(client: TestClient) -> None:
    schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    fields = {
        (kind, name): field.get("description", "") for kind, one in schemas.items() for name, field in one["properties"].items()
    }
    assert [place for place, text in fields.items() if not text] == []
    shared = [(kind, name) for kind, name in fields if re.match(rf"(\w+, )+{name}: |{name}, \w+: ", fields[kind, name])]
    assert shared == [], "a text of several fields"


def test_the_table_of_the_page_has_the_statuses_of_the_description(client: TestClient) -> None:
    from sememekit.serve.description import WHEN

    page = (ROOT / "docs/workbench.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (\d{3}) \| (.+) \|$", page, re.MULTILINE)) == {
        str(status): when for status, when in WHEN.items()
    }
    answers = client.get("/v1/openapi.json").json()["paths"]["/v1/score"]["post"]["responses"]
    assert set(answers) == {"200", *map(str, WHEN)}
