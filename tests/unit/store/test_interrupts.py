"""After Ctrl-C at any moment of a call all locks are released, and a write is complete or absent."""

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
    """For each place in the code of a function: the name of the instruction, and its exception handlers."""
    entries = dis.Bytecode(code).exception_entries
    names = [dis.opname[number] for number in code.co_code[::2]]
    return [(name, [e.target for e in entries if e.start <= 2 * i < e.end]) for i, name in enumerate(names)]


class Interrupts:
    """A context in which KeyboardInterrupt is raised at the `n`-th place of the package where Python checks for
    signals.

    Python checks at the start of a function, after a yield, at the next pass of a loop, and after each call.
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
                # An interrupt after a call has the exception handlers of the call. The interrupt can be raised at this
                # place if the handlers agree.
                called = last[0].startswith("CALL") and last[1] == place[1]
                last = place
                if called or place[0].startswith(("RESUME", "JUMP_BACKWARD")):
                    self.left -= 1
                    if self.left < 0:
                        raise KeyboardInterrupt
            return local

        return None if self.left < 0 else local


def nothing_is_locked(url, postgres):
    """Raise an error if a writer of the store would have to wait."""
    if postgres is None:
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)
        with contextlib.closing(connection):
            connection.execute("BEGIN IMMEDIATE")
    else:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        assert postgres.execute(statement) == [(0,)]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """The URL of an empty store, and its server or None."""
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
    # An interactive session also keeps the last traceback, and so all its frames.
    kept = []
    calls = {
        "create": lambda: bl.Study(f"s{len(kept)}", store, search),
        "suggest": study.suggest,
        "observe": lambda: study.observe(len(kept) % 5, len(kept), amend=True),
    }
    # Each place takes a few milliseconds, and more with a server.
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
    # Other threads of the process do not have to wait for the lock either.
    found = []
    thread = threading.Thread(target=lambda: found.append(study.suggest().number), daemon=True)
    thread.start()
    thread.join(30.0)
    assert found == [bl.Study.load("s", url).n_trials - 1] == [study.n_trials - 1]
    open_store(url).check()
