"""The API agrees with its OpenAPI description, for valid and invalid requests generated from the description."""

import re
import sys
from pathlib import Path

import pytest

from campaigns import service


@pytest.fixture
def serve(monkeypatch):
    """The fault program `serve`, imported by its name."""
    pytest.importorskip("schemathesis")
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    monkeypatch.syspath_prepend(str(Path(service.__file__).parent))
    import serve

    yield serve
    sys.modules.pop("serve", None)


def test_answers_follow_the_description_without_server_errors(serve, tmp_path):
    harness = sys.modules["harness"]
    url, failures = f"sqlite:///{tmp_path / 'studies.db'}", harness.Failures()
    serve.some_studies(url)
    with service.Service(url) as running:
        statuses = serve.ask_everything(running, 240, failures)
        code, said = running.stop()
    assert failures == [] and code == 0 and "Traceback" not in said
    assert sum(statuses.values()) == 240 and statuses[200] > 30 and statuses[422] > 10


def test_the_description_names_every_path_and_needs_the_token(client, running):
    import httpx

    answer = httpx.get(f"{running.address}/openapi.json", timeout=60)
    description = answer.json()
    # Descriptions of problems occur many times, so a large one would make the whole description huge.
    assert len(answer.content) < 400_000
    paths = {(path, method) for path, methods in description["paths"].items() for method in methods}
    study = "/v1/studies/{name}"
    assert paths == {
        ("/v1/user", "get"),
        ("/v1/studies", "get"),
        ("/v1/studies", "post"),
        (study, "get"),
        (f"{study}/definition", "get"),
        (f"{study}/best", "get"),
        (f"{study}/forecast", "get"),
        (f"{study}/finals", "get"),
        (f"{study}/importance", "get"),
        (f"{study}/chart", "get"),
        (f"{study}/suggest", "post"),
        (f"{study}/add", "post"),
        (f"{study}/table", "post"),
        (f"{study}/abandon", "post"),
        (f"{study}/trials", "get"),
        (f"{study}/trials/{{number}}/history", "get"),
        (f"{study}/trials/{{number}}/check", "post"),
        (f"{study}/trials/{{number}}", "get"),
        (f"{study}/trials/{{number}}/observe", "post"),
        (f"{study}/trials/{{number}}/fail", "post"),
        (f"{study}/trials/{{number}}/abandon", "post"),
        (f"{study}/trials/{{number}}/report", "post"),
        (f"{study}/trials/{{number}}/stop", "post"),
        (f"{study}/trials/{{number}}/note", "post"),
        (f"{study}/trials/{{number}}/confirm", "post"),
        (f"{study}/trials/{{number}}/withdraw", "post"),
        (f"{study}/withdraw", "post"),
    }
    for path, method in paths:
        operation = description["paths"][path][method]
        assert operation["security"] == [{"HTTPBearer": []}] and {"401", "403", "422", "503"} <= set(
            operation["responses"]
        )
    page = httpx.get(f"{running.address}/docs").text
    assert all(f"<code>{method.upper()} {path}</code>" in page for path, method in paths)
    assert "<script" not in page and all(f"<code>{name}</code>" in page for name in ("expires_after", "since", "amend"))
    links = set(re.findall('href="#(.*?)"', page))
    assert {"TrialAnswer", "Suggest"} <= links <= set(re.findall('id="(.*?)"', page))
