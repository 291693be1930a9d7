"""The description of the endpoint says what the endpoint does: types, statuses, examples, and a text for each field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings

from sememekit.serve.app import make_app
from sememekit.serve.runs import Bench
from sememekit.serve.worker import Worker
from tests.serve.conftest import serving

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
httpx2 = pytest.importorskip("httpx2")
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def described(address: str) -> Any:
    return of(address)


@pytest.fixture(scope="module")
def guarded(bench: Bench) -> Iterator[Any]:
    with serving(bench, "geheim") as address:
        yield of(address, authorization="Bearer geheim")


def of(address: str, **headers: str) -> Any:
    schema = schemathesis.openapi.from_url(f"{address}/v1/openapi.json", headers=headers)
    # A body of more than 256 KiB is refused by its size, before its fields are looked at.
    allowed = [*schema.config.checks.negative_data_rejection.expected_statuses, "413"]
    schema.config.checks.negative_data_rejection.expected_statuses = allowed
    return schema


quick, thorough, with_token = (schemathesis.pytest.from_fixture(name) for name in ("described", "described", "guarded"))
patient = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.mark.parametrize("number", [0])
def test_each_path_answers_its_example(address: str, number: int) -> None:
    with httpx2.Client(base_url=address, timeout=60) as client:
        for path, methods in client.get("/v1/openapi.json").json()["paths"].items():
            if "post" in methods:
                content = methods["post"]["requestBody"]["content"]["application/json"]
                answer = client.post(path, json=content["example"])
                assert answer.status_code == 200, (path, answer.text)
                assert answer.headers["content-type"].partition(";")[0] in methods["post"]["responses"]["200"]["content"]


@pytest.mark.slow
@thorough.parametrize()
@settings(patient, max_examples=60)
def test_it_answers_as_described(case: Any) -> None:
    case.call_and_validate(timeout=120)


@pytest.mark.slow
@with_token.parametrize()
@settings(patient, max_examples=10)
def test_it_answers_as_described_with_a_token(case: Any) -> None:
    case.call_and_validate(timeout=120, headers={"authorization": "Bearer geheim"})


@quick.include(path_regex="next-words|word$|rate|runs|segment").parametrize()
@settings(patient, max_examples=3)
def test_some_paths_answer_as_described(case: Any) -> None:
    case.call_and_validate(timeout=120)


def test_a_client_reads_an_error_by_the_description(client: TestClient) -> None:
    """What a generated client does: it takes the schema of the status, and reads the field that is there."""
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
        "400 the body is not UTF-8 at byte 27; it seems to be GB18030 (GBK); send JSON as UTF-8"
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
    shared = [(kind, name) for kind, name in fields if re.match(rf"(\w+, )*{name}(, \w+)*: ", fields[kind, name])]
    assert shared == [], "a text of several fields"


def test_the_table_of_the_page_has_the_statuses_of_the_description(client: TestClient) -> None:
    from sememekit.serve.description import WHEN

    page = (ROOT / "docs/workbench.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (\d{3}) \| (.+) \|$", page, re.MULTILINE)) == {
        str(status): when for status, when in WHEN.items()
    }
    answers = client.get("/v1/openapi.json").json()["paths"]["/v1/score"]["post"]["responses"]
    assert set(answers) == {"200", *map(str, WHEN)}
