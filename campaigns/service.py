"""`belated serve` in a separate process, and a client that repeats a request if its answer is lost."""

import os
import ssl
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import belated

TOKEN = "token-of-tests-0123456789"


def missing():
    """Return the package that the server and a client need but this environment lacks, or None."""
    for name in ("fastapi", "uvicorn", "httpx"):
        if find_spec(name) is None:
            return f"{name} is not installed"
    return None


def certificate(folder):
    """Make a certificate for 127.0.0.1 in a folder, by OpenSSL; return its file and the file of its key."""
    certificate, key = Path(folder) / "cert.pem", Path(folder) / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", key, "-out", certificate, "-subj", "/CN=belated", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


def token_file(folder, users):
    """Write a file of users (role, name, token) that only this user can read; return its path."""
    file = Path(folder) / "tokens.txt"
    file.touch(0o600)
    file.write_text("".join(f"{' '.join(user)}\n" for user in users), encoding="utf-8")
    return file


class Service:
    """A server for the studies at a URL; a context manager. After a restart, the server uses the same port.

    `pair` has the files of a certificate and its key; the server then uses TLS.
    """

    def __init__(self, url, *arguments, token=TOKEN, pair=None):
        self.url = url
        self.port = 0
        self.token = token
        self.context = None
        self._arguments = arguments
        if pair is not None:
            certificate, key = map(str, pair)
            self._arguments += ("--tls-cert", certificate, "--tls-key", key)
            self.context = ssl.create_default_context(cafile=certificate)
        self.process = None
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()

    def start(self):
        """Start the server and wait until it accepts requests."""
        command = [sys.executable, "-m", "belated.cli", "serve", str(self.url), "--port", str(self.port)]
        folders = [str(Path(belated.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"BELATED_TOKEN": self.token, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
        self.process = subprocess.Popen(
            [*command, *self._arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if " served at http" not in line:
            raise OSError(f"the server did not start: {line}{self.process.communicate()[1]}")
        self.address = line.split(" served at ")[1].split(",")[0]
        self.port = int(self.address.rpartition(":")[2])

    def stop(self, timeout=30):
        """End the server by SIGTERM; return its exit code and its output."""
        self.process.terminate()
        return self._ended(timeout)

    def kill(self):
        """End the server by SIGKILL; return its output."""
        self.process.kill()
        return self._ended(30)[1]

    def _ended(self, timeout):
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out + err

    def client(self, token=None, **settings):
        """Return an HTTP client (httpx) that sends the token."""
        import httpx

        headers = {"Authorization": f"Bearer {token or self.token}"}
        if self.context is not None:
            settings.setdefault("verify", self.context)
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, **settings)


def answered(client, path, body, end):
    """Send a request until it is answered; return the answer and the number of attempts. Without a body, send GET."""
    import httpx

    attempts = 0
    while True:
        attempts += 1
        try:
            return client.get(path) if body is None else client.post(path, json=body), attempts
        except httpx.TransportError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
