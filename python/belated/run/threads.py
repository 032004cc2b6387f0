"""An executor of daemon threads, so that a program can end while evaluations still run."""

import atexit
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Any

# Seconds for which a program waits at its end for evaluations that still run.
SECONDS_AT_EXIT = 1.0


class DaemonThreads(Executor):
    """An executor that starts a thread for each of the first `size` calls.

    Python waits at its exit for the threads of a ThreadPoolExecutor, but not for daemon threads.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[Any] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        if len(self._threads) < self._size:
            self._threads.append(threading.Thread(target=self._work, name="belated", daemon=True))
            self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End each thread after its call. A run cancels the calls that wait, so `cancel_futures` is ignored."""
        for _ in self._threads:
            self._calls.put(None)
        if not wait:
            atexit.register(_end, self._threads)
            return
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if call[0].set_running_or_notify_cancel():
                try:
                    call[0].set_result(call[1]())
                except BaseException as error:
                    call[0].set_exception(error)
            # While the thread waits, it must not keep the result alive.
            del call


def _end(threads: list[threading.Thread]) -> None:
    """Raise SystemExit in the threads that still evaluate, and wait for them, for at most SECONDS_AT_EXIT.

    Until Python 3.13, the interpreter at its exit ends a daemon thread that returns from compiled code. If this code is
    C++, the whole program can abort.
    """
    # Only a program that ends during an evaluation needs ctypes.
    import ctypes

    deadline = time.monotonic() + SECONDS_AT_EXIT
    for thread in filter(threading.Thread.is_alive, threads):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
