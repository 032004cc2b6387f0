"""Runs whose functions take longer than the longest internal wait."""

import time

import pytest

import belated as bl

SLOW = 1.3  # seconds


def optimizer():
    return bl.RandomSearch({"x": (0.0, 1.0)}, seed=0)


@pytest.mark.parametrize("arguments", [{"n_workers": 2}, {"n_workers": 2, "timeout": 600}, {"timeout": 600}], ids=str)
def test_a_run_waits_as_long_as_its_function_takes(arguments):
    def slow(params):
        time.sleep(SLOW)
        return params["x"]

    n_trials = arguments.get("n_workers", 1)
    result = bl.maximize(slow, optimizer=optimizer(), n_trials=n_trials, **arguments)
    assert result.stop_reason == "n_trials" and result.seconds >= SLOW
    assert [trial.state for trial in result.trials] == ["observed"] * n_trials
