"""After Ctrl-C at any moment of a call, all locks are released, and the event is stored completely or not at all."""

import contextlib
import dis
import functools
import sqlite3
import sys
import threading

import pytest

import belated as bl
from belated.store import open_store
from belated.warn import in_package


@functools.cache
def instructions(code):
    """For each instruction in the bytecode of a function, return the instruction's name and its exception handlers."""
    entries = dis.Bytecode(code).exception_entries
    names = [dis.opname[number] for number in code.co_code[::2]]
    return [(name, [e.target for e in entries if e.start <= 2 * i < e.end]) for i, name in enumerate(names)]


class Interrupts:
    """A context manager that raises KeyboardInterrupt at the `n`-th moment at which Python checks for signals in the
    package.

    Python checks for signals at the start of a function, after a yield, at the next iteration of a loop, and after each
    call.
    """

    def __init__(self, n):
        self.left = n

    def __enter__(self):
        sys.settrace(self._trace)

    def __exit__(self, *error):
        sys.settrace(None)

    def _trace(self, frame, event, argument):
        if not in_package(frame.f_code.co_filename) and frame.f_code.co_filename != contextlib.__file__:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        places = instructions(frame.f_code)
        last = ("", [])

        def local(frame, event, argument):
            nonlocal last
            if event == "opcode":
                place = places[frame.f_lasti // 2]
                # An interrupt after a call goes to the exception handlers of the call. The test raises it at the next
                # instruction, which is equivalent if both instructions have the same handlers.
                called = last[0].startswith("CALL") and last[1] == place[1]
                last = place
                if called or place[0].startswith(("RESUME", "JUMP_BACKWARD")):
                    self.left -= 1
                    if self.left < 0:
                        raise KeyboardInterrupt
            return local

        return None if self.left < 0 else local


def nothing_is_locked(url, postgres):
    """Check that a writer of the store does not have to wait."""
    if postgres is None:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute("BEGIN IMMEDIATE")
    else:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        assert postgres.execute(statement) == [(0,)]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """The URL of an empty store, and the server of the store or None."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studies.db'}", None
    postgres = request.getfixturevalue("postgres")
    return postgres.url(), postgres


@pytest.mark.skipif(sys.version_info < (3, 11), reason="reads the tables of handlers, which 3.10 does not have")
@pytest.mark.parametrize("call", ["create", "suggest", "observe"])
def test_after_an_interrupt_other_processes_write_at_once(place, call):
    url, postgres = place
    search = bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)
    store = open_store(url)
    study = bl.Study("s", store, search)
    study.suggest(n=5)
    # Like an interactive session, keep the last traceback, and with it all its frames.
    kept = []
    calls = {
        "create": lambda: bl.Study(f"s{len(kept)}", store, search),
        "suggest": study.suggest,
        "observe": lambda: study.observe(len(kept) % 5, len(kept), amend=True),
    }
    # The test of an interrupt takes a few milliseconds with SQLite, and more with PostgreSQL, so only every second or
    # every seventh moment is tested.
    step = 2 if postgres is None and call != "create" else 7
    while True:
        interrupts = Interrupts(step * len(kept))
        try:
            with interrupts:
                calls[call]()
        except KeyboardInterrupt as interrupt:
            kept.append(interrupt)
        nothing_is_locked(url, postgres)
        if interrupts.left >= 0:
            break
    assert step * len(kept) > 100
    # Another thread must be able to suggest without waiting.
    found = []
    thread = threading.Thread(target=lambda: found.append(study.suggest().number), daemon=True)
    thread.start()
    thread.join(30.0)
    assert found == [bl.Study.load("s", url).n_trials - 1] == [study.n_trials - 1]
    open_store(url).check()
