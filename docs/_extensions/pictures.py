"""The searches of the pictures on the pages of plots, learning curves and delays."""

import heapq
import math
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import belated as bl
from belated.simulate import History, simulate_workers

DOCS = Path(__file__).parents[1]
MINUTE = 60.0
N_TRIALS, N_WORKERS = 48, 6
SPACE = {
    "rate": bl.Real(1e-5, 1.0, log=True),
    "layers": bl.Integer(1, 6),
    "units": bl.Integer(16, 512, log=True),
    "dropout": (0.0, 0.6),
    "solver": ["adam", "sgd", "rmsprop"],
}
BEST_RATES = {"adam": 1e-3, "sgd": 0.05, "rmsprop": 6e-4}
DIVERGES = {"adam": 0.1, "sgd": 0.5, "rmsprop": 0.1}  # learning rates above these diverge
# Small figures, so that their texts can be read on narrow screens.
plt.rcParams.update({"figure.figsize": (5.4, 3.6), "figure.dpi": 110})


def error_of(params: bl.Params) -> float:
    """Return the validation error of a network in percent; the formula stands for a training."""
    size = params["layers"] * math.log2(params["units"])
    loss = 1.6 * math.log10(params["rate"] / BEST_RATES[params["solver"]]) ** 2 + 0.03 * (size - 24) ** 2
    loss += 8 * (params["dropout"] - 0.25) ** 2 + (params["solver"] == "rmsprop")
    return 5 + 25 * loss / (loss + 8)


def time_of(params: bl.Params) -> float:
    """Return the seconds of a training, which grow with the size of the network."""
    return MINUTE * (8 + 0.016 * params["layers"] * params["units"])


def tuned(method: Any = bl.BayesOpt, seed: int = 5) -> Any:
    """Return an optimizer that has tuned a network with workers in simulated time, and whose last trials are pending.

    `simulate_workers` does not have trials that fail.
    """
    now = 0.0
    optimizer = method(SPACE, direction="minimize", clock="seconds", time=lambda: now, seed=seed)
    rng = np.random.default_rng(seed)
    running: list[tuple[float, int, bl.Trial]] = []
    for number in range(N_TRIALS):
        if number >= N_WORKERS:
            now, _, trial = heapq.heappop(running)
            if trial.params["rate"] > DIVERGES[trial.params["solver"]]:
                trial.fail(error="the loss is NaN")
            else:
                value = error_of(trial.params) + rng.normal(0, 0.3)
                trial.observe(value, duration=now - trial.started_at.timestamp())
        trial = optimizer.suggest()
        heapq.heappush(running, (now + time_of(trial.params) * rng.lognormal(0, 0.2), number, trial))
    now += 5 * MINUTE
    return optimizer


def trained() -> bl.BayesOpt:
    """Return an optimizer with learning curves of 30 networks; the last networks are still being trained."""
    optimizer = bl.BayesOpt(SPACE, direction="minimize", curve=bl.Curve(20), seed=0)
    rng = np.random.default_rng(0)
    for number in range(30):
        trial = optimizer.suggest()
        slowness = rng.uniform(2, 5)
        for step in range(1, 21 if number < 27 else 9):
            trial.report(error_of(trial.params) + 60 * math.exp(-step / slowness) + rng.normal(0, 0.3), step)
            if trial.should_stop():
                break
        else:
            if number < 27:
                trial.observe(trial.curve[20])
    return optimizer


def traded() -> bl.BayesOpt:
    """Return an optimizer that minimised the error and the memory of a network; the last errors have not arrived."""
    outcomes = {"error": bl.Minimize(at_most=20.0), "memory": "minimize"}
    optimizer = bl.BayesOpt(SPACE, outcomes=outcomes, seed=0)
    rng = np.random.default_rng(0)
    for number in range(40):
        trial = optimizer.suggest()
        size = trial.params["layers"] * math.log2(trial.params["units"])
        trial.observe({"memory": size * rng.lognormal(0, 0.05)})
        if number < 37:
            trial.observe({"error": error_of(trial.params) + rng.normal(0, 0.3)})
    return optimizer


def batches() -> History:
    """Return the history of workers that wait for each other after each batch of trainings."""
    search = bl.RandomSearch(SPACE, direction="minimize", seed=0)
    return simulate_workers(search, error_of, workers=N_WORKERS, times=time_of, n_trials=N_TRIALS, mode="synchronous")


def blended() -> bl.BayesOpt:
    """Return an optimizer of a cleaner: two blends a day are measured after two days, and one value is mistyped."""
    now = 0.0
    space = {"water": (0.4, 0.9), "soap": (0.0, 0.4), "oil": (0.0, 0.4)}
    constraints = [bl.Mixture(list(space)), lambda params: params["oil"] <= 2 * params["soap"]]
    outcomes = {"gloss": bl.Maximize(), "residue": bl.AtMost(3.0)}
    raw = bl.GP(targets="raw")
    optimizer = bl.BayesOpt(space, constraints=constraints, outcomes=outcomes, surrogate=raw, time=lambda: now, seed=1)
    rng = np.random.default_rng(1)
    trials: list[bl.Trial] = []
    for half_day in range(28):
        now = half_day * 720 * MINUTE
        trials.append(optimizer.suggest())
        if half_day >= 4:
            trial = trials[half_day - 4]
            soap, oil = trial.params["soap"], trial.params["oil"]
            gloss = 40 + 160 * oil + 90 * soap - 300 * oil * soap + rng.normal(0, 0.5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bl.BelatedWarning)  # the mistyped value
                trial.observe(
                    {"gloss": gloss * (0.5 if half_day == 22 else 1), "residue": 12 * oil + rng.normal(0, 0.05)}
                )
    return optimizer


def example(page: str) -> dict[str, Any]:
    """Run the first block of a page without its output, and return its variables."""
    text = (DOCS / page).read_text(encoding="utf-8")
    [code, *_] = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    variables: dict[str, Any] = {}
    with redirect_stdout(None):
        exec(code, variables)
    return variables
