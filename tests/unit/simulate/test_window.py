"""Results whose delay is exactly the window of an algorithm."""

import numpy as np
import pytest

import belated as bl
from belated import simulate as sim


def optimizer(direction):
    return bl.RandomSearch({"x": (0.0, 1.0)}, direction=direction, seed=0)


@pytest.mark.parametrize(("direction", "best_of"), [("maximize", max), ("minimize", min)])
@pytest.mark.parametrize("window", [0.0, 1.0, 2.5, 4.0])
def test_a_result_counts_if_its_delay_is_at_most_the_window_and_its_age(direction, best_of, window):
    """At time t the value y_s is used if d_s ≤ min(m, t − s) (Verma, Dai and Low 2022, section 3.1)."""
    rng = np.random.default_rng(7)
    delays = rng.choice([0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0], size=40)
    delays[:2] = window, 5.0
    history = sim.simulate(optimizer(direction), lambda params: params["x"], len(delays), delays)
    curve = sim.best_converted(history, longest=window)
    for t in range(len(delays) + 1):
        converted = [history.values[s] for s in range(t) if delays[s] <= min(window, t - s)]
        assert np.array_equal(curve[t], best_of(converted) if converted else np.nan, equal_nan=True)


def test_a_delay_counts_up_to_exactly_the_longest():
    history = sim.simulate(optimizer("maximize"), lambda params: 1.0, 3, [4.0, np.nextafter(4.0, 5.0), 9.0])
    history.values[:] = [1.0, 2.0, 3.0]
    assert sim.best_converted(history, at=[100.0], longest=4.0) == [1.0]
