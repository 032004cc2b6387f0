"""Late values under `Censor`: at t the model uses y_s if d_s ≤ min(m, t − s), otherwise the floor.

Verma, Dai and Low 2022, section 3.1; m is the window. Targets are not standardised and have almost no noise, so a
prediction at a trial's point shows which value the model uses for the trial.
"""

import pytest

import belated as bl

FLOOR = -2.0
clocks = pytest.mark.parametrize("clock", ["iterations", "seconds"])


def optimizer(late, clock, window, time):
    return bl.BayesOpt(
        {"x": (0.0, 1.0)},
        acquisition="ucb",
        pending=bl.Censor(FLOOR, late=late),
        surrogate=bl.GP(kernel="matern52", lengthscale=0.1, signal_std=1.0, noise_std=1e-4, targets="raw", mean="zero"),
        initial=0,
        window=window,
        clock=clock,
        seed=0,
        time=time if clock == "seconds" else None,
    )


class Clock:
    """A clock that advances by one with each suggestion."""

    def __init__(self, late, clock, window):
        self.now = 0.0
        self.opt = optimizer(late, clock, window, lambda: self.now)

    def start(self, x):
        self.opt.enqueue({"x": x})
        trial = self.opt.suggest()
        self.now += 1.0
        return trial

    def wait(self, n):
        for k in range(n):
            self.start(0.5 + 0.05 * k).abandon()

    def counts_as(self, trial):
        return self.opt.predict([trial.params], pending=True)[0][0]


@clocks
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("late", ["discard", "accept"])
@pytest.mark.parametrize("asked", [False, True])
def test_a_value_counts_up_to_a_delay_of_exactly_the_window(clock, window, late, asked):
    for delay in range(1, window + 3):
        run = Clock(late, clock, window)
        trial = run.start(0.2)
        run.wait(delay - 1)
        assert run.counts_as(trial) == pytest.approx(FLOOR, abs=1e-3)
        trial.observe(1.0)
        assert trial.delay == delay
        if asked:
            run.wait(1)  # a second suggestion at the same time does not change the model
        in_time = delay <= window or late == "accept"
        assert run.counts_as(trial) == pytest.approx(1.0 if in_time else FLOOR, abs=1e-3)


@clocks
def test_a_pending_trial_is_discarded_only_beyond_the_window(clock):
    """A discarded trial remains a row of the model. A trial whose age equals the window may still get its value."""
    window = 3
    for age in range(1, window + 3):
        run = Clock("discard", clock, window)
        trial = run.start(0.2)
        run.wait(age - 1)
        # The next suggestion discards late trials and advances the time by one.
        run.start(0.9).abandon()
        model, *_ = run.opt._log.surrogate(run.opt._problem.wall_time(), False)
        assert model.n_observed == (1 if age > window else 0)
        trial.observe(1.0)
        assert run.counts_as(trial) == pytest.approx(1.0 if age + 1 <= window else FLOOR, abs=1e-3)
