"""`add` either accepts all points of a call, or rejects all of them."""

import math

import numpy as np
import pandas as pd
import pytest

import belated as bl
from tests.unit.optimizers.problem import BOX, ROWS, both


@both
def test_add_in_a_space(kind):
    opt = kind(BOX, seed=0)
    one = opt.add({"x": 0.5, "n": 3}, 1.0)
    assert (one.state, one.value, one.params) == ("observed", 1.0, {"x": 0.5, "n": 3})
    waiting = opt.add({"x": 0.5, "n": 4})
    assert waiting.state == "pending"
    table = pd.DataFrame({"n": [1, 2], "x": [0.0, 1.0]})
    for params in (table, table.to_dict("records")):
        for values in ([3.0, 2.0], np.array([3.0, 2.0]), pd.Series([3.0, 2.0])):
            assert [trial.value for trial in opt.add(params, values)] == [3.0, 2.0]
    assert [trial.state for trial in opt.add(table, [3.0, None])] == ["observed", "pending"]
    assert [trial.state for trial in opt.add(table)] == ["pending"] * 2
    assert opt.add([]) == []
    assert opt.best_value_ == 3.0


def test_add_candidates():
    opt = bl.BayesOpt(candidates=ROWS, seed=0)
    assert opt.add(3, 1.0).index == 3
    assert opt.add(ROWS[4], 1.0).index == 4
    assert opt.add([5.0, 2.0]).index == 5
    assert [trial.index for trial in opt.add(ROWS[6:8], [1.0, 2.0])] == [6, 7]
    assert [trial.index for trial in opt.add([8, 9], [1.0, 2.0])] == [8, 9]
    assert [trial.index for trial in opt.add(pd.DataFrame(ROWS[:2]))] == [0, 1]


@both
def test_add_accepts_all_points_or_raises_an_error(kind):
    opt = kind(BOX, seed=0)
    good, bad = {"x": 0.0, "n": 1}, {"x": "a", "n": 1}
    for params, values, error in [
        (bad, 1.0, bl.errors.InvalidPoint),
        ({"x": 0.0}, 1.0, bl.errors.InvalidPoint),
        (good, math.nan, bl.errors.InvalidValue),
        (good, [1.0], bl.errors.InvalidValue),
        ([good, bad], [1.0, 2.0], bl.errors.InvalidPoint),
        ([good, good], [1.0, math.nan], bl.errors.InvalidValue),
        ([good, good], [1.0], bl.errors.InvalidValue),
        ([good, good], 1.0, bl.errors.InvalidValue),
        (pd.DataFrame([good, good]), pd.Series([1.0, math.nan]), bl.errors.InvalidValue),
        (pd.DataFrame([good, {"x": math.nan, "n": 1}]), [1.0, 2.0], bl.errors.InvalidPoint),
    ]:
        with pytest.raises(error):
            opt.add(params, values)
        assert opt.n_trials == 0
