"""Encryption by the server: certificates, and connections whose handshakes do not end."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress

import pytest

import belated as bl
from belated import cli
from campaigns import service

pytestmark = [
    pytest.mark.skipif(service.missing() is not None, reason="fastapi, uvicorn or httpx is not installed"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
]

# A server with short handshakes and at most 100 open files, and hence 50 connections.
PROGRAM = """
import resource, sys
from belated import cli
from belated.serve import connections

connections.HANDSHAKE = float(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """The files of a certificate for 127.0.0.1 and its key."""
    return service.certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def url(tmp_path):
    """The URL of a store with one study."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    bl.Study("study", url, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    return url


@pytest.mark.parametrize("in_one_file", [False, True])
def test_requests_are_encrypted_at_any_address(url, pair, tmp_path, in_one_file):
    certificate, key = pair
    if in_one_file:
        both = tmp_path / "both.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        arguments = ["--tls-cert", str(both)]
    else:
        arguments = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    with service.Service(url, "--host", "0.0.0.0", *arguments) as running:
        assert running.address.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        with running.client(verify=context) as client:
            client.base_url = f"https://127.0.0.1:{running.port}"
            assert client.post("/v1/studies/study/suggest", json={"n": 2}).status_code == 200
            assert client.get("/").status_code == 200
            large = {"error": "x" * (1 << 19)}
            assert client.post("/v1/studies/study/trials/0/fail", json=large).status_code == 200
        # A client without encryption gets no answer, and writes nothing to the log.
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with suppress(ConnectionError):
                assert b"HTTP" not in plain.recv(1000)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        with pytest.warns(DeprecationWarning):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain, pytest.raises(OSError):
            old.wrap_socket(plain)
        assert running.stop() == (0, "")


@pytest.mark.skipif(os.name != "posix", reason="limits the files of a process")
def test_handshakes_count_and_end(url, pair):
    certificate, key = map(str, pair)
    environment = os.environ | {"BELATED_TOKEN": service.TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, "3", "serve", url, "--port", "0"]
    command += ["--tls-cert", certificate, "--tls-key", key]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            port = int(process.stdout.readline().split(" served at ")[1].split(",")[0].rpartition(":")[2])
            silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(120)]
            began = time.monotonic()
            # Those above the limit are closed at once, and the others after the time of a handshake.
            for each in silent:
                with suppress(ConnectionError):
                    assert each.recv(1000) == b""
                each.close()
            assert time.monotonic() - began < 25
            import httpx

            context = ssl.create_default_context(cafile=certificate)
            headers = {"Authorization": f"Bearer {service.TOKEN}"}
            with httpx.Client(verify=context, headers=headers, timeout=30) as client:
                assert client.get(f"https://127.0.0.1:{port}/v1/studies").status_code == 200
        finally:
            process.terminate()
            _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said
    assert said.count("connections are refused") == 1


def test_a_changed_certificate_is_used_for_new_connections(url, pair, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for old, new in zip(pair, (certificate, key), strict=True):
        shutil.copy(old, new)

    def common_name(port):
        # The certificate is its own authority.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain, context.wrap_socket(plain) as wrapped:
            found = wrapped.getpeercert(binary_form=True)
        return "renewed" if b"renewed" in found else "first"

    def until(port, expected):
        end = time.monotonic() + 20
        while (found := common_name(port)) != expected and time.monotonic() < end:
            time.sleep(0.3)
        return found == expected

    with service.Service(url, "--tls-cert", str(certificate), "--tls-key", str(key)) as running:
        context = ssl.create_default_context(cafile=str(pair[0]))
        with running.client(verify=context) as client:
            client.base_url = f"https://127.0.0.1:{running.port}"
            assert client.get("/v1/studies").status_code == 200
            # A certificate without its key leaves the earlier one in use.
            command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
            command += ["-keyout", tmp_path / "new.pem", "-out", certificate, "-subj", "/CN=renewed"]
            subprocess.run(command, check=True, capture_output=True)
            for _ in range(4):
                time.sleep(0.6)
                assert common_name(running.port) == "first"
            os.replace(tmp_path / "new.pem", key)
            assert until(running.port, "renewed")
            assert client.get("/v1/studies").status_code == 200  # on the connection that is open
        code, said = running.stop()
    assert code == 0 and said.count("the earlier certificate stays in use") == 1, said


def test_certificates_that_are_not_usable_are_refused(url, pair, tmp_path, capsys, monkeypatch):
    certificate, key = map(str, pair)
    monkeypatch.setenv("BELATED_TOKEN", service.TOKEN)
    locked = tmp_path / "locked.pem"
    command = ["openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:secret", "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    text = tmp_path / "text.pem"
    text.write_text("text")
    for arguments, message in (
        (["--tls-cert", certificate], "are not usable"),
        (["--tls-cert", str(text), "--tls-key", key], "are not usable"),
        (["--tls-cert", str(tmp_path / "none"), "--tls-key", key], "are not usable"),
        (["--tls-cert", certificate, "--tls-key", str(locked)], "no password"),
        (["--tls-key", key], "without --tls-cert"),
    ):
        assert cli.main(["serve", url, "--port", "0", *arguments]) == cli.FAILED
        said = capsys.readouterr().err
        assert message in said and "Traceback" not in said
