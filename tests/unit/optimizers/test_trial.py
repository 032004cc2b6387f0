"""A trial shows its present state, belongs to one optimizer, and can be displayed safely."""

import pickle

import numpy as np

import belated as bl

BOX = {"x": (0.0, 1.0), "kind": ["<b>", "&"]}
ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def optimizer(**arguments):
    return bl.RandomSearch(BOX, seed=0, **arguments)


def test_a_trial_is_never_out_of_date():
    opt = optimizer()
    trial, same = opt.suggest(), opt.trial(0)
    assert (trial.state, trial.value, trial.observed_at, trial.delay) == ("pending", None, None, None)
    opt.observe(0, 1.5)
    assert trial.state == same.state == "observed"
    assert trial.value == 1.5


def test_a_trial_has_params_or_a_row():
    trial = optimizer().suggest()
    assert set(trial.params) == set(BOX) and trial.x is None and trial.index is None and trial.context is None
    trial = bl.RandomSearch(candidates=ROWS, seed=0).suggest()
    assert (trial.params == trial.x).all() and (trial.x == ROWS[trial.index]).all()


def test_changing_returned_params_does_not_change_the_trial():
    trial = bl.RandomSearch(candidates=ROWS, seed=0).suggest()
    before = trial.x.copy()
    trial.x[:] = 0.0
    assert (trial.x == before).all()
    trial = optimizer().suggest()
    before = dict(trial.params)
    trial.params.clear()
    assert trial.params == before


def test_delay_in_suggestions_started():
    opt = optimizer()
    prompt, late = opt.suggest(), opt.suggest()
    late.observe(1.0)
    at_once = late.delay
    opt.suggest(n=3)
    prompt.observe(1.0)
    # `late` and three further trials were started before the value of `prompt` was observed.
    assert prompt.delay == at_once + 4


def test_equal_trials_have_the_same_number_and_optimizer():
    opt, other = optimizer(), optimizer()
    trial, foreign = opt.suggest(), other.suggest()
    assert trial == opt.trial(0) and hash(trial) == hash(opt.trial(0))
    assert trial != foreign and trial != opt.suggest() and trial != 0
    assert {trial, opt.trial(0), foreign} == {trial, foreign}


def test_a_trial_is_pickled_with_its_optimizer():
    opt = optimizer()
    trial = opt.suggest()
    again = pickle.loads(pickle.dumps(trial))
    assert again == trial and again.params == trial.params
    # The unpickled trial belongs to a copy of the optimizer.
    again.observe(1.0)
    assert again.state == "observed" and trial.state == "pending"
    # The original optimizer also accepts the unpickled trial.
    opt.observe(again, 1.0)
    assert trial.state == "observed"
    both = pickle.loads(pickle.dumps((opt, trial)))
    both[0].observe(both[1], 3.0, amend=True)
    assert both[1].value == 3.0 and trial.value == 1.0


def test_repr():
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, context={"age": (0, 9)})
    trial = opt.add({"x": 0.5}, context={"age": 3})
    assert repr(trial) == "Trial(number=0, params={'x': 0.5}, context={'age': 3}, state='pending')"
    trial.observe(-1)
    assert repr(trial).endswith("state='observed', value=-1.0)")
    trial = bl.RandomSearch(candidates=ROWS).add(1)
    assert repr(trial) == "Trial(number=0, index=1, x=array([3., 4.]), state='pending')"


def test_html_is_escaped():
    opt = optimizer()
    trial = opt.add({"x": 0.5, "kind": "<b>"}, 1.0)
    for page in (trial._repr_html_(), opt._repr_html_()):
        assert "&lt;b&gt;" in page and "<b>" not in page
