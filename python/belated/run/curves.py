"""The learning curves of a run: workers report steps to the optimizer, and ask whether to stop.

Threads call the optimizer directly. Processes send their reports to a `ReportServer`, also from other machines.
"""

from __future__ import annotations

import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING

from belated._core import InvalidSetting, InvalidValue
from belated.optimizers.curve import Curve
from belated.run.calling_thread import CallingThread
from belated.run.objective import Reports
from belated.run.threads import DaemonThreads

if TYPE_CHECKING:
    from belated.optimizers.optimizer import Optimizer
    from belated.run.report_server import ReportServer
    from belated.study.study import Study


class DirectReports:
    """Reports of threads in the process of the optimizer."""

    def __init__(self, optimizer: Optimizer | Study) -> None:
        self._optimizer, self._revision = optimizer, optimizer._n_read()
        curve = optimizer._problem.curve
        assert curve is not None
        self.curve: Curve = curve
        self.minimizes = optimizer.direction == "minimize"
        # For each trial that was started in this run, the number of the next attempt.
        self._next: dict[int, int] = {}
        self._lock = threading.Lock()

    def start(self, number: int) -> int | None:
        # The workers ask for the number of an attempt, because Dask starts evaluations again without telling the run.
        record = self._optimizer._current_log().trial(number)
        if record.ended_early is not None:
            return None
        with self._lock:
            attempt = max(record.attempt + bool(record.curve), self._next.get(number, 0))
            self._next[number] = attempt + 1
        return attempt

    def report(self, number: int, step: int, value: float, attempt: int) -> bool:
        try:
            self._optimizer._submit_one("report", number, (value, step, attempt), self._revision)
        except InvalidValue:
            curve = self._optimizer._problem.curve
            if 1 <= step <= self.curve.steps and (curve is None or step > curve.steps):
                return False  # a revision removed the step, and the evaluation goes on, because its value can be stored
            raise
        return self._optimizer.should_stop(number)

    def should_stop(self, number: int) -> bool:
        return self._optimizer.should_stop(number)


def reports_for(
    optimizer: Optimizer | Study, executor: Executor, is_own: bool, is_generator: bool
) -> tuple[Reports | None, ReportServer | None]:
    """Return what the workers of an executor use to report steps, and the server to close at the end of the run.

    Raises
    ------
    InvalidSetting
        The function is a generator, and a curve was not declared, or the executor does not support reports.
    """
    if optimizer._problem.curve is None:
        if is_generator:
            raise InvalidSetting(
                "f is a generator, whose values are the steps of a learning curve: pass curve=bl.Curve(steps) with the "
                "number of steps, or return one value"
            )
        return None, None
    direct = DirectReports(optimizer)
    if isinstance(executor, (ThreadPoolExecutor, DaemonThreads, CallingThread)):
        return direct, None
    # These imports are slow, and only processes need them.
    from concurrent.futures import ProcessPoolExecutor

    from belated.run.report_server import ReportServer

    is_local = is_own or isinstance(executor, ProcessPoolExecutor) or type(executor).__module__.startswith("loky.")
    host = None if is_local else _host_for_workers(executor)
    if is_local or host is not None:
        server = ReportServer(direct, host)
        return server.remote, server
    if is_generator:
        raise InvalidSetting(
            f"the workers of {type(executor).__name__} cannot report steps: pass n_workers, for threads, or "
            "processes=True, or an executor of Dask or Ray"
        )
    return None, None


def _host_for_workers(executor: Executor) -> str | None:
    """Return the address of this machine in the network of the executor's cluster; None without a cluster."""
    if type(executor).__module__.startswith("distributed."):
        from distributed.comm import get_address_host
        from distributed.utils import get_ip

        # The address from which this machine reaches the scheduler.
        return str(get_ip(get_address_host(executor._client.scheduler.address)))  # type: ignore[attr-defined]
    if type(executor).__module__.startswith("belated.integrations.ray."):
        import ray

        return str(ray.util.get_node_ip_address())
    return None
