"""The output, files and exit codes of the command line."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import belated as bl
from belated import _core, cli, replays


def run(*arguments: str) -> int:
    return cli.main(list(arguments))


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        run("--version")
    assert end.value.code == 0
    assert capsys.readouterr().out == f"belated {_core.__version__}\n"


def test_help_is_shown_without_a_command(capsys):
    assert run() == cli.DONE
    assert "replay" in capsys.readouterr().out


def test_replay_without_a_name_lists_the_replays(capsys):
    assert run("replay") == cli.DONE
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(replays.found())


@pytest.mark.parametrize(
    "arguments",
    [
        ["unknown"],
        ["lr", "--runs", "0"],
        ["lr", "--runs", "many"],
        ["lr", "--seed", "-1"],
        ["svm", "--data", "/no/such/folder"],
    ],
)
def test_unusable_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        run("replay", *arguments)
    assert end.value.code == 2
    assert "error" in capsys.readouterr().err


def test_error_for_a_missing_library_names_the_extra(capsys, monkeypatch):
    pytest.importorskip("sklearn")
    from belated.replays import runner

    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    assert run("replay", "lr") == cli.FAILED
    assert "pip install 'belated[replays]'" in capsys.readouterr().err


def test_error_for_a_missing_library_names_its_package(capsys, monkeypatch):
    from belated.replays import runner

    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    assert run("replay", "svm") == cli.FAILED
    message = capsys.readouterr().err
    assert "scikit-learn" in message and "needs sklearn" not in message


def test_the_package_is_a_command():
    command = [sys.executable, "-m", "belated", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0] == "belated"
    wrong = subprocess.run([*command[:3], "no-such-command"], capture_output=True, text=True)
    assert wrong.returncode == 2 and wrong.stderr.startswith("usage: belated ")


@pytest.mark.parametrize("replay", ["cnn", "cifar"])
def test_replays_that_train_networks_name_the_extra_that_installs_torch(replay, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    from belated.replays import runner

    found = runner.find_spec
    monkeypatch.setattr(runner, "find_spec", lambda name: None if name == "torch" else found(name))
    assert run("replay", replay) == cli.FAILED
    assert "this needs torch: pip install 'belated[torch]'" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_an_error_before_the_run(capsys, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr("belated.replays.runner.Replay.run", lambda *_: pytest.fail("worked first"))
    assert run("replay", "lr", "--json", str(tmp_path / "none" / "x.json")) == cli.FAILED
    assert "there is no folder" in capsys.readouterr().err


def test_missing_data_end_with_a_message(capsys, tmp_path):
    pytest.importorskip("sklearn")
    assert run("replay", "svm", "--data", str(tmp_path)) == cli.FAILED
    assert "pima_diabetes.csv" in capsys.readouterr().err


def test_a_replay_writes_its_table_numbers_and_figure(capsys, tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    numbers, figure = tmp_path / "lr.json", tmp_path / "lr.png"
    arguments = ["--runs", "2", "--iterations", "4", "--json", str(numbers), "--plot", str(figure)]
    assert run("replay", "lr", *arguments) == cli.DONE
    printed = capsys.readouterr().out
    assert "s/suggestion" in printed
    assert "GP-TS-SDF" in printed
    report = json.loads(numbers.read_text())
    assert (report["runs"], report["seed"], report["faithful"]) == (2, 0, False)
    assert len(report["settings"]) == 12
    assert set(report["settings"][0]) >= {
        "algorithm",
        "delays",
        "iteration",
        "mean",
        "stderr",
        "seconds_per_suggestion",
    }
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a process group")
def test_ctrl_c_ends_a_replay():
    pytest.importorskip("sklearn")
    command = [sys.executable, "-m", "belated.cli", "replay", "lr", "--runs", "200", "--iterations", "100"]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(4)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == cli.INTERRUPTED
    assert b"Traceback" not in errors


@pytest.mark.skipif(os.name != "posix", reason="closes a pipe")
@pytest.mark.parametrize("command", ["study show", "study list", "study export", "study check", "replay"])
def test_a_closed_pipe_ends_a_command_quietly(tmp_path, command):
    store = tmp_path / "studies.db"
    for number in range(3):
        study = bl.Study(f"s{number}", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
        study.suggest(n=20)
    arguments = command.split()
    if arguments[0] == "study":
        arguments.append(str(store))
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        process = subprocess.run([sys.executable, "-m", "belated.cli", *arguments], stdout=pipe, stderr=subprocess.PIPE)
    assert (process.returncode, process.stderr) == (cli.BROKEN_PIPE, b"")


@pytest.mark.skipif(os.name != "posix", reason="uses head")
def test_output_can_be_piped_to_head(tmp_path):
    study = bl.Study("s", tmp_path / "s.db", bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    study.suggest(n=2000)  # the output is longer than the buffer of a pipe
    script = f"{sys.executable} -m belated.cli study export {tmp_path / 's.db'} | head -1; echo ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    first, code = shown.stdout.splitlines()
    assert json.loads(first)["study"] == "s" and (int(code), shown.stderr) == (cli.BROKEN_PIPE, "")


def stream(encoding, data=b""):
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-16"])
def test_output_is_complete_in_every_encoding_of_the_terminal(tmp_path, monkeypatch, capsys, encoding):
    store, other = tmp_path / "s.db", tmp_path / "other.db"
    study = bl.Study("naïve 研究", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0))
    for trial in study.suggest(n=3, key="鍵"):
        study.observe(trial, 0.5, attrs={"ü": "研究"})
    assert run("study", "export", str(store)) == cli.DONE
    exported = capsys.readouterr().out.encode()
    for command in (["export"], ["export", "--salvage"]):
        monkeypatch.setattr(sys, "stdout", stream(encoding))
        assert run("study", *command, str(store)) == cli.DONE
        assert sys.stdout.buffer.getvalue() == exported
    # The encoding of the terminal must not affect input either.
    monkeypatch.setattr(sys, "stdout", stream(encoding))
    monkeypatch.setattr(sys, "stdin", stream(encoding, exported))
    assert run("study", "import", "-", str(other)) == cli.DONE
    assert bl.Study.load("naïve 研究", other).trial(2).attrs == {"ü": "研究"}
    for command in ("list", "show", "check"):
        monkeypatch.setattr(sys, "stdout", stream(encoding))
        assert run("study", command, str(store)) == cli.DONE
        assert b"na" in sys.stdout.buffer.getvalue().replace(b"\0", b"")
    for arguments in ([], ["replay"]):
        monkeypatch.setattr(sys, "stdout", stream(encoding))
        assert run(*arguments) == cli.DONE


@pytest.mark.skipif(os.name != "posix", reason="closes file descriptors in a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_standard_streams(tmp_path, closed):
    store = tmp_path / "s.db"
    bl.Study("s", store, bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)).suggest(n=2)
    command = ["study", "import", "-", tmp_path / "other.db"] if closed == "<&-" else ["study", "export", store]
    if closed == "2>&-":
        command.insert(2, "--salvage")
    script = " ".join(map(str, [sys.executable, "-m", "belated.cli", *command, closed]))
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    if closed == "2>&-":
        assert shown.returncode == cli.DONE
        assert [json.loads(line)["study"] for line in shown.stdout.splitlines()] == ["s"] * 3
    else:
        assert shown.returncode == cli.FAILED and shown.stdout == ""
        assert shown.stderr.startswith("belated: ") and len(shown.stderr.splitlines()) == 1
