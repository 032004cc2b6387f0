"""An executor of daemon threads: a program ends without waiting for evaluations that still run."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Any


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
        for thread in self._threads if wait else ():
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
