"""The command `belated serve`: invalid arguments, the command's output, and how the server ends."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import belated as bl
from belated import cli
from belated.serve import command
from belated.serve.roles import User
from belated.serve.tokens import read_tokens
from campaigns import service

TOKEN = "0123456789abcdef"

needs_framework = pytest.mark.skipif(service.missing() is not None, reason="fastapi, uvicorn or httpx is not installed")


@pytest.fixture
def url(tmp_path):
    """The URL of a store with one study."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    bl.Study("study", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    return url


def refusal(capsys, monkeypatch, *arguments, token=None):
    """Run the command with arguments for which the server does not start; return the error output."""
    monkeypatch.delenv("BELATED_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("BELATED_TOKEN", token)
    assert cli.main(["serve", *map(str, arguments)]) == cli.FAILED
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("belated: ")
    return err


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_server_does_not_start_without_a_token(capsys, monkeypatch, url, host):
    said = refusal(capsys, monkeypatch, url, "--host", host)
    assert "every request needs a token" in said and "secrets.token_urlsafe" in said


@pytest.mark.parametrize("token", ["short", "a" * 15, "a" * 1001, "ü" * 20, "two words of one", "with\ttab-in-it"])
@pytest.mark.parametrize("by_file", [True, False])
def test_a_token_that_is_not_usable_is_refused_and_not_shown(capsys, monkeypatch, url, tmp_path, token, by_file):
    file = tmp_path / "token"
    file.write_text(token, encoding="utf-8")
    where = ["--token-file", file] if by_file else []
    said = refusal(capsys, monkeypatch, url, *where, token=None if by_file else token)
    assert token not in said and str(file if by_file else "BELATED_TOKEN") in said


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe" * 10])
def test_a_file_without_a_token_is_refused(capsys, monkeypatch, url, tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    # The token in the environment is not used in place of the file's token, because the two tokens may differ.
    assert "token" in refusal(capsys, monkeypatch, url, "--token-file", tmp_path / "token", token=TOKEN)
    assert "none" in refusal(capsys, monkeypatch, url, "--token-file", tmp_path / "none", token=TOKEN)


def test_the_token_of_the_file_takes_precedence_over_the_environment(monkeypatch, tmp_path):
    (tmp_path / "token").write_text(f"{TOKEN}-of-file\n")
    monkeypatch.setenv("BELATED_TOKEN", f" {TOKEN}\n")
    for file, token in ((tmp_path / "token", f"{TOKEN}-of-file"), (None, TOKEN)):
        found = read_tokens(file)
        assert found.user(token.encode()) == User("all") and len(found._users()) == 1


@pytest.mark.skipif(os.name != "posix", reason="files have no mode of this kind")
@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o400, False), (0o640, True), (0o644, True)])
def test_a_token_file_readable_by_others_warns(capsys, tmp_path, mode, warned):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(mode)
    assert read_tokens(file).user(TOKEN.encode()) == User("all")
    out, err = capsys.readouterr()
    assert out == "" and (f"other users can read the token in {file}: chmod 600" in err) == warned and TOKEN not in err


@pytest.mark.parametrize("port", ["-1", "65536", "http", "1.5"])
def test_unusable_ports_are_refused(capsys, url, port):
    with pytest.raises(SystemExit) as end:
        cli.main(["serve", url, "--port", port])
    assert end.value.code == 2 and "is not a port" in capsys.readouterr().err


@needs_framework
def test_error_names_a_port_in_use(capsys, monkeypatch, url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refusal(capsys, monkeypatch, url, "--port", taken.getsockname()[1], token=TOKEN)
    assert "cannot be listened at" in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "fe80::1%eth0"])
def test_addresses_other_than_the_loopback_are_recognised(host):
    assert not command._is_loopback(host)


@needs_framework
@pytest.mark.parametrize("host", ["localhost", "::1", "127.0.0.2"])
def test_other_addresses_of_the_loopback_are_served_without_a_notice(url, host):
    try:
        socket.create_server((host, 0), family=socket.getaddrinfo(host, 0)[0][0]).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with service.Service(url, "--host", host) as running, running.client() as client:
        assert client.get("/v1/studies").status_code == 200
        assert running.stop() == (0, "")


def test_missing_libraries_are_named_with_their_extra(capsys, monkeypatch, url):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert "pip install 'belated[serve]'" in refusal(capsys, monkeypatch, url, token=TOKEN)


@needs_framework
def test_a_store_that_cannot_be_read_is_an_error_at_once(capsys, monkeypatch, tmp_path):
    (tmp_path / "text.db").write_text("text" * 1000)
    assert "not a database" in refusal(capsys, monkeypatch, tmp_path / "text.db", token=TOKEN)
    assert "is not usable" in refusal(capsys, monkeypatch, "mysql://u:secret@h/d", token=TOKEN)


@needs_framework
def test_messages_never_contain_the_password_of_the_store(capsys, monkeypatch):
    pytest.importorskip("psycopg")
    said = refusal(capsys, monkeypatch, "postgresql://u:s3cr3t@127.0.0.1:1/d", token=TOKEN)
    assert "s3cr3t" not in said and "postgresql://u@127.0.0.1:1/d" in said


@needs_framework
@pytest.mark.parametrize("exists", [False, True])
def test_an_empty_store_can_be_served(tmp_path, exists):
    if exists:
        (tmp_path / "new.db").touch()
    with service.Service(tmp_path / "new.db") as running, running.client() as client:
        assert client.get("/v1/studies").json() == {"studies": [], "next": None}
        assert client.get("/v1/studies/s").status_code == 404
        definition = {"problem": {"candidates": {"kind": "f", "rows": [[1.0]]}}, "strategy": {"kind": "RandomSearch"}}
        assert client.post("/v1/studies", json={"name": "s", "definition": definition}).status_code == 201
        assert client.get("/v1/studies").json() == {"studies": [{"name": "s"}], "next": None}


@needs_framework
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_acknowledged_calls_are_stored(url, kind):
    with service.Service(url) as running:
        acknowledged, going = [], True

        def ask():
            with running.client() as client:
                while going:
                    try:
                        answer = client.post("/v1/studies/study/suggest")
                    except Exception:  # the server has ended
                        return
                    assert answer.status_code == 200
                    acknowledged.append(answer.json()["trials"][0]["number"])

        crowd = [threading.Thread(target=ask) for _ in range(3)]
        for thread in crowd:
            thread.start()
        end = time.monotonic() + 30
        while len(acknowledged) < 10 and time.monotonic() < end:
            time.sleep(0.05)
        running.process.send_signal(kind)
        out, err = running.process.communicate(timeout=30)
        going = False
        for thread in crowd:
            thread.join()
    assert (running.process.returncode, out, err) == (0, "", "")
    n = bl.Study.load("study", url).n_trials
    # The server completes and answers the running requests, so every stored trial was acknowledged.
    assert sorted(acknowledged) == list(range(n)) and n > 0
    # The server has closed its last connection, so SQLite has removed its additional files.
    folder = os.path.dirname(url.removeprefix("sqlite:///"))
    assert os.listdir(folder) == ["studies.db"]


SLOW = """
import sys, time
from belated import Study, cli
from belated.serve import command
from belated.serve.roles import User
from belated.serve.tokens import read_tokens

def suggest(study, *arguments, suggest=Study.suggest, **settings):
    print("begun", flush=True)
    time.sleep(4)
    return suggest(study, *arguments, **settings)

command._PATIENCE, Study.suggest = 1, suggest
sys.exit(cli.main(sys.argv[1:]))
"""


@needs_framework
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_a_call_still_running_at_shutdown_gets_503_and_is_completed(url):
    import httpx

    arguments = [sys.executable, "-c", SLOW, "serve", url, "--port", "0"]
    environment = os.environ | {"BELATED_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        address = process.stdout.readline().split(" served at ")[1].split(",")[0]
        answers = []

        def ask():
            headers = {"Authorization": f"Bearer {TOKEN}"}
            answers.append(httpx.post(f"{address}/v1/studies/study/suggest", headers=headers, timeout=60))

        # One request is being carried out, and another request is waiting.
        crowd = [threading.Thread(target=ask) for _ in range(2)]
        for thread in crowd:
            thread.start()
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        for thread in crowd:
            thread.join()
        _, said = process.communicate(timeout=30)
    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(answer.headers["content-type"] == "application/problem+json" for answer in answers)
    assert all("send it again, with its key" in answer.json()["detail"] for answer in answers)
    assert process.returncode == 0 and "Traceback" not in said
    assert bl.Study.load("study", url).n_trials == 1


@needs_framework
def test_the_token_is_absent_from_output_and_lists_of_processes(url, tmp_path):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    with service.Service(url, "--token-file", str(tmp_path / "token"), token="another-one-of-0123") as running:
        with running.client() as client:
            assert client.get("/v1/studies").status_code == 401
        with running.client(token=TOKEN) as client:
            assert client.get("/v1/studies").status_code == 200
        assert TOKEN not in " ".join(running.process.args)
        assert running.stop() == (0, "")


def test_the_framework_is_not_imported_before_it_is_needed():
    program = "import belated.cli, sys; print({'fastapi', 'uvicorn', 'pydantic', 'anyio'} & set(sys.modules))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


@needs_framework
def test_every_error_has_a_status_of_4xx_except_errors_of_the_store():
    from belated.serve.problems import status_of

    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    for kind in below(bl.BelatedError):
        error = kind.__new__(kind)
        expected = {503} if issubclass(kind, bl.errors.StoreError) else {404, 409, 422}
        assert status_of(error) in expected, kind


def test_answers_are_sent_without_waiting_for_an_acknowledgement():
    # asyncio disables Nagle's algorithm only for listening sockets that specify their protocol.
    with command._listening("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP and listening.getsockname()[1] > 0


def test_a_refused_command_leaves_no_signal_handler(tmp_path, monkeypatch):
    monkeypatch.setenv("BELATED_TOKEN", TOKEN)
    before = [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main(["serve", f"sqlite:///{tmp_path / 's.db'}", "--port", port]) == cli.FAILED
    assert [signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)] == before


def test_connections_have_keepalive_and_small_buffers():
    # By default, the system keeps megabytes of answers for a client that does not read.
    with command._listening("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                assert accepted.getsockopt(socket.SOL_SOCKET, option) <= 2 * command._BUFFER
