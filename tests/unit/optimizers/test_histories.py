"""After random histories, the model and the suggestions agree with a dense solve that is written from the
definitions."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from scipy.special import erfcx, ndtr

from tests.unit.optimizers.definitions import BOX, CONTEXT, ROWS, encoded, ended_in_order, happened, settings_of
from tests.unit.optimizers.histories import FULL, Run, few, histories, policies


def theta_of(model):
    return model.lengthscale, model.variance, model.noise


@few
@given(history=histories())
def test_the_model_equals_a_dense_solve(history):
    arguments, steps = history
    run = Run(arguments | {"surrogate__inputs": "plain"})  # other tests cover warped inputs
    for what, number in steps:
        run.step(what, number)
        for pending in (False, True):
            surrogate = run.surrogate(pending)
            if surrogate is None:
                assert "surrogate__signal_std" not in arguments
                continue
            model, center, scale, _ = surrogate
            # This test does not check units that a fit chooses, or units of values with different noise. Other tests
            # check these units.
            chosen = "surrogate__signal_std" not in arguments or any(t.std is not None for t in run.opt.trials)
            dense = run.dense(theta_of(model), pending, units=(center, scale) if chosen else None)
            assert model.n_observed == dense.n_rows and len(model.x) == len(dense.x)
            # An estimated center is computed by a linear solve, so it has rounding errors like a prediction.
            tolerance = dense.tolerance()
            reach = tolerance * dense.scale * max(1, np.abs(dense.y).max(initial=0)) if dense.estimated else 1e-12
            assert center == pytest.approx(dense.center, rel=1e-12, abs=reach)
            assert scale == pytest.approx(dense.scale, rel=1e-12)
            z = run.rows(np.random.default_rng(number), 8)
            mean, std = model.predict(z)
            expected, variance = dense.predict(z)
            # A posterior mean is a weighted sum of targets, so it has the rounding errors of the weights.
            size = np.abs(dense.y).max(initial=0) * np.maximum(1, dense.weights(z))
            assert (np.abs(mean - expected) <= tolerance * np.maximum(1, size)).all()
            # Compare variances instead of standard deviations, because near 0 a square root increases errors without
            # bound.
            # With a linear kernel, the largest prior variance is not the signal variance.
            largest = max(dense.covariance(row[None])[0, 0] for row in z)
            assert np.abs(std**2 - variance).max() <= tolerance * largest


def log_improvement(u):
    """log E max(0, u + N(0, 1))."""
    density = np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi)
    with np.errstate(all="ignore"):
        far = -0.5 * u * u - 0.5 * np.log(2 * np.pi) + np.log1p(u * np.sqrt(np.pi / 2) * erfcx(-u / np.sqrt(2)))
        return np.where(u > -1, np.log(density + u * ndtr(u)), far)


def scores(opt, dense, recent, z, context):
    """Compute the acquisition at rows z from the definition of the acquisition."""
    mean, variance = dense.predict(z)
    opt = settings_of(opt)
    # If trials have failed, points with a probability of success below 1/2 are excluded.
    success = dense.success(z)
    noise = dense.noise if opt.predictive_std else 0.0
    if opt.acquisition == "max_variance":
        return variance + (success.weight * success.shortfall if success else 0.0)
    if opt.acquisition == "ucb":
        nu = 1.0  # nu_t is beta; under "censor", the standard deviations at the trials that may still arrive are added
        if opt.pending == "censor":
            nu += np.sqrt(np.maximum(dense.predict(recent)[1], 0) + noise).sum()
        bound = mean + nu * np.sqrt(np.maximum(variance, 0) + noise)
        return bound + (success.weight * (1 + nu) * success.shortfall if success else 0.0)
    here = dense.observed.copy()
    here[:, here.shape[1] - len(context) :] = context
    incumbent = 0.0
    if len(here):
        # A point observed in another context counts with its lower bound.
        means, variances = dense.predict(here)
        is_moved = (here != dense.observed).any(axis=1)
        incumbent = np.where(is_moved, means - 2 * np.sqrt(np.maximum(variances, 0)), means).max()
    sigma = np.sqrt(np.maximum(variance, 1e-24))
    return (
        np.log(sigma)
        + log_improvement((mean - incumbent) / sigma)
        + (success.log_term + (1e6 * success.shortfall if success.avoids else 0.0) if success else 0.0)
    )


THETA = {"surrogate__lengthscale": 0.3, "surrogate__signal_std": 1.0, "surrogate__noise_std": 0.1}


def recently_abandoned(opt):
    """Return the trials that were abandoned after the last result, read from the log."""
    numbers = []
    for event in reversed(opt._log.events(0)):
        kind, facts = happened(event)
        if kind == "Abandoned":
            numbers.append(facts["trial"])
        elif kind in ("New", "Amended", "Failed") or (kind == "Added" and facts["results"]):
            break
    return numbers


def waiting(opt, context):
    """Return the candidates with exact values in this context, and the candidates that wait after failures.

    After its k-th failure, a candidate waits for 10 * 2**k values of other candidates, or for one value for each other
    candidate that was left. A value with standard deviation 0 is exact.
    """
    trials = {trial.number: trial for trial in opt.trials}
    here = [trials[number] for number in ended_in_order(opt._log) if trials[number].context == context]
    exact = {trial.index for trial in here if trial.state == "observed" and trial.std == 0}
    n_members = min(len(ROWS), 2 * len(here))
    failures, done, n_observed = {}, set(), 0
    for trial in here:
        at = trial.index
        if trial.state == "failed":
            done.add(at)
            left = n_members - len(done)
            times = failures.get(at, (0, 0, 0))[0] + 1
            failures[at] = times, n_observed, min(10 * 2**times, left) if left > 0 else math.inf
            continue
        failures.pop(at, None)
        if at in exact:
            n_observed += at not in done
            done.add(at)
        else:
            done.discard(at)
            n_observed += 1
    return exact | {at for at, (_, before, wait) in failures.items() if n_observed - before < wait}


def shortfalls(arguments, steps):
    """For each suggestion, return how much worse the suggested point is than the best candidate. On a box, compare with
    the best of 300 random points."""
    # The model chooses all points after the first value.
    run = Run(arguments | THETA | {"initial": 0})
    opt = run.opt
    its = settings_of(opt)
    columns = 2 if opt.candidates is not None else 7
    for what, number in steps:
        informed = any(t.state == "observed" for t in opt.trials) or (its.pending == "censor" and its.floor is not None)
        before = None
        if what == "suggest" and informed:
            width = columns + 3 * (opt.context is not None)
            # Other tests check the units of values with different noise.
            surrogate = run.surrogate(True) if any(t.std is not None for t in opt.trials) else None
            units = None if surrogate is None else surrogate[1:3]
            before = run.dense((np.full(width, 0.3), 1.0, 0.01), True, units=units, suggests=True)
            window, now = opt.window, run.now()
            recent = [
                encoded(t)
                for t in opt.trials
                if (t.state == "pending" or (window is not None and t.number in run.suggested))
                and t.state != "abandoned"
                and (window is None or now - t.suggested_at <= window)
            ]
            recent = np.array(recent).reshape(-1, width)
            # Candidates in flight, and candidates abandoned after the last result, are not suggested while other
            # candidates are left.
            avoided = [
                (t.index, t.context)
                for t in opt.trials
                if t.state == "pending" and (window is None or now - t.suggested_at <= window)
            ]
            avoided = [] if its.pending == "ignore" else avoided
            avoided += [(opt.trials[k].index, opt.trials[k].context) for k in recently_abandoned(opt)]
            if opt.candidates is not None and its.pending != "ignore":
                for text in {json.dumps(dict(t.context) if t.context else None) for t in opt.trials}:
                    its_context = json.loads(text)
                    avoided += [(index, its_context) for index in waiting(opt, its_context)]
        run.step(what, number)
        if before is None:
            continue
        chosen = np.array([encoded(opt.trials[-1])])
        context = chosen[0, columns:]
        if opt.candidates is not None:
            low, high = ROWS.min(axis=0), ROWS.max(axis=0)
            others = (ROWS - low) / (high - low)
            here = {index for index, its_context in avoided if its_context == opt.trials[-1].context}
            if len(here) < len(ROWS):
                others = np.delete(others, list(here), axis=0)
        else:
            rng = np.random.default_rng(number)
            n, m = rng.integers(0, 6, 300) / 5, np.log(rng.integers(1, 65, 300)) / np.log(64)
            others = np.column_stack([rng.random((300, 2)), n, m, np.eye(3)[rng.integers(0, 3, 300)]])
        others = np.column_stack([others, np.tile(context, (len(others), 1))])
        best = scores(opt, before, recent, others, context).max()
        yield (best - scores(opt, before, recent, chosen, context)[0]) / max(1, abs(best))


@few
@given(history=histories(candidates=ROWS))
def test_suggested_candidates_are_the_best_by_the_definition(history):
    assert max(shortfalls(*history), default=0) <= 1e-6


@policies
@pytest.mark.parametrize("acquisition", ["ucb", "log_ei"])
def test_suggestions_in_a_box_are_rarely_worse_than_random_points(pending, acquisition):
    # On a box, the suggestion may be slightly worse than the maximum.
    found = []
    for seed in range(60 if FULL else 3):
        rng = np.random.default_rng(seed)
        arguments = {"space": BOX, "pending": pending, "acquisition": acquisition, "seed": seed, "clock": "iterations"}
        arguments |= {"surrogate__kernel": "matern52", "surrogate__targets": "standardized", "initial": 5}
        arguments |= {"acquisition__beta": 1.0} if acquisition == "ucb" else {}
        arguments |= {"window": [None, 6][seed % 2], "context": [None, CONTEXT][seed // 2 % 2]}
        kinds = rng.choice(["suggest", "suggest", "observe", "observe", "fail", "add"], size=60)
        found += shortfalls(arguments, zip(kinds, rng.integers(0, 10**6, size=60), strict=True))
    assert len(found) > 10 * (seed + 1)
    assert (np.array(found) > 1e-6).sum() <= 2 + len(found) / 200 and max(found) < 0.5
