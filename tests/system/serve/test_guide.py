"""The commands of docs/serve.md run and give the answers on the page."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import belated as bl
from campaigns import service
from tests.system.docs.pages import DOCS

PAGE = DOCS / "serve.md"
CLIENT = "curl"


@pytest.mark.skipif(not PAGE.exists(), reason="the installed package comes without its pages")
def test_the_commands_of_the_page_run(tmp_path):
    reason = service.missing()
    if reason is not None:
        pytest.skip(reason)
    if shutil.which("bash") is None or shutil.which(CLIENT) is None:
        pytest.skip("bash or curl is not installed")
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, arguments in (("belated", "-m belated.cli"), ("python", "")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (tools / name).chmod(0o755)
    folders = [str(Path(bl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": ":".join(filter(None, folders))}
    script = "set -m\n" + "echo\n".join(blocks).replace("8350", port)
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    answers = [json.loads(text) for text in re.sub(r"\}\{", "}\n{", run.stdout).splitlines() if text.startswith("{")]
    created, suggested, observed, failed, shown = answers
    assert created["optimizer"] == "BayesOpt" and [trial["number"] for trial in suggested["trials"]] == [0, 1]
    assert observed["value"] == 0.31 and failed["error"]["message"] == "the pump stopped"
    assert shown["counts"] == {"pending": 0, "observed": 1, "failed": 1, "abandoned": 0, "stopped": 0, "withdrawn": 0}
    # The commands must not show the token to other users in files or in arguments of processes.
    assert all((tmp_path / name).stat().st_mode & 0o077 == 0 for name in ("token.txt", "header.txt"))
    assert "other users" not in run.stderr and not re.search(r"curl[^;]*cat token", script)
    study = bl.Study.load("dose-finding", tmp_path / "studies.db")
    assert study.best_value_ == 0.31 and study.trial(0).expires_at - study.trial(0).suggested_at > 604800
