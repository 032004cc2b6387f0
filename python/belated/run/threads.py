"""An executor of daemon threads: a program ends without waiting for evaluations that still run."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias

_Call: TypeAlias = tuple["Future[Any]", Callable[[], Any]]


class DaemonThreads(Executor):
    """An executor that starts a thread for each of the first `size` calls.

    Python waits at its exit for the threads of a ThreadPoolExecutor, but not for daemon threads.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        if len(self._threads) < self._size:
            thread = threading.Thread(target=_work, args=(self._calls,), name="belated", daemon=True)
            thread.start()
            self._threads.append(thread)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End each thread after its call. A run cancels the calls that wait, so `cancel_futures` is ignored."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads if wait else ():
            thread.join()


def _work(calls: "SimpleQueue[_Call | None]") -> None:
    """Make calls until the queue yields None."""
    while (call := calls.get()) is not None:
        future, function = call
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        # While the thread waits, it must not keep the results of the last call alive.
        del call, future, function
