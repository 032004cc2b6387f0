"""`belated serve` in a separate process, and a client that repeats a request if its answer is lost."""

import os
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


class Service:
    """A server for the studies at a URL; a context manager. After a restart, the server uses the same port."""

    def __init__(self, url, *arguments, token=TOKEN):
        self.url = url
        self.port = 0
        self.token = token
        self._arguments = arguments
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
