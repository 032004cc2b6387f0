"""Fixtures for the tests of `belated serve`: a server in a separate process, and studies in its file."""

import os

import pytest

import belated as bl
from campaigns import chromium, service


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """A server that all tests share; each test makes new studies in the file `running.url`."""
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    with service.Service(f"sqlite:///{tmp_path_factory.mktemp('serve') / 'studies.db'}") as started:
        yield started
        code, said = started.stop()
        # SIGTERM must end the server without an error.
        assert code == 0 and "Traceback" not in said and started.token not in said, said


@pytest.fixture
def client(running):
    """An HTTP client that sends the token."""
    with running.client() as client:
        yield client


@pytest.fixture
def study(running, request):
    """A new study of random search in the server's store. The test's process also has the study open."""
    return new_study(running, request, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))


@pytest.fixture
def create(running, request):
    """Return a function that makes a study with an optimizer in the store of the server."""
    return lambda optimizer: new_study(running, request, optimizer)


def new_study(running, request, optimizer):
    """A study whose name is the name of the test."""
    return bl.Study(request.node.name[:900], running.url, optimizer)


@pytest.fixture
def path(request):
    """The path of the test's study in URLs."""
    from urllib.parse import quote

    return f"/v1/studies/{quote(request.node.name[:900], safe='')}"


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    """The folder in which the browser stores files."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads):
    """A headless Chromium."""
    reason = chromium.missing()
    if reason is not None:
        missing = pytest.fail if os.environ.get("CI") else pytest.skip
        missing(reason)
    started = chromium.browser(downloads=downloads)
    yield started
    started.quit()
