"""Spaces of Optuna studies: the parameters that are sampled together, and the distributions."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import belated as bl
from belated.study.from_optuna import dimension_of

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from belated.integrations.optuna import BelatedSampler  # noqa: E402
from tests.system.integrations.optuna.studies import DISTRIBUTIONS, SPACE, sampler_of, study_of  # noqa: E402


def test_the_space_has_the_parameters_of_all_completed_trials():
    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return value + trial.suggest_float("only_a", 0.0, 1.0)
        return value + trial.suggest_float("shift", 0.0, 1.0 + trial.number)

    study = optuna.create_study(sampler=sampler_of(search_space=None))
    study.optimize(objective, 12)
    expected = optuna.search_space.intersection_search_space(study.trials)
    assert study.sampler.infer_relative_search_space(study, study.trials[-1]) == expected
    assert expected.keys() == {"x", "kind"} == set(study.sampler._log.space)
    assert all(("only_a" in trial.params) is (trial.params["kind"] == "a") for trial in study.trials)


def test_the_space_of_the_first_trial_is_used_by_parallel_trials():
    study = study_of(search_space=None)
    first = study.ask(DISTRIBUTIONS)
    own = bl.BayesOpt(SPACE, direction="minimize", seed=3)
    own.add(first.params)
    for _ in range(7):
        assert study.ask(DISTRIBUTIONS).params == own.suggest().params
    study.tell(3, 1.0)
    own.observe(3, 1.0)
    assert study.ask(DISTRIBUTIONS).params == own.suggest().params


def test_independent_values_fill_each_range_evenly_in_every_process():
    study = optuna.create_study(study_name="same")
    frozen = [study._storage.get_trial(study._storage.create_new_trial(study._study_id)) for _ in range(16)]
    samplers = [sampler_of(seed=5) for _ in range(16)]
    values = np.array(
        [
            [sampler.sample_independent(study, trial, name, FloatDistribution(0.0, 8.0)) for name in "xy"]
            for sampler, trial in zip(samplers, frozen, strict=True)
        ]
    )
    for block in (values[:8], values[8:]):
        assert sorted(np.floor(block[:, 0])) == sorted(np.floor(block[:, 1])) == list(range(8))
    assert not np.array_equal(np.floor(values[:8]), np.floor(values[8:]))
    kinds = [samplers[0].sample_independent(study, t, "k", CategoricalDistribution("abcd")) for t in frozen[:8]]
    assert sorted(kinds) == list("aabbccdd")


def test_without_a_seed_the_processes_of_a_study_agree_and_studies_differ(url):
    points = []
    for name in ("s", "s", "other"):
        study = study_of(url, name=name, seed=None)
        trial = study.trials[0] if study.trials else study.ask(DISTRIBUTIONS)
        number = study._storage.get_trial(trial._trial_id)
        points.append(sampler_of(seed=None).sample_relative(study, number, DISTRIBUTIONS))
    assert points[0] == points[1] != points[2]


@st.composite
def distributions(draw):
    """Any distribution of Optuna that has more than one value and that belated can search."""
    kind = draw(st.sampled_from(["float", "log", "step", "int", "int log", "int step", "choices"]))
    if kind == "choices":
        choices = st.one_of(st.none(), st.text(max_size=3), st.integers(2, 99), st.floats(0.01, 0.99))
        return CategoricalDistribution(draw(st.lists(choices, min_size=2, max_size=5, unique=True)))
    if kind.startswith("int"):
        low = draw(st.integers(1, 1000) if "log" in kind else st.integers(-1000, 1000))
        high = low + draw(st.integers(1, 10**6))
        step = draw(st.integers(1, high - low)) if "step" in kind else 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return IntDistribution(low, high, log="log" in kind, step=step)
    low = round(draw(st.floats(1e-6, 1e3) if kind == "log" else st.floats(-1e6, 1e6)), 6)
    high = low + draw(st.floats(1e-6, 1e6))
    assume(high > low * (1 + 1e-9))
    step = draw(st.integers(1, 10**4)) * 10.0 ** draw(st.integers(-4, 2)) if kind == "step" else None
    assume(step is None or 1 <= (high - low) / step < 1e6)
    # Optuna refuses values that differ from a step by 1e-8 steps, so rounding errors must be smaller.
    assume(step is None or max(abs(low), abs(high)) / step < 1e7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distribution = FloatDistribution(low, high, log=kind == "log", step=step)
    assume(not distribution.single())
    return distribution


@given(distribution=distributions(), seed=st.integers(0, 99), u=st.floats(0.0, 1.0))
@settings(max_examples=60)
def test_values_pass_between_distributions_and_dimensions(distribution, seed, u):
    dimension = dimension_of("x", distribution)
    # The dimension accepts the distribution's values and does not change them.
    study = optuna.create_study(study_name="s", sampler=optuna.samplers.RandomSampler(seed=seed))
    theirs = study.ask({"x": distribution}).params["x"]
    assert dimension.check(theirs) == (pytest.approx(theirs, rel=1e-9) if isinstance(theirs, float) else theirs)
    # The distribution contains the values of the dimension.
    columns = [u] if dimension.width == 1 else np.eye(dimension.width)[int(u * (dimension.width - 1))]
    ours = dimension.decode(columns)
    assert distribution._contains(distribution.to_internal_repr(ours))
    assert distribution.to_external_repr(distribution.to_internal_repr(ours)) == ours
    assert type(ours) is type(theirs) or isinstance(distribution, CategoricalDistribution)


@given(st.dictionaries(st.sampled_from("abcd"), distributions(), min_size=1), st.integers(0, 99))
@settings(max_examples=10)
def test_any_space_is_searched(given_space, seed):
    study = optuna.create_study(sampler=BelatedSampler(seed=seed, warn_independent_sampling=False))
    for k in range(7):
        trial = study.ask(given_space)
        assert trial.params.keys() == given_space.keys()
        study.tell(trial, float(np.sin(k)))
    log = study.sampler._log
    assert len(log._core) == 6
    for number in range(6):
        point = log.space.params_of(log._core.trial(number))
        for name, value in study.trials[number].params.items():
            assert point[name] == (pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value)
