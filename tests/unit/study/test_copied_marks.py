"""Marks of values in copies, and beside marked values."""

import warnings

import pytest

import belated as bl
from belated.store.memory import MemoryStore


def test_a_confirmed_value_is_not_marked_again_in_a_copy():
    study = bl.Study("a", MemoryStore(), bl.BayesOpt({"x": (0.0, 1.0)}, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial in study.suggest(12):
            trial.observe(0.6 + 0.1 * trial.params["x"])
        study.observe(study.suggest(), 68.0)
        assert study.trial(12).marks
        study.confirm(12)
        copied = study.copy("b")
    assert [trial.marks for trial in copied.trials] == [{}] * 13 and copied.trial(12).value == 68.0


def test_all_rows_are_stored_if_warnings_are_errors():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    for trial in optimizer.suggest(12):
        trial.observe(0.6 + 0.1 * trial.params["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bl.BelatedWarning, match="trial 13 has the value 68.0"):
            optimizer.add([{"x": 0.1}, {"x": 0.2}, {"x": 0.3}], [0.61, 68.0, 0.63])
    assert [trial.value for trial in optimizer.trials[12:]] == [0.61, 68.0, 0.63]


def test_values_that_the_model_predicts_beside_a_marked_value_are_not_marked():
    optimizer = bl.BayesOpt({"x": (0.0, 1.0)}, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(20):
            optimizer.add({"x": k / 40}, 0.01 * (k % 3))
        optimizer.suggest()
        # The optimum is far above the first values, and the values around it are near each other.
        trials = optimizer.add([{"x": 0.7 + 0.01 * k} for k in range(8)], None)
        for k, trial in enumerate(trials):
            optimizer.suggest()
            optimizer.observe(trial, 4.0 + 0.3 * k)
    assert [bool(trial.marks) for trial in trials][2:] == [False] * 6


@pytest.mark.parametrize("outcomes", [None, {"p": bl.AtLeast(0.2), "y": "maximize"}])
def test_a_copy_keeps_the_marks_that_nobody_confirmed(outcomes):
    study = bl.Study("a", MemoryStore(), bl.BayesOpt({"x": (0.0, 1.0)}, seed=0, outcomes=outcomes))

    def value(y):
        return y if outcomes is None else {"y": y, "p": 0.3 + y / 10}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial in study.suggest(12):
            trial.observe(value(0.6 + 0.1 * trial.params["x"]))
        for trial in study.suggest(2):
            study.observe(trial, value(68.0))
        study.confirm(13)
        study.withdraw(0, reason="spilt")
        marks = [trial.marks for trial in study.trials]
        assert marks[12] and not marks[13]
        # A copy with fewer trials would not mark the value again.
        copies = [study.copy("b"), study.copy("c", {"x": (0.0, 1.0), "z": 1})]
        if outcomes is not None:
            fewer = study.copy("d", outcomes={"y": "maximize", "q": bl.Record()})
            assert [[*trial.marks] for trial in fewer.trials[12:]] == [["y"], []]
    assert [[trial.marks for trial in copied.trials] for copied in copies] == [marks] * 2
    copies[0].confirm(12)
    assert not copies[0].trial(12).marks and study.trial(12).marks
