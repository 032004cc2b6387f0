"""The values that `BelatedSampler` estimates for trials that Optuna's pruners have stopped."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from belated.integrations.optuna import BelatedSampler  # noqa: E402
from belated.integrations.optuna_pruned import Curve, Stop, impute  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, f, log_of, study_of  # noqa: E402

PRUNERS = {
    "median": optuna.pruners.MedianPruner(),
    "halving": optuna.pruners.SuccessiveHalvingPruner(),
    "hyperband": optuna.pruners.HyperbandPruner(),
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("pruner", PRUNERS)
def test_the_best_point_is_found_beside_a_pruner(pruner, sign):
    def objective(trial):
        value = sum((trial.suggest_float(f"x{i}", -5.0, 5.0) - i) ** 2 for i in range(3))
        for step in range(10):
            trial.report(sign * (value + 1 / (step + 1)), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * value

    study = optuna.create_study(
        study_name="s",
        direction="minimize" if sign == 1 else "maximize",
        sampler=BelatedSampler(seed=0),
        pruner=PRUNERS[pruner],
    )
    study.optimize(objective, 30)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 30
    # The best of 30 random points is above 0.3 in 98 % of runs.
    assert sign * study.best_value < 0.02


def prune(study, trial, reports):
    for step, value in reports.items():
        trial.report(value, step)
    study.tell(trial, state=TrialState.PRUNED)


def records(study):
    core = log_of(study)
    return [core.trial(number) for number in range(len(core))]


def test_a_pruned_trial_is_observed_with_a_value_that_is_marked_as_imputed():
    study = study_of(direction="maximize")
    for reports, final in (({1: 1.0, 2: 3.0}, 5.0), ({1: 2.0, 2: 4.0}, 7.0)):
        trial = study.ask(DISTRIBUTIONS)
        for step, value in reports.items():
            trial.report(value, step)
        study.tell(trial, final)
    prune(study, study.ask(DISTRIBUTIONS), {1: 0.5, 2: 1.0})
    study.tell(study.ask(DISTRIBUTIONS), 1.5)
    found = records(study)
    assert [each.state for each in found[:4]] == ["observed"] * 4
    # The gains of the other trials from step 2 to the end are 2 and 3.
    assert found[2].value == 3.5
    assert json.loads(found[2].attrs[0]) == {"imputed": True, "step": 2, "reported": 1.0}
    assert not found[0].attrs and not found[3].attrs


@pytest.mark.parametrize("reports", [{}, {0: 1.0, 1: math.nan}, {0: math.inf}])
def test_a_pruned_trial_without_a_last_value_has_failed(reports):
    study = study_of()
    study.tell(study.ask(DISTRIBUTIONS), 1.0)
    prune(study, study.ask(DISTRIBUTIONS), reports)
    assert [each.state for each in records(study)[:2]] == ["observed", "failed"]


def test_the_constraints_of_a_pruned_trial_are_known():
    study = study_of(constraints_func=lambda trial: [trial.number - 0.5])
    for reports in ({0: 1.0}, {}):
        prune(study, study.ask(DISTRIBUTIONS), reports)
    found = [[each[:2] for each in record.outcomes] for record in records(study)[:2]]
    assert found == [[("observed", 1.0), ("observed", -0.5)], [("failed", None), ("observed", 0.5)]]


def test_trials_of_all_brackets_are_known():
    study = study_of(search_space=None)
    study.pruner = optuna.pruners.HyperbandPruner(1, 9)

    def objective(trial):
        value = f({name: trial._suggest(name, each) for name, each in DISTRIBUTIONS.items()})
        trial.report(value, 1)
        trial.should_prune()  # the first call of the pruner creates the brackets
        return value

    study.optimize(objective, 12)
    assert len({study.pruner._get_bracket_id(study, trial) for trial in study.trials}) > 1
    assert len(study.sampler._log._core) >= 11
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12


def test_another_process_continues_bit_for_bit_with_a_pruner():
    """Each new result changes the estimates of trials that were pruned earlier."""

    def run(study, n):
        study.pruner = optuna.pruners.SuccessiveHalvingPruner(1, reduction_factor=2)
        for _ in range(n):
            trial = study.ask(DISTRIBUTIONS)
            value = f(trial.params)
            for step in range(1, 6):
                trial.report(value * (1 + 1 / step), step)
                if trial.should_prune():
                    study.tell(trial, state=TrialState.PRUNED)
                    break
            else:
                study.tell(trial, value)
        return [trial.params for trial in study.trials]

    storage = optuna.storages.InMemoryStorage()
    whole = study_of()
    for n in (7, 8, 1, 6):
        parts = run(study_of(storage, "parts"), n)
    assert run(whole, 22) == parts
    assert 4 < sum(trial.state == TrialState.PRUNED for trial in whole.trials) < 18


# Laws of the estimates.

NUMBERS = st.integers(-9, 9).map(float)
REPORTS = st.dictionaries(st.integers(0, 4), st.one_of(NUMBERS, st.just(math.nan)), max_size=5)
COMPLETED = st.lists(st.builds(Curve, REPORTS, NUMBERS), max_size=6)


def stops_of(pruned):
    """Return {number: last report} of the trials whose last reported value is finite."""
    found = {}
    for number, reported in enumerate(pruned):
        if reported and math.isfinite(reported[max(reported)]):
            found[number] = Stop(reported, max(reported), reported[max(reported)])
    return found


@given(st.lists(REPORTS, max_size=6), COMPLETED)
def test_estimates_are_not_better_than_completed_trials_that_were_ahead(pruned, completed):
    stops = stops_of(pruned)
    found = impute(stops, completed, minimize=False)
    assert found.keys() == stops.keys()
    for number, (_, step, value) in stops.items():
        if completed:
            assert found[number] <= max(curve.final for curve in completed)
        for curve in completed:
            if curve.reported.get(step, -math.inf) >= value:
                assert found[number] <= curve.final
        for other, stop in stops.items():
            if stop.step == step and stop.value <= value:
                assert found[other] <= found[number]


@given(st.lists(REPORTS, max_size=6), COMPLETED)
def test_estimates_do_not_depend_on_the_order_of_trials_and_change_their_sign_with_the_values(pruned, completed):
    stops = stops_of(pruned)
    found = impute(stops, completed, minimize=False)
    assert impute(dict(reversed(stops.items())), completed[::-1], minimize=False) == found

    def negative(reported):
        return {step: -value for step, value in reported.items()}

    turned = impute(
        {number: Stop(negative(reported), step, -value) for number, (reported, step, value) in stops.items()},
        [Curve(negative(curve.reported), -curve.final) for curve in completed],
        minimize=True,
    )
    assert turned == {number: -value for number, value in found.items()}


def test_estimates_are_exact_where_all_trials_gain_the_same():
    rng = np.random.default_rng(0)
    gains = rng.normal(size=9)
    finals = rng.normal(size=30)
    curves = [{step: value - gain for step, gain in enumerate(gains)} for value in finals]
    completed = [Curve(curve, value) for curve, value in zip(curves[:5], finals[:5], strict=True)]
    stops = {}
    for number in range(5, 30):
        step = int(rng.integers(9))
        reported = {each: curves[number][each] for each in range(step + 1)}
        stops[number] = Stop(reported, step, reported[step])
    found = impute(stops, completed, minimize=False)
    expected = {number: min(finals[number], max(finals[:5])) for number in stops}
    assert found == pytest.approx(expected)
    assert sum(finals[number] > max(finals[:5]) for number in stops) > 0


@pytest.mark.parametrize("scale", [1e308, 1e-308])
def test_estimates_are_finite(scale):
    curve = {0: -scale, 1: scale}
    stops = {0: Stop(curve, 1, scale), 1: Stop({0: scale}, 0, scale), 2: Stop({0: -scale}, 0, -scale)}
    for completed in ([], [Curve(curve, scale), Curve({0: scale}, -scale)], [Curve({}, scale)]):
        for minimize in (False, True):
            assert all(map(math.isfinite, impute(stops, completed, minimize=minimize).values()))
