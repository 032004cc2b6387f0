"""A temporary PostgreSQL server. The server's data and socket are in a temporary folder, and an unprivileged user runs
the server."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

SUPERUSER = "belated"
# The name of a user who must log in with a password, and the password. All other database users log in without a
# password.
USERS = {"locked": "s3cr3t"}


def missing():
    """Return the program or package that a server needs but this machine lacks, or None."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if programs() is None:
        return "PostgreSQL is not installed"
    if os.name != "posix":
        return "the server is started as on POSIX systems"
    return None


def programs():
    """Return the folder of the newest version of PostgreSQL's programs, or None if they are not installed."""
    found = [Path(os.path.realpath(path)).parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    return next((path for path in reversed(found) if (path / "initdb").exists() and (path / "postgres").exists()), None)


class Server:
    """A PostgreSQL server; a context manager.

    With `fsync` off, the server may lose all data if the machine stops, but not if only the server stops. Tests may
    therefore switch `fsync` off.
    """

    def __init__(self, fsync=True):
        self.folder = Path(tempfile.mkdtemp(prefix="belated-pg-", dir="/tmp"))
        # PostgreSQL cannot be run by root.
        self._user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
        if self._user:
            shutil.chown(self.folder, "nobody", "nogroup")
        self._process = None
        os.chmod(self.folder, 0o755)
        initdb = ("initdb", "-D", "data", "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        subprocess.run([programs() / initdb[0], *initdb[1:]], check=True, **self._settings())
        rules = [f"local all {user} scram-sha-256\n" for user in USERS] + ["local all all trust\n"]
        (self.folder / "data/pg_hba.conf").write_text("".join(rules))
        with open(self.folder / "data/postgresql.conf", "a") as settings:
            settings.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\nmax_connections = 200\n")
            settings.write(f"fsync = {'on' if fsync else 'off'}\nlog_line_prefix = '%m [%p] '\n")
            if self._knows("recovery_init_sync_method"):
                # By default, a server that starts after a crash syncs a thousand files one by one.
                settings.write("recovery_init_sync_method = syncfs\n")
        self.start()
        for user, password in USERS.items():
            self.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _settings(self):
        return {"cwd": self.folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **self._user}

    def _knows(self, setting):
        command = [programs() / "postgres", "-D", "data", "-C", setting]
        return subprocess.run(command, stderr=subprocess.DEVNULL, **self._settings()).returncode == 0

    def start(self):
        """Start the server and wait until it accepts connections."""
        with open(self.folder / "log", "ab") as log:
            command = [programs() / "postgres", "-D", "data"]
            settings = self._settings() | {"stdout": log, "stderr": log, "start_new_session": True}
            self._process = subprocess.Popen(command, **settings)
        end = time.monotonic() + 60
        while True:
            try:
                self.execute("SELECT 1")
                return
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.05)

    def stop(self, mode="immediate"):
        """Stop the server: `immediate` stops the server as in a crash; `fast` first ends the sessions."""
        command = [programs() / "pg_ctl", "stop", "-D", "data", "-m", mode, "-w"]
        subprocess.run(command, check=True, **self._settings())
        self._process.wait()

    def close(self):
        """Stop the server and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="postgres", user=SUPERUSER, password=None, **settings):
        """Return the URL of a database, for use as a store."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        more = "".join(f"&{name}={quote(value, safe='')}" for name, value in settings.items())
        return f"postgresql://{user}{secret}@/{database}?host={quote(str(self.folder), safe='')}{more}"

    def execute(self, statement, database="postgres", arguments=None):
        """Execute a statement as the superuser; return its rows, if any. Raise OSError if the server is not running."""
        import psycopg

        try:
            connection = psycopg.connect(self.url(database), autocommit=True)
        except psycopg.OperationalError as error:
            raise OSError(str(error)) from None
        with connection:
            found = connection.execute(statement, arguments)
            return None if found.description is None else found.fetchall()

    def empty(self):
        """Remove the studies."""
        self.execute("DROP SCHEMA IF EXISTS belated CASCADE")
