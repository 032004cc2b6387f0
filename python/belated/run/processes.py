"""The worker processes of a run. The run starts these processes, and replaces processes that die.

Each process has its own executor. If a process dies, only the evaluation in this process is lost, and the run knows
which evaluation was lost. The start method is "spawn", which starts new interpreters. The other start methods have
disadvantages. With "fork", the child of a process with threads may contain locks that are never released. With
"forkserver", children have the environment variables that were set when the server was started.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from time import monotonic
from typing import Any

from belated.optimizers.report import format_error
from belated.run.worker_errors import WorkerDied, WorkersDoNotStart

# If this number of consecutive workers die during their start, the run ends.
_MAX_FAILED_STARTS = 3

# When a run ends, an idle worker ends by itself, and a busy worker receives SIGTERM. A worker that has not ended after
# this number of seconds is killed.
_MAX_END = 5.0


class WorkerProcesses(Executor):
    """An executor with one process for each simultaneous call.

    The future of a call raises `WorkerDied` if its process died.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        # Keep a dead worker in this list until the threads of its executor have ended. In Python 3.13, a thread with
        # the last reference to its executor is blocked forever by a lock that the thread itself holds.
        self._dead: list[_Worker] = []
        self._is_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call fn(*args, **kwargs) in an idle process, or in a new process."""
        with self._lock:
            dead, self._dead = self._dead, []
        for worker in dead:
            worker.executor.shutdown()
        call = bytes(ForkingPickler.dumps((fn, args, kwargs)))
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._start(call, future, 0)
        return future

    def _start(self, call: bytes, future: Future[Any], n_failed_starts: int) -> None:
        """Send a call to a worker.

        `n_failed_starts` is the number of workers of this call that died before they were ready.
        """
        with self._lock:
            while True:
                if self._is_shut_down:
                    raise RuntimeError("cannot schedule new futures after shutdown")
                worker = self._idle.pop() if self._idle else _Worker()
                self._workers.add(worker)
                try:
                    running = worker.executor.submit(_call, call)
                    break
                except BrokenExecutor:  # the idle worker has died
                    self._add_dead(worker)
        running.add_done_callback(lambda done: self._finish(worker, call, future, n_failed_starts, done))

    def _finish(
        self, worker: _Worker, call: bytes, future: Future[Any], n_failed_starts: int, done: Future[bytes]
    ) -> None:
        """Set the outcome of a call in its future; this runs in the thread of the worker's executor."""
        error = done.exception()
        if not isinstance(error, BrokenExecutor):
            with self._lock:
                self._idle.append(worker)
            if error is None:
                _set_unpickled(future, done.result())
            else:
                future.set_exception(error)
            return
        with self._lock:
            self._add_dead(worker)
            is_shut_down = self._is_shut_down
        how = _how_it_ended(worker.process)
        if worker.is_ready() or is_shut_down:
            future.set_exception(WorkerDied(f"its worker process {how}"))
        elif n_failed_starts + 1 < _MAX_FAILED_STARTS:
            # The call has not begun, so start it in another worker.
            try:
                self._start(call, future, n_failed_starts + 1)
            except Exception as failed:
                future.set_exception(failed)
        else:
            future.set_exception(
                WorkersDoNotStart(
                    f"{_MAX_FAILED_STARTS} worker processes in a row died while they started, the last one {how} (a "
                    'script has to call this under if __name__ == "__main__":, because workers import it)'
                )
            )

    def _add_dead(self, worker: _Worker) -> None:
        """Add a worker to the list of dead workers."""
        self._workers.discard(worker)
        self._dead.append(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, including processes with a running call, and wait until they have ended."""
        with self._lock:
            self._is_shut_down = True
            workers, idle = [*self._workers, *self._dead], set(self._idle)
        # Threads end all processes at the same time.
        ends = [threading.Thread(target=worker.executor.shutdown, daemon=True) for worker in workers]
        deadline = monotonic() + _MAX_END
        try:
            for worker, end in zip(workers, ends, strict=True):
                if worker not in idle:
                    worker.process.terminate()
                end.start()
            for end in ends:
                end.join(max(0.0, deadline - monotonic()))
        finally:
            # Call kill for all workers: if the join of a thread was interrupted, the thread may seem dead while it
            # still waits. If a process has already ended, kill does not send a signal.
            for worker in workers:
                worker.process.kill()
        deadline = monotonic() + _MAX_END
        for end in ends:
            end.join(max(0.0, deadline - monotonic()))


class _Worker:
    """A worker process, and an executor that has only this process."""

    def __init__(self) -> None:
        self.executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        with ctrl_c_blocked():
            self._prepared = self.executor.submit(_prepare)
        [process] = self.executor._processes.values()
        self.process: BaseProcess = process

    def is_ready(self) -> bool:
        """Return whether the process is ready to take calls."""
        return self._prepared.done() and self._prepared.exception() is None


@contextmanager
def ctrl_c_blocked() -> Iterator[None]:
    """Block SIGINT in processes that this thread starts.

    If SIGINT were not blocked, a worker that receives Ctrl-C during its imports would show a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _how_it_ended(process: BaseProcess) -> str:
    """Return a text that describes how a process ended, for messages."""
    process.join(1.0)
    code = process.exitcode
    if code is None or code >= 0:
        return "ended" if code is None else f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (", as happens where memory runs out" if name == "SIGKILL" else "")


def _set_unpickled(future: Future[Any], pickled: bytes) -> None:
    """Unpickle bytes and set the result of a future; set an error if the bytes cannot be unpickled."""
    try:
        returned = pickle.loads(pickled)
    except Exception as error:
        unreadable = pickle.UnpicklingError(f"what a worker returned cannot be read: {format_error(error)}")
        unreadable.__cause__ = error
        future.set_exception(unreadable)
    else:
        future.set_result(returned)


# Functions that run in the worker.


def _prepare() -> None:
    """Prepare a worker process: ignore Ctrl-C, which the run handles, and end when the process of the run ends."""
    # Use a function instead of SIG_IGN, because programs that f starts inherit SIG_IGN.
    signal.signal(signal.SIGINT, lambda *_: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if os.name == "posix":
        _keep_pipes_from_children()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _keep_pipes_from_children() -> None:
    """Prevent the processes that f starts from inheriting the pipes to the process of the run.

    The run detects the end of this process by a closed pipe. A program that f started and that inherited the pipe would
    keep it open.
    """
    inherited = []
    for fd in _open_fds():
        with suppress(OSError):  # a descriptor may not be open
            if fd > 2 and os.get_inheritable(fd):
                os.set_inheritable(fd, False)
                inherited.append(fd)
    tracker = resource_tracker.getfd()
    pipes = [fd for fd in inherited if fd != tracker and stat.S_ISFIFO(os.fstat(fd).st_mode)]
    os.register_at_fork(after_in_child=lambda: _replace_by_null(pipes))


def _open_fds() -> list[int]:
    """Return the file descriptors of this process. One of them was opened only to list the descriptors."""
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return list(range(1024))


def _replace_by_null(fds: list[int]) -> None:
    """Replace file descriptors by the null device.

    The numbers of the descriptors must stay in use, because objects may still close these descriptors.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for fd in fds:
        with suppress(OSError):
            os.dup2(null, fd, inheritable=False)
    os.close(null)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _call(call: bytes) -> bytes:
    """Return the pickled result of a pickled call; raise UnpicklingError if the call cannot be unpickled."""
    try:
        fn, args, kwargs = pickle.loads(call)
    except BaseException as error:
        raise pickle.UnpicklingError(f"a worker process cannot read it: {format_error(error)}") from error
    return bytes(ForkingPickler.dumps(fn(*args, **kwargs)))
