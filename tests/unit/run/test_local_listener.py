"""The socket for workers on the same machine does not depend on the length of a path, leaves no file behind, and serves
one user only."""

import os
import socket
import sys
import tempfile
import threading
from multiprocessing import current_process
from multiprocessing.connection import Client

import pytest

from belated.run.local_listener import local_listener


@pytest.fixture
def long_folder(tmp_path, monkeypatch):
    """A folder for temporary files with a path that is too long for a socket."""
    folder = tmp_path / ("job-" + "0123456789" * 10)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setitem(current_process()._config, "tempdir", None)
    return folder


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_processes_connect_although_the_folder_for_temporary_files_has_a_long_path(platform, long_folder, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    with local_listener() as listener:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True)
        thread.start()
        with Client(listener.address) as client:
            client.send_bytes(b"hello")
            thread.join(60)
            assert accepted[0].recv_bytes() == b"hello"
            accepted[0].close()
        if platform == "linux":
            assert list(long_folder.iterdir()) == []
        with local_listener() as other:  # several runs at a time
            assert other.address != listener.address


@pytest.mark.skipif(sys.platform != "linux", reason="for Linux")
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_processes_of_other_users_are_refused():
    with local_listener() as listener:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True)
        thread.start()
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(listener.address)
                stranger.settimeout(60)
                os._exit(len(stranger.recv(1)))  # the end of the data
        assert os.waitpid(child, 0)[1] == 0 and accepted == []
        with Client(listener.address):
            thread.join(60)
        assert len(accepted) == 1
        accepted[0].close()
