"""`BelatedSampler` reads the constraints of Optuna's trials as outcomes that must be at most 0."""

import functools
import math
from datetime import datetime, timedelta

import pytest

import belated as bl

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from belated.integrations.optuna import BelatedPruner, withdraw  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, f, sampler_of, study_of  # noqa: E402

BOUNDS = {"constraints[0]": bl.AtMost(0.0), "constraints[1]": bl.AtMost(0.0)}


def measured(params):
    return [params["rate"] - 0.5, 0.5 - params["rate"] - params["share"]]


def of_trial(trial):
    return measured(trial.params)


def outcomes(study, **arguments):
    """Return the states and values of the outcomes of each trial of a study, in the log of a new sampler."""
    study.sampler = sampler_of(**arguments)
    study.ask(DISTRIBUTIONS)
    core = study.sampler._log._core
    return [[each[:2] for each in core.trial(number).outcomes] for number in range(len(core))]


@pytest.mark.parametrize("share_a_sampler", [True, False])
def test_the_points_are_those_of_an_optimizer_with_outcomes(share_a_sampler):
    own = bl.BayesOpt(SPACE, outcomes={"value": "minimize"} | BOUNDS, seed=3)
    study = study_of(constraints_func=of_trial)
    for _ in range(16):
        if not share_a_sampler:
            study.sampler = sampler_of(constraints_func=of_trial)
        trial, mine = study.ask(DISTRIBUTIONS), own.suggest()
        assert trial.params == mine.params
        study.tell(trial, f(trial.params))
        own.observe(mine, {"value": f(mine.params)} | dict(zip(BOUNDS, measured(mine.params), strict=True)))
    assert study.best_trial.number == own.best_trial_.number


def test_each_constraint_is_an_outcome():
    study = study_of(constraints_func=lambda trial: [trial.number - 0.5, -1.0])
    for value in (1.0, math.inf, 2.0):
        study.tell(study.ask(DISTRIBUTIONS), value)
    study.tell(study.ask(DISTRIBUTIONS), state=TrialState.FAIL)
    study.ask(DISTRIBUTIONS)
    assert outcomes(study)[:5] == [
        [("observed", 1.0), ("observed", -0.5), ("observed", -1.0)],
        [("failed", None), ("observed", 0.5), ("observed", -1.0)],
        [("observed", 2.0), ("observed", 1.5), ("observed", -1.0)],
        [("failed", None)] * 3,
        [("pending", None)] * 3,
    ]
    assert [trial.system_attrs["constraints"] for trial in study.trials[:3]] == [[n - 0.5, -1.0] for n in range(3)]


def test_trials_without_constraints_leave_them_out():
    study = study_of()
    study.tell(study.ask(DISTRIBUTIONS), 1.0)
    study.sampler = sampler_of(constraints_func=lambda trial: [-1.0])
    study.tell(study.ask(DISTRIBUTIONS), 2.0)
    found = outcomes(study)
    assert found[:2] == [[("observed", 1.0), ("abandoned", None)], [("observed", 2.0), ("observed", -1.0)]]
    # A trial that was suggested before the first constraint was known stays suggested.
    assert [study.sampler._log._core.trial(number).suggested for number in range(2)] == [True, True]


def test_infinite_constraints():
    study = study_of(constraints_func=lambda trial: [math.inf if trial.number else -math.inf])
    for value in (1.0, 2.0):
        study.tell(study.ask(DISTRIBUTIONS), value)
    assert outcomes(study)[:2] == [
        [("observed", 1.0), ("abandoned", None)],
        [("observed", 2.0), ("failed", None)],
    ]


CONSTRAINTS = [[-1.0, 0.5], [-math.inf, -1.0], [math.inf, -1.0], [math.inf, -math.inf]]
CONSTRAINTS += [[-math.inf, -math.inf], [0.5], [], None]


@pytest.mark.parametrize("value", [1.0, math.inf, None])
def test_import_and_sampler_give_the_outcomes_the_same_states(value):
    study = study_of()
    for constraints in CONSTRAINTS:
        system_attrs = {} if constraints is None else {"constraints": constraints}
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        params = study.ask(DISTRIBUTIONS).params
        trial = optuna.trial.create_trial(
            state=state, value=value, params=params, distributions=DISTRIBUTIONS, system_attrs=system_attrs
        )
        study.add_trial(trial)
    names = ["constraints[0]", "constraints[1]"]
    space = bl.Study.from_optuna(study._storage, study.study_name).domain
    optimizer = bl.RandomSearch(space, outcomes={"value": "minimize"} | dict.fromkeys(names, bl.AtMost(0.0)))
    imported = bl.Study.from_optuna(study._storage, study.study_name, optimizer=optimizer)
    found = [[(each.state, each.value) for each in trial.outcomes.values()] for trial in imported.trials]
    ended = [trial.number for trial in study.trials if trial.state.is_finished()]
    sampled = outcomes(study)
    assert [each for each in found if ("pending", None) not in each] == [sampled[number] for number in ended]
    if value == 1.0:
        last = [each[1:] for each in found if ("pending", None) not in each]
        assert last[1] == [("abandoned", None), ("observed", -1.0)] and last[2][0] == ("failed", None)
        assert last[3] == [("failed", None), ("abandoned", None)] and last[6] == [("abandoned", None)] * 2


@pytest.mark.skipif(not hasattr(optuna.Trial, "set_constraint"), reason="new in Optuna 5")
def test_constraints_that_the_objective_sets_count_too():
    study = study_of(constraints_func=lambda trial: [-1.0])
    for value in (1.0, -1.0, None):
        trial = study.ask(DISTRIBUTIONS)
        if value is not None:
            trial.set_constraint("memory", value)
        study.tell(trial, 1.0)
    found = [[value for _, value in each] for each in outcomes(study)[:3]]
    assert found == [[1.0, -1.0, 1.0], [1.0, -1.0, -1.0], [1.0, -1.0, None]]
    assert list(study.sampler._log.optimizer.outcomes) == ["value", "constraints[0]", "constraints:memory"]


def test_a_constraint_that_is_nan_is_refused():
    study = study_of(constraints_func=lambda trial: [float("nan")])
    with pytest.raises(bl.errors.InvalidSetting, match="constraints_func returned NaN"):
        study.tell(study.ask(DISTRIBUTIONS), 1.0)


def test_stale_trials_and_withdrawn_trials():
    study = study_of(constraints_func=lambda trial: [-1.0])
    for value in (1.0, 2.0):
        study.tell(study.ask(DISTRIBUTIONS), value)
    study.ask(DISTRIBUTIONS)
    withdraw(study, 0)
    other = optuna.create_study(sampler=sampler_of())
    trials = study.trials
    trials[2].datetime_start = datetime.now() - timedelta(seconds=100)
    other.add_trials(trials)
    assert outcomes(other, stale_after=50)[2] == [("abandoned", None)] * 2
    assert outcomes(study)[0] == [("withdrawn", None)] * 2


def test_curves_belong_to_the_value():
    curve = bl.Curve(3)
    study = study_of(constraints_func=lambda trial: [trial.number - 0.5], curve=curve)
    for state in (TrialState.COMPLETE, TrialState.PRUNED):
        trial = study.ask(DISTRIBUTIONS)
        trial.report(1.0, 1)
        study.tell(trial, 1.0 if state == TrialState.COMPLETE else None, state)
    found = outcomes(study, curve=curve)[:2]
    assert found == [[("observed", 1.0), ("observed", -0.5)], [("stopped", None), ("observed", 0.5)]]
    assert [study.sampler._log._core.trial(number).suggested for number in range(2)] == [True, True]
    # The pruner compares the curves of trials that satisfy the constraints.
    study.pruner = BelatedPruner("asha", curve=curve)
    trial = study.ask(DISTRIBUTIONS)
    trial.report(5.0, 1)
    assert isinstance(trial.should_prune(), bool)


@pytest.mark.parametrize(
    "optimizer",
    [
        bl.TreeSearch,
        functools.partial(bl.BayesOpt, pending="censor", window=5, acquisition="ucb"),
        lambda space, direction, seed, outcomes=None: bl.BayesOpt(space, direction=direction, seed=seed),
    ],
)
def test_optimizers_without_outcomes_are_refused(optimizer):
    study = study_of(optimizer=optimizer, constraints_func=lambda trial: [-1.0])
    study.tell(study.ask(DISTRIBUTIONS), 1.0)
    with pytest.raises((bl.errors.InvalidSetting, bl.errors.UnknownArgument)):
        study.ask(DISTRIBUTIONS)


def test_outcomes_of_a_given_optimizer_are_refused():
    study = study_of(optimizer=functools.partial(bl.BayesOpt, outcomes={"value": "minimize"}))
    with pytest.raises(bl.errors.InvalidSetting, match="optimizer has outcomes"):
        study.ask(DISTRIBUTIONS)


def test_a_point_within_the_constraints_is_found():
    space = dict.fromkeys("xy", optuna.distributions.FloatDistribution(0.0, 1.0))
    study = study_of(search_space=space, constraints_func=lambda trial: [1.2 - trial.params["x"] - trial.params["y"]])
    for _ in range(20):
        trial = study.ask(space)
        study.tell(trial, trial.params["x"] ** 2 + trial.params["y"] ** 2)
    # The minimum with x + y >= 1.2 is 0.72 at x = y = 0.6.
    assert 0.72 - 1e-9 <= study.best_value < 0.73
