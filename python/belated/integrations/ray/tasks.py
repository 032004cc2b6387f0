"""An executor whose calls are tasks of Ray, on this machine or on a cluster."""

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
from typing import Any, TypeAlias, TypeVar

import ray

from belated._core import InvalidSetting
from belated.run.arguments import count
from belated.short_repr import short_repr

T = TypeVar("T")


def executor(n_workers: int | None = None, **options: Any) -> "RayExecutor":
    """Return an executor for ``bl.maximize(executor=…)`` that uses the Ray cluster of this process.

    Parameters
    ----------
    n_workers : int, optional
        The maximum number of calls that are submitted to Ray at a time. Further calls wait in this executor. Default
        None: the number of calls that the cluster can run at present. If the cluster scales automatically, pass a
        number.
    **options
        Options of ``ray.remote`` for each call: ``num_cpus`` (default 1), ``num_gpus``, ``resources``, ``runtime_env``
        and so on. The default of ``max_retries`` is 0. With another value, Ray silently repeats the call of a worker
        that died. `belated.maximize` repeats the call too, so the trial could run twice.

    Returns
    -------
    RayExecutor

    Raises
    ------
    InvalidSetting
        Ray was not started; n_workers is not an integer >= 1; Ray does not know an option; or n_workers is missing
        although the cluster cannot run a single call.

    Examples
    --------
    >>> import belated as bl
    >>> import ray
    >>> from belated.integrations.ray import executor
    >>> context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    >>> result = bl.maximize(lambda p: -p["x"] ** 2, {"x": (-1.0, 1.0)}, n_trials=4, executor=executor(num_cpus=1))
    >>> len(result.trials)
    4
    >>> ray.shutdown()
    """
    if not ray.is_initialized():
        raise InvalidSetting(
            "Ray is not started: call ray.init() before, or ray.init(address='auto') on a machine of a cluster"
        )
    if options.get("num_returns", 1) != 1:
        raise InvalidSetting(
            f"num_returns={short_repr(options['num_returns'])}: a call returns one object, leave it out"
        )
    size = _room_for(options) if n_workers is None else count("n_workers", n_workers, 1)
    return RayExecutor(size, {"max_retries": 0, **options})


# A submitted call: its future, and the arguments of `_call`.
_Call: TypeAlias = tuple["Future[Any]", tuple[Any, ...]]


class RayExecutor(Executor):
    """A `concurrent.futures.Executor` whose calls are tasks of Ray; `executor` creates it.

    A future contains the result of the call, the exception that the call raised, or Ray's exception if the worker died
    (``ray.exceptions.WorkerCrashedError`` and others). Calls that wait in this executor can be cancelled. Calls that
    were submitted to Ray cannot.

    Attributes
    ----------
    num_workers : int
        The maximum number of calls that are submitted to Ray at a time.
    """

    def __init__(self, num_workers: int, options: Mapping[str, Any]) -> None:
        self.num_workers = num_workers
        try:
            self._task = ray.remote(**options)(_call)
        except ValueError as error:
            raise InvalidSetting(f"ray.remote does not take {short_repr(dict(options))}: {error}") from None
        self._lock = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._n_running = 0
        self._unfinished: set[Future[Any]] = set()
        self._is_shut_down = False
        # This thread starts the waiting calls. The thread in which Ray reports results cannot start them, because it
        # must not block.
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="belated-ray")

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Call ``fn(*args, **kwargs)`` in a worker of Ray.

        Raises
        ------
        RuntimeError
            The executor was shut down.
        TypeError
            An argument cannot be pickled.
        """
        future: Future[T] = Future()
        call = future, (fn, args, kwargs)
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._unfinished.add(future)
            future.add_done_callback(self._unfinished.discard)
            if self._n_running == self.num_workers:
                self._waiting.append(call)
                return future
            self._n_running += 1
        try:
            self._start(*call)
        except BaseException:
            self._unfinished.discard(future)
            self._end_one()
            raise
        return future

    def _start(self, future: "Future[Any]", arguments: tuple[Any, ...]) -> None:
        """Submit a call to Ray, unless the call was cancelled."""
        if not future.set_running_or_notify_cancel():
            self._end_one()
            return
        result = self._task.remote(*arguments).future()
        result.add_done_callback(partial(self._finish, future))

    def _finish(self, future: "Future[Any]", result: "Future[Any]") -> None:
        """Set the result of a call, in Ray's thread."""
        # First allow another call to start, because the receiver of the result may submit the next call at once.
        self._end_one()
        error = result.exception()
        if error is None:
            future.set_result(result.result())
        else:
            future.set_exception(error)

    def _end_one(self) -> None:
        """Record that Ray has finished a call, which allows the next waiting call to start."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._n_running -= 1
                    return
                future, arguments = self._waiting.popleft()
            try:
                self._starter.submit(self._start_waiting, future, arguments)
                return
            except RuntimeError as error:  # the interpreter is ending
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)

    def _start_waiting(self, future: "Future[Any]", arguments: tuple[Any, ...]) -> None:
        try:
            self._start(future, arguments)
        except BaseException as error:
            self._end_one()
            future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse further calls.

        Parameters
        ----------
        wait : bool, default True
            Whether to return only after all calls have ended.
        cancel_futures : bool, default False
            Whether to cancel the waiting calls. Calls that were submitted to Ray continue.
        """
        with self._lock:
            self._is_shut_down = True
            dropped = list(self._waiting) if cancel_futures else []
            if cancel_futures:
                self._waiting.clear()
        for future, _ in dropped:
            future.cancel()
            future.set_running_or_notify_cancel()
        if wait:
            wait_for(list(self._unfinished))


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


def _room_for(options: Mapping[str, Any]) -> int:
    """Return how many calls with these options the cluster can run at a time."""
    resources = options.get("resources") or {}
    wanted = {"CPU": options.get("num_cpus", 1), "GPU": options.get("num_gpus", 0), **resources}
    needed = {name: amount for name, amount in wanted.items() if amount}
    if not needed:
        raise InvalidSetting("n_workers is missing, and calls need no resources that limit it: pass a number")
    there = ray.cluster_resources()
    # 1e-9 allows for rounding: 0.3 / 0.1 is slightly less than 3.
    room: int = min(math.floor(there.get(name, 0) / amount + 1e-9) for name, amount in needed.items())
    if room < 1:
        raise InvalidSetting(
            f"the cluster has { ({name: there.get(name, 0) for name in needed}) }, and a call needs {needed}: ask for "
            "less, or pass n_workers if the cluster will grow"
        )
    return room
