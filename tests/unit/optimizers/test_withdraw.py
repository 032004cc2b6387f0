"""Withdrawn results: what forgets them, what remembers them, and what is refused."""

import belated as bl


def test_withdrawn_value_leaves_best_and_stays_in_the_trial():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    first, second = optimizer.add([{"x": 0.2}, {"x": 0.7}], [1.0, 54.0])
    optimizer.withdraw(second, reason="contaminated flask")
    assert (second.state, second.value, optimizer.best_trial_) == ("withdrawn", None, first)
    withdrawn = second.withdrawal
    assert (withdrawn.state, withdrawn.value, withdrawn.reason) == ("observed", 54.0, "contaminated flask")
