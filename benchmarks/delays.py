"""Accuracy of the delay distribution on simulated trials; prints JSON.

*bias*: a study has enough trials for about 60 arrivals (`--arrivals`), all observed up to the 99 % quantile of the
delays. Up to 60 % of the trials fail or never end. The program prints the average errors of the probability that a
trial arrives and of the logs of the median and the 80 % quantile of the delay. Each average must be within a bound
(0.03, and 0.1 for the quantiles) plus three standard errors.

*few*: similar studies with about 3, 5, 10 and 20 arrivals. The program prints the shares of the 80 % intervals that
contain the truth, on average and for the worst distribution.

*counts*: trials start at random times, at least 10 are in flight, and the number of arrivals in the next period is
forecast. The program prints the share of counts in the 80 % interval, the share of randomised probability integral
transforms (PIT) between 0.1 and 0.9, and the Kolmogorov–Smirnov distance of the PIT from the uniform distribution times
the root of the number of studies. The distance is printed for all studies, and for each pair of the share of trials
that never end and the share that fail. The 1 % critical value of the distance is 1.63 if all studies have the same
design.

*early*: trials start evenly, 20 per mean delay, up to 1, 2, 4 or 6 mean delays after the start of the study. At least 3
have arrived. The number of arrivals in the next mean delay is forecast. The program prints the coverage of the
intervals minus their probability under the forecast, for each distribution of delays and share of lost trials, and for
all of them.

Usage: python benchmarks/delays.py [--simulations 200] [--arrivals 60]
"""

import argparse
import json
import math
from statistics import NormalDist

import numpy as np

from belated._core import DelayDistribution

CENSORED, ARRIVED, FAILED = 0, 1, 2


def _weibull(spread):
    return lambda q: (-np.log1p(-q)) ** spread


def _log_normal(spread):
    inverse = np.vectorize(NormalDist().inv_cdf)
    return lambda q: np.exp(spread * inverse(q))


def _log_logistic(spread):
    return lambda q: (q / (1 - q)) ** spread


# Quantiles of the delays of trials that arrive, in units of 20 seconds or iterations.
LAWS = {
    "exponential": _weibull(1.0),
    "weibull, shape 0.7": _weibull(1 / 0.7),
    "weibull, shape 2": _weibull(0.5),
    "log-normal, spread 0.5": _log_normal(0.5),
    "log-normal, spread 1": _log_normal(1.0),
    "log-logistic, shape 2": _log_logistic(0.5),
    "log-logistic, shape 1.5": _log_logistic(1 / 1.5),
}
UNIT = 20.0
# The probabilities that a trial never ends and that it fails.
SHARES = [(0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.15, 0.15), (0.3, 0.3)]


# Distributions of delays in early studies, with their means in units of 20.
EARLY = {"exponential": 1.0, "weibull, shape 2": math.gamma(1.5), "log-normal, spread 1": math.exp(0.5)}
LOST = (0.0, 0.2, 0.5)


def simulate(rng, law, n, never, fails):
    """Return the times at which n trials arrive and the times at which they fail; infinite for trials that do not."""
    kind = rng.choice(3, n, p=[never, 1 - never - fails, fails])
    arrival = np.where(kind == ARRIVED, UNIT * LAWS[law](rng.random(n)), np.inf)
    return arrival, np.where(kind == FAILED, UNIT * 0.5 * rng.exponential(size=n), np.inf)


def observe(arrival, failure, ages):
    """Return the ages and outcomes of trials that have been observed up to these ages."""
    end = np.minimum(np.minimum(arrival, failure), ages)
    return end, np.where(arrival <= ages, ARRIVED, np.where(failure <= ages, FAILED, CENSORED))


def bias(rng, law, never, fails, simulations, arrivals):
    """Return the average error and its standard error for each of three figures, and the coverage of 80 %
    intervals."""
    chance, errors, covered = 1 - never - fails, [], []
    logs = [math.log(UNIT * float(LAWS[law](q))) for q in (0.5, 0.8)]
    for _ in range(simulations):
        n = math.ceil(arrivals / (0.99 * chance))
        while True:
            times = simulate(rng, law, n, never, fails)
            ages, outcomes = observe(*times, np.full(n, UNIT * float(LAWS[law](0.99))))
            if np.any(outcomes == ARRIVED):
                break
        fit = DelayDistribution(ages, outcomes)
        forecasts = [fit.arrives_ever(), fit.quantile(0.5), fit.quantile(0.8)]
        truth = [chance, *map(math.exp, logs)]
        covered.append([low <= true <= high for true, (_, low, high, _) in zip(truth, forecasts, strict=True)])
        errors.append(
            [forecasts[0][0] - chance, math.log(forecasts[1][0]) - logs[0], math.log(forecasts[2][0]) - logs[1]]
        )
    errors = np.array(errors)
    return errors.mean(0), errors.std(0) / math.sqrt(simulations), np.mean(covered, 0)


def counts(rng, law, never, fails, simulations, clock="seconds"):
    """Return whether the counts of later arrivals are in the 80 % interval, and their PIT."""
    inside, transforms = [], []
    while len(inside) < simulations:
        n = int(rng.integers(40, 100))
        arrival, failure = simulate(rng, law, n, never, fails)
        started = rng.uniform(0, UNIT * 6, n)
        now, within = UNIT * 6, UNIT * rng.uniform(0.3, 2)
        if clock == "iterations":
            started, within = np.sort(started).astype(int), math.ceil(within)
            arrival, failure = np.floor(arrival) + 1, np.floor(failure) + 1
        age = now - started
        if clock == "iterations":
            # A trial of age k may still arrive with delay k.
            ends = np.minimum(arrival, failure)
            done = ends < age
            ages, outcomes = observe(arrival, failure, np.where(done, age, 0))
            ages = np.where(done, ends, age).astype(float)
        else:
            ages, outcomes = observe(arrival, failure, age)
        flying = outcomes == CENSORED
        if flying.sum() < 10 or not np.any(outcomes == ARRIVED):
            continue
        later = arrival[flying] <= age[flying] + within
        if clock == "iterations":
            later = arrival[flying] < age[flying] + within
        count = int(later.sum())
        fit = DelayDistribution(ages, outcomes, clock=clock)
        probabilities = fit.count_distribution(ages[flying], within)
        _, low, high, _ = fit.count(ages[flying], within)
        inside.append(low <= count <= high)
        transforms.append(probabilities[:count].sum() + rng.random() * probabilities[count])
    return np.array(inside), np.array(transforms)


def early(rng, law, lost, means, simulations, clock):
    """Return the coverage of the intervals of counts minus their probability, and the expected and true shares of
    trials in flight that never arrive."""
    n, excess, never = round(UNIT * means), [], []
    while len(excess) < simulations:
        arrival = simulate(rng, law, n, lost, 0.0)[0] / EARLY[law]
        if clock == "iterations":
            arrival, age = np.floor(arrival) + 1, n - np.arange(n, dtype=float)
            done = arrival < age
        else:
            age = rng.uniform(0, n, n)
            done = arrival <= age
        if done.sum() < 3 or done.all():
            continue
        flying, ends = age[~done], arrival[~done]
        count = np.sum(ends < flying + UNIT) if clock == "iterations" else np.sum(ends <= flying + UNIT)
        fit = DelayDistribution(np.where(done, arrival, age), np.where(done, ARRIVED, CENSORED), clock=clock)
        _, low, high, _ = fit.count(flying, UNIT)
        excess.append((low <= count <= high) - fit.count_distribution(flying, UNIT)[int(low) : int(high) + 1].sum())
        never.append([np.mean([1 - fit.arrives_ever(each)[0] for each in flying]), np.mean(np.isinf(ends))])
    return np.mean(excess), np.mean(never, 0)


def distance(transforms):
    """Return the Kolmogorov–Smirnov distance from the uniform distribution times the root of n."""
    u, n = np.sort(transforms), len(transforms)
    steps = np.arange(n + 1) / n
    return math.sqrt(n) * max(np.max(steps[1:] - u), np.max(u - steps[:-1]))


def describe_bias(rng, law, simulations, arrivals):
    result = {}
    for never, fails in SHARES:
        mean, error, covered = bias(rng, law, never, fails, simulations, arrivals)
        bounds = np.array([0.03, 0.1, 0.1]) + 3 * error
        result[f"never {never}, fails {fails}"] = {
            "arrives, log median, log 80 %": [round(float(m), 4) for m in mean],
            "within": [bool(abs(m) <= b) for m, b in zip(mean, bounds, strict=True)],
            "coverage": [round(float(c), 3) for c in covered],
        }
    return result


def describe_few(rng, simulations):
    result = {}
    for arrivals in (3, 5, 10, 20):
        # Intervals inside (0, 1) cannot contain a probability of 1.
        cases = [(law, *shares) for law in LAWS for shares in SHARES[1:]]
        shares = [bias(rng, *case, simulations, arrivals)[2] for case in cases]
        result[arrivals] = {
            "coverage": [round(float(c), 3) for c in np.mean(shares, 0)],
            "lowest": [round(float(c), 3) for c in np.min(shares, 0)],
        }
    return result


def describe_counts(rng, simulations, clock):
    inside, transforms = zip(
        *(counts(rng, law, never, fails, simulations, clock) for law in LAWS for never, fails in SHARES), strict=True
    )
    by_shares = {
        f"never {never}, fails {fails}": round(float(distance(np.concatenate(transforms[i :: len(SHARES)]))), 2)
        for i, (never, fails) in enumerate(SHARES)
    }
    inside, transforms = np.concatenate(inside), np.concatenate(transforms)
    return {
        "studies": len(inside),
        "coverage": round(float(inside.mean()), 3),
        "PIT in 0.1 to 0.9": round(float(np.mean((transforms > 0.1) & (transforms < 0.9))), 3),
        "PIT, deciles": [round(float(share), 3) for share in np.histogram(transforms, 10, (0, 1))[0] / len(inside)],
        "distance": round(float(distance(transforms)), 2),
        "distance by shares": by_shares,
    }


def describe_early(rng, simulations, clock):
    result = {}
    for means in (1, 2, 4, 6):
        cells = {(law, lost): early(rng, law, lost, means, simulations, clock) for law in EARLY for lost in LOST}
        result[f"{means} mean delays"] = {
            "coverage minus probability": round(float(np.mean([excess for excess, _ in cells.values()])), 3),
            "by law and lost share": {law: [round(float(cells[law, lost][0]), 3) for lost in LOST] for law in EARLY},
            "never, expected and true": {
                law: [[round(float(share), 2) for share in cells[law, lost][1]] for lost in LOST] for law in EARLY
            },
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--arrivals", type=int, default=60)
    arguments = parser.parse_args()
    rng, n = np.random.default_rng(0), arguments.simulations
    result = {
        "bias": {law: describe_bias(rng, law, n, arguments.arrivals) for law in LAWS},
        "few": describe_few(rng, n),
        "counts": {clock: describe_counts(rng, n, clock) for clock in ("seconds", "iterations")},
        "early": {clock: describe_early(rng, 2 * n, clock) for clock in ("seconds", "iterations")},
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
