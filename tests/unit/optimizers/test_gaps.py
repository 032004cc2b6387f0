"""Values, stds, costs and durations that are None, NaN or another missing value, in reports by hand."""

import decimal
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

import belated as bl
from belated.errors import InvalidValue

SPACE = {"x": (0.0, 1.0)}
OUTCOMES = {"yield": "maximize", "purity": bl.AtLeast(0.5)}
GAPS = [math.nan, np.float32("nan"), np.array(np.nan), np.ma.masked, pd.NA, pd.NaT, decimal.Decimal("nan")]
ids = [type(each).__name__ for each in GAPS]


@pytest.fixture(params=["optimizer", "study"])
def make(request, tmp_path):
    def made(**arguments):
        optimizer = bl.RandomSearch(SPACE, seed=0, **arguments)
        return optimizer if request.param == "optimizer" else bl.Study("a", f"sqlite:///{tmp_path}/s.db", optimizer)

    return made


@pytest.mark.parametrize("gap", [None, *GAPS], ids=["None", *ids])
def test_a_gap_in_a_mapping_is_missing(make, gap):
    search = make(outcomes=OUTCOMES)
    trial = search.suggest()
    trial.observe({"yield": 71.0, "purity": gap}, std={"yield": 0.5, "purity": 0.1}, cost=2.0)
    assert trial.state == "pending" and trial.values == {"yield": 71.0} and trial.missing == ["purity"]
    assert trial.outcomes["yield"].std == 0.5 and trial.cost == 2.0
    trial.observe({"yield": gap, "purity": 0.75})
    assert trial.state == "observed" and trial.value == 71.0
    # The row of a table may be passed as it is.
    added = search.add([{"x": 0.25}, {"x": 0.5}], [{"yield": 1.0, "purity": gap}, {"yield": gap, "purity": gap}])
    assert [each.values for each in added] == [{"yield": 1.0}, {}]
    assert [each.state for each in added] == ["pending", "pending"]


@pytest.mark.parametrize("gap", [None, *GAPS], ids=["None", *ids])
def test_a_report_needs_one_value(make, gap):
    search = make(outcomes=OUTCOMES)
    trial = search.suggest()
    with pytest.raises(InvalidValue, match="trial 0 has no value: pass the value of at least one of"):
        trial.observe({"yield": gap, "purity": gap}, cost=1.0)
    assert trial.state == "pending" and trial.cost is None and trial.missing == ["yield", "purity"]


def test_the_value_of_a_plain_objective_is_no_gap(make):
    search = make()
    trial = search.suggest()
    for value in (None, math.nan, pd.NA):
        with pytest.raises(InvalidValue, match="value"):
            trial.observe(value)
    with pytest.raises(InvalidValue, match="value"):
        search.add({"x": 0.5}, math.nan)
    assert trial.state == "pending" and len(search.trials) == 1


@pytest.mark.parametrize("gap", GAPS, ids=ids)
@pytest.mark.parametrize("name", ["std", "cost", "duration"])
def test_an_amount_that_is_missing_is_not_given(make, name, gap):
    search = make()
    first, second, failed = search.suggest(n=3)
    with pytest.warns(bl.BelatedWarning) as found:
        first.observe(1.0, **{name: gap})
        second.observe(2.0, **{name: gap})
        added = search.add([{"x": 0.25}, {"x": 0.5}], [3.0, 4.0], **{name: [gap, 0.5]})
        if name == "duration":
            failed.fail(duration=gap)
    assert len(found) == 1 and f"{name}=" in str(found[0].message) and "trial 0" in str(found[0].message)
    trials = [first, second, *added]
    assert [each.value for each in trials] == [1.0, 2.0, 3.0, 4.0]
    assert [getattr(each, name) for each in trials] == [None, None, None, 0.5]
    # The report is the same as one without this argument.
    first.observe(1.0)
    first.observe(1.0, **{name: gap})
    assert len(search.trials) == 5


def test_a_std_of_an_outcome_that_is_missing_is_not_given(make):
    search = make(outcomes=OUTCOMES)
    trial, other = search.suggest(n=2)
    with pytest.warns(bl.BelatedWarning, match="std=nan for 'purity' of trial 0 counts as not given"):
        trial.observe({"yield": 1.0, "purity": 0.9}, std={"yield": 0.5, "purity": math.nan})
    other.observe({"yield": 1.0, "purity": 0.9}, std=math.nan)
    assert [each.std for each in trial.outcomes.values()] == [0.5, None]
    assert [each.std for each in other.outcomes.values()] == [None, None]


@pytest.mark.parametrize("wrong", [-1.0, math.inf, -math.inf, "0.1"])
@pytest.mark.parametrize("name", ["std", "cost", "duration"])
def test_other_wrong_amounts_are_refused(make, name, wrong):
    trial = make().suggest()
    with pytest.raises(InvalidValue, match=name):
        trial.observe(1.0, **{name: wrong})
    assert trial.state == "pending"


def test_a_list_of_stds_for_a_table_may_have_gaps():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    table = pd.DataFrame({"x": [0.25, 0.5], "y": [1.0, 2.0], "s": [math.nan, 0.5]})
    assert [each.std for each in optimizer.add(table, value="y", std="s")] == [None, 0.5]
    with pytest.warns(bl.BelatedWarning, match="std"):
        assert [each.std for each in optimizer.add(table, value="y", std=[math.nan, 0.5])] == [None, 0.5]


def test_an_unknown_outcome_is_refused_with_advice(make):
    trial = make(outcomes=OUTCOMES).suggest()
    with pytest.raises(InvalidValue, match=r"did you mean 'purity'\? Else declare 'puritx' as bl.Record\(\), or pass"):
        trial.observe({"yield": 1.0, "puritx": 0.9})
    with pytest.raises(InvalidValue, match=r"\['f1'\]: pass some of \['yield', 'purity'\]; to keep it, declare 'f1'"):
        trial.observe({"yield": 1.0, "purity": 0.9, "f1": None})
    assert trial.state == "pending" and trial.values == {}


def test_a_warning_is_given_once_for_copies():
    optimizer = bl.RandomSearch(SPACE, seed=0)
    with pytest.warns(bl.BelatedWarning):
        optimizer.suggest().observe(1.0, std=math.nan)
    copied = pickle.loads(pickle.dumps(optimizer))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copied.suggest().observe(1.0, std=math.nan)
    assert [each.std for each in copied.trials] == [None, None]
