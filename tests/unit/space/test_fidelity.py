"""Fidelities: units, cost, bias and errors."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import belated as bl

FINITE = st.floats(-1e9, 1e9, allow_subnormal=False)


def double(fidelity):
    return 2.0 * fidelity


# Units.


@given(low=FINITE, high=FINITE, share=st.floats(0, 1))
def test_real_fidelities_have_their_share_of_the_range(low, high, share):
    assume(low + 1e-6 < high)
    fidelity = bl.Fidelity(low, high)
    value = min(max(low + share * (high - low), low), high)
    assert fidelity.encode(value) == pytest.approx((value - low) / (high - low), abs=1e-12)
    assert (fidelity.encode(low), fidelity.encode(high)) == (0.0, 1.0)


@given(low=st.floats(1e-9, 1e9), ratio=st.floats(1.001, 1e9), share=st.floats(0, 1))
def test_real_fidelities_on_a_logarithmic_scale(low, ratio, share):
    high = low * ratio
    fidelity = bl.Fidelity(low, high, log=True)
    value = min(max(low * ratio**share, low), high)
    z = fidelity.encode(value)
    assert z == pytest.approx(math.log(value / low) / math.log(high / low), abs=1e-9)


@given(one=st.integers(1, 2**40), other=st.integers(1, 2**40), share=st.floats(0, 1), log=st.booleans())
def test_integers_stay_integers(one, other, share, log):
    assume(one != other)
    low, high = sorted([one, other])
    fidelity = bl.Fidelity(np.int64(low), high, log=log)
    value = low + round(share * (high - low))
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, fidelity=fidelity, seed=0)
    for same in (value, float(value)):
        again = opt.suggest(fidelity=same).fidelity
        assert type(again) is int and again == value
    assert type(fidelity.from_number(None)) is int and fidelity.from_number(None) == high


@given(thousandths=st.integers(0, 100_000), log=st.booleans())
def test_decimal_fidelities_come_back_as_written(thousandths, log):
    value = 0.01 + thousandths / 1000
    written = float(f"{value:.3f}")
    opt = bl.RandomSearch({"x": (0.0, 1.0)}, fidelity=bl.Fidelity(0.01, 101, log=log), seed=0)
    assert opt.suggest(fidelity=written).fidelity == written


def test_a_range_has_integers_only_if_both_ends_are_integers():
    assert type(bl.Fidelity(1, 3).check(2.0)) is int and type(bl.Fidelity(1, 3.0).check(2)) is float
    with pytest.raises(bl.errors.InvalidFidelity, match=r"pass an integer in \[1, 3\]"):
        bl.Fidelity(1, 3).check(1.8)
    assert bl.Fidelity(1, 3.0).check(1.8) == 1.8


@pytest.mark.parametrize("value", [99, 7001, 100.5, math.nan, math.inf, "500", None, True, [500], 500j])
def test_unusable_fidelities_are_refused(value):
    fidelity = bl.Fidelity(100, 7000)
    for call in (fidelity.check, fidelity.encode, fidelity.cost_of):
        with pytest.raises(
            bl.errors.InvalidFidelity, match=r"^fidelity=.* is not usable: pass an integer in \[100, 7000\]"
        ):
            call(value)
    with pytest.raises(bl.errors.InvalidFidelity, match=r"pass a real number in \[0\.1, 0\.5\]"):
        bl.Fidelity(0.1, 0.5).check(0.6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 1), r"^Fidelity\(2, 1\): .* is empty: low must not be greater than high; swap them$"),
        ((1, 1), r"^Fidelity\(1, 1\) is empty: low must be less than high; swap them$"),
        ((1.0, 1), r"^Fidelity\(1.0, 1\) is empty: "),
        ((math.nan, 1), r"^Fidelity\(.*both bounds must be finite real numbers$"),
        ((0, math.inf), r"^Fidelity\(.*both bounds must be finite real numbers$"),
        (("0", 1), r"^Fidelity\(.*both bounds must be finite real numbers$"),
        ((False, True), r"^Fidelity\(.*both bounds must be finite real numbers$"),
        ((0, 2**41), r"must lie within ±2\*\*40"),
    ],
)
def test_ranges_that_are_refused(arguments, message):
    with pytest.raises(bl.errors.InvalidSpace, match=message):
        bl.Fidelity(*arguments)


def test_a_logarithmic_range_is_positive():
    for low in (0, -1.0):
        with pytest.raises(
            bl.errors.InvalidSpace, match="log=True: a logarithmic scale needs low > 0; raise low or drop"
        ):
            bl.Fidelity(low, 10, log=True)
    with pytest.raises(bl.errors.InvalidSpace, match="log='yes': pass True or False$"):
        bl.Fidelity(1, 10, log="yes")


# Cost and bias.


def test_costs_agree_with_the_paper():
    """The costs in appendix D.2 of Wang et al. 2022: Hartmann 0.05 + 0.95 z³, Currin 0.1 + z², Borehole 0.1 + z^1.5."""
    z = np.linspace(0, 1, 11)
    for cost, expected in (
        (bl.PowerCost(0.05, 3), 0.05 + 0.95 * z**3),
        (bl.PowerCost(0.1, 2, full=1.1), 0.1 + z**2),
        (bl.PowerCost(0.1, 1.5, full=1.1), 0.1 + z**1.5),
    ):
        fidelity = bl.Fidelity(0.0, 1.0, cost=cost)
        np.testing.assert_allclose([cost.at(each) for each in z], expected, rtol=1e-14)
        np.testing.assert_allclose([fidelity.cost_of(each) for each in z], expected, rtol=1e-14)


def test_a_cost_is_declared_in_the_units_of_the_user():
    assert bl.Fidelity(100, 5000, cost=bl.PowerCost(0.02)).cost_of(500) == pytest.approx(0.1)
    assert bl.Fidelity(100, 5000, cost=double).cost_of(500) == 1000.0
    assert bl.Fidelity(100, 5000).cost_of(500) == 1.0
    # On the logarithmic scale, this value is half way between the bounds.
    assert bl.Fidelity(1, 100, log=True, cost=bl.PowerCost(0)).cost_of(10) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": 2}, "^base=2 of PowerCost is not usable: pass a number from 0 to full$"),
        ({"base": -0.1}, "^base=-0.1 of PowerCost"),
        ({"base": math.nan}, "^base=nan of PowerCost"),
        ({"base": "0"}, "^base='0' of PowerCost"),
        ({"base": 0, "full": 0}, "^full=0 of PowerCost is not usable: pass a finite number > 0$"),
        ({"base": 0, "full": math.inf}, "^full=inf of PowerCost"),
        ({"base": 0.1, "exponent": 0}, "^exponent=0 of PowerCost is not usable: pass a finite number > 0$"),
        ({"base": 0.1, "exponent": math.nan}, "^exponent=nan of PowerCost"),
    ],
)
def test_power_costs_that_are_refused(arguments, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.PowerCost(**arguments)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (lambda v: math.nan, r"^cost \(<lambda>\) returned nan for the fidelity 1: return a finite number >= 0$"),
        (lambda v: 2.0 - v, r"^cost \(<lambda>\) returned -1.0 for the fidelity 3: return a finite number >= 0$"),
        (lambda v: "1", r"^cost \(<lambda>\) returned '1' for the fidelity 1: "),
        (lambda: 1, r"^cost \(<lambda>\) raised TypeError: .* for the fidelity 1; it takes a fidelity in your units"),
        (lambda v: 1 / (v - 3), r"^cost \(<lambda>\) returned -0.5 for the fidelity 1: "),
        (2.0, r"^cost=2.0 is not usable: pass a bl.PowerCost\(…\), or a function of the fidelity"),
        (bl.PowerCost, "^cost=.* is not usable"),
    ],
)
def test_costs_that_are_refused(cost, message):
    with pytest.raises(bl.errors.InvalidSetting, match=message):
        bl.Fidelity(1, 3, cost=cost)


def test_a_function_may_be_wrong_between_the_ends():
    fidelity = bl.Fidelity(1, 3, cost=lambda v: math.nan if v == 2 else 1.0)
    with pytest.raises(bl.errors.InvalidSetting, match="returned nan for the fidelity 2"):
        fidelity.cost_of(2)


@pytest.mark.parametrize("bias", [0, -1.0, math.nan, math.inf, "1", True])
def test_biases_that_are_refused(bias):
    with pytest.raises(bl.errors.InvalidSetting, match=r"^bias=.* pass a finite number > 0 in units of f, or None"):
        bl.Fidelity(1, 3, bias=bias)


# Comparison and pickling.


def test_fidelities_are_values():
    fidelity = bl.Fidelity(100, 7000, log=True, cost=bl.PowerCost(0.1, full=2), bias=0.5)
    assert repr(fidelity) == "Fidelity(100, 7000, log=True, cost=PowerCost(0.1, full=2.0), bias=0.5)"
    assert repr(bl.Fidelity(0.5, 1, log=False)) == "Fidelity(0.5, 1.0)"
    names = {"Fidelity": bl.Fidelity, "PowerCost": bl.PowerCost}
    for each in (fidelity, bl.Fidelity(0.5, 1), bl.Fidelity(0, 1, cost=double)):
        assert each.encode(each.high) == 1.0
        if each.cost is not double:
            assert eval(repr(each), names) == each
    assert bl.Fidelity(1, 2) != bl.Fidelity(1, 2, bias=1) and bl.PowerCost(0) != bl.PowerCost(0, 2)


def test_a_function_that_cannot_be_pickled_is_named():
    fidelity = bl.Fidelity(1, 2, cost=lambda v: 1.0)
    assert copy.deepcopy(fidelity) is fidelity
    with pytest.raises(bl.errors.InvalidSetting, match=r"^cost \(<lambda>\) cannot be pickled.*PowerCost"):
        pickle.dumps(fidelity)


def test_chosen_fidelities_are_short_decimals():
    opt = bl.TreeSearch({"x": (0.0, 1.0)}, fidelity=bl.Fidelity(0.1, 1.0), seed=0)
    assert [trial.fidelity for trial in opt.suggest(2)] == [0.82, 0.28]


def test_negative_zeros_become_zeros():
    opt = bl.RandomSearch({"x": (-1.0, 1.0)}, fidelity=bl.Fidelity(0.0, 1.0), seed=0)
    trials = [opt.suggest(fidelity=-0.0), opt.add({"x": -0.0}, 1.0, fidelity=-0.0)]
    opt.enqueue({"x": -0.0}, fidelity=-0.0)
    trials.append(opt.suggest())
    assert [math.copysign(1.0, trial.fidelity) for trial in trials] == [1.0, 1.0, 1.0]
    assert [math.copysign(1.0, trial.params["x"]) for trial in trials[1:]] == [1.0, 1.0]
