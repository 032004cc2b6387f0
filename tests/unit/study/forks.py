"""Check a process that was forked while another thread of its parent used a study."""

import os
import signal
import threading
from contextlib import ExitStack


def suggests_in_a_fork(study, *locks):
    """Return whether a forked process can suggest in a study although a thread of its parent held these locks."""
    holds, done = threading.Event(), threading.Event()

    def hold():
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(lock)
            holds.set()
            done.wait(60)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    holds.wait(60)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            study.suggest()
            code = 0
        finally:
            os._exit(code)
    # A child that waits forever for a lock is killed.
    killer = threading.Timer(20, os.kill, (child, signal.SIGKILL))
    killer.start()
    status = os.waitpid(child, 0)[1]
    killer.cancel()
    done.set()
    thread.join()
    return status == 0
