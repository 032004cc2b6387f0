"""An executor without workers."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class CallingThread(Executor):
    """An executor that calls a function in the thread that submits it, where Ctrl-C and debuggers can interrupt it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
