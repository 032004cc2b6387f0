"""Wang et al. 2022, Figure 3: three classifiers, tuned by tree search while results are late.

(a) An SVM on 20 newsgroups. The parameters are C and gamma, both in [1e-5, 1e5] on a logarithmic scale. (The paper
prints [e^-5, e^5], but some of its results are outside of this range.) There are 100 to 7,000 samples, 5-fold
cross-validation, and 5 runs of 700 s with a delay of 4 s.

(b) XGBoost on MNIST. Two of the five parameters are integers. There are 500 to 20,000 samples, 3-fold cross-validation,
and 5 runs of 1,700 s with a delay of 10 s.

(c) A neural network on MNIST. The parameters are the sizes of three layers, the solver, the activation, the learning
rate in [1e-5, 1e-1] on a logarithmic scale, and early stopping. The solver lbfgs does not have the last two parameters.
There are 1,000 to 60,000 samples, 3-fold cross-validation, and 5 runs of 1,800 s with a delay of 20 s.

docs/pcts_tuning.md has the sources of the data. ``--iterations T`` sets the duration of a run. With ``--quick``, the
three experiments use 400, 200 and 360 of scikit-learn's bundled digits, and the network is trained for few iterations.
``--keep DIR`` keeps each evaluation, so that a stopped replay can continue.

Notation: f(params, n) is the cross-validated accuracy on the first n rows. z in [0, 1] is a fidelity; the number n of
samples increases from `low` at z = 0 to `high` at z = 1. C bounds the bias, |f_z − f_1| ≤ C·(1 − z). b is the range in
DUCBV's bound.

The clock: an evaluation of n samples keeps the machine busy for n/high of the time of a full evaluation. The result
arrives after the paper's constant delay. Algorithms that use delayed feedback start the next evaluation when the
machine is free. Algorithms that wait for results start the next evaluation when the last result has arrived. All
algorithms have the same time. The time of a full evaluation is the paper's total time divided by the paper's number of
evaluations. The paper's trees had 81, 17 and 15 nodes, and all nodes except the root were evaluated.

The paper leaves some settings open. With b = 1, the last term of DUCBV's bound is above 1 in any cell with fewer than
3·log t values, but accuracies are between 0 and 1. DUCBV would then visit cells in the order of their depth until the
end. For other functions the authors' scripts multiply the last term by 0.02. Here b = 1·0.02 by default, and b = 1 with
``--faithful``. No noise is added to the accuracies, as in the authors' program; DUCB1σ is given σ² = 0.02. C is
estimated before the clock starts, as in the authors' program: C = √2·|f_0.8 − f_0.2|/0.6, where f_z is the accuracy at
the centre with fidelity z. ν = C and ρ = 0.95, the largest value of the paper's POO.

At equally spaced times, a search is asked for its recommendation. A reading is the accuracy of this recommendation at
full fidelity. If all evaluations are full evaluations, the recommendation is the best point so far. Otherwise the tree
determines the recommendation. The figure shows the best reading so far, as in the paper. However, a search with
fidelities does not know which of its recommendations is best.
"""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import belated as bl
from belated._core import InvalidSetting
from belated.replays import report, tuning_data, verdicts, wang
from belated.replays.reference_tree import RHO_MAX
from belated.replays.report import Array, Report
from belated.replays.runner import Options, Replay, kept_name, run_all, seed_of
from belated.replays.tuning_data import Source
from belated.simulate import InFlight

Params = Mapping[str, Any]
Accuracy = Callable[[Params, int], float]

NOISE_STD = math.sqrt(0.02)
B, B_FACTOR = 1.0, 0.02
#: Lower limit of C, which would be 0 if the two accuracies at the centre were equal by chance.
MIN_BIAS = 0.01
N_READINGS = 40
PCTS, WAITING = (tuple(f"{name}+{bound}" for bound in ("DUCB1-sigma", "DUCBV")) for name in ("PCTS", "wait-and-act"))
ALGORITHMS = (*PCTS, *(f"{each}, full" for each in PCTS), *WAITING, "RandomSearch", "BayesOpt")
#: The names of algorithms in the rows of table 6. MFPOO is a tree search with fidelities that waits for each result.
PUBLISHED = ("PCTS + DUCB1-sigma", "PCTS + DUCBV", "MFPOO+UCB1-sigma", "MFPOO+UCBV")
PUBLISHED_AS = dict(zip((*PCTS, *WAITING), PUBLISHED, strict=True))


@dataclass(frozen=True)
class Experiment:
    """A classifier to tune.

    Attributes
    ----------
    task : str
        The name of the task in table 6.
    wanted : {"newsgroups", "mnist"}
    space : dict
    classifier : callable
        A module-level function of params and quick that returns a new classifier.
    n_folds : int
        The number of folds of the cross-validation.
    samples : (int, int)
        The lowest and highest fidelity.
    min_samples : int
        The lowest fidelity shrinks with the number of rows, but not below this limit.
    quick_samples : int
        The highest fidelity with ``--quick``.
    evaluation, delay : int
        The time of a full evaluation in seconds, and the time from the end of an evaluation to the arrival of its
        result.
    """

    task: str
    wanted: str
    space: dict[str, Any]
    classifier: Callable[[Params, bool], Any]
    n_folds: int
    samples: tuple[int, int]
    min_samples: int
    quick_samples: int
    evaluation: int
    delay: int

    def range(self, n_rows: int) -> tuple[int, int]:
        """Return the lowest and the highest fidelity for this number of rows."""
        low, high = self.samples
        if n_rows >= high:
            return low, high
        return min(max(round(low * n_rows / high), self.min_samples), n_rows - 1), n_rows

    def accuracy(self, params: Params, x: Any, y: Any, quick: bool) -> float:
        """Return the mean accuracy over stratified folds; return NaN if weights became infinite or NaN."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.model_selection import cross_val_score

        with warnings.catch_warnings():
            # Training may not converge, and weights may overflow at large rates. This is part of the task.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                scores = cross_val_score(self.classifier(params, quick), x, y, cv=self.n_folds, error_score="raise")
                return float(scores.mean())
            except ValueError as error:
                if "non-finite" not in str(error):
                    raise
                return math.nan


def make(name: str, options: Options) -> Report:
    """Run all algorithms on an experiment."""
    experiment = EXPERIMENTS[name]
    source = tuning_data.find(experiment.wanted, options.data, bundled=options.quick)
    low, high = experiment.range(min(source.n_rows, experiment.quick_samples) if options.quick else source.n_rows)
    settings = [(name, algorithm) for algorithm in ALGORITHMS]
    function = partial(run_task, experiment=experiment, source=source, samples=(low, high))
    names = names_of(source, (low, high), options)
    found = run_all(function, settings, options, f"pcts-{name}", names)
    known = {} if source.is_stand_in else published(options.data, experiment.task)
    made: Report = {"data": source.words, "samples": (low, high), "duration": options.iterations}
    made |= {"evaluation": experiment.evaluation, "delay": experiment.delay}
    made["times"] = report.readings(options.iterations, N_READINGS)
    described = [describe(algorithm, results, known) for (_, algorithm), results in found.items()]
    return made | {"settings": described, "verdicts": verdicts.comparisons(described, (), pairs())}


def pairs() -> list[tuple[str, str]]:
    """Return the compared algorithms: PCTS against its tree without fidelities, its tree that waits, and two rivals."""
    both = zip(PCTS, WAITING, strict=True)
    return [(one, other) for one, waiting in both for other in (f"{one}, full", waiting, "RandomSearch", "BayesOpt")]


def names_of(source: Source, samples: tuple[int, int], options: Options) -> list[str]:
    """Return the parts of the name of a result that identify the data."""
    return [f"{source.kind}{source.n_rows}", "n{}-{}".format(*samples), *(["quick"] * options.quick)]


def published(data: Path | None, task: str) -> dict[str, dict[str, float]]:
    """Return algorithm → max, median and std of table 6; empty without the file."""
    rows = wang.published_tables(data).get("hyperparameter_tuning", [])
    return {row["algorithm"]: wang.statistics(row) for row in rows if row["task"] == task}


class Evaluations:
    """A cache of f(params, n). If it has a file, a restarted run continues from the stored values.

    The file has a line for each evaluation, [params, n, accuracy]. An unfinished line is ignored. A damaged file raises
    InvalidSetting.
    """

    def __init__(self, evaluate: Accuracy, file: Path | None = None) -> None:
        self._evaluate, self._file = evaluate, file
        self._known: dict[str, float | None] = {}
        if file is not None and file.exists():
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = [line for line in lines if line.endswith("\n")]
            file.write_text("".join(whole), encoding="utf-8")
            try:
                self._known = {_key(params, n): value for params, n, value in map(json.loads, whole)}
            except (TypeError, ValueError) as error:
                raise InvalidSetting(f"{file} holds no evaluations ({error}): delete it to make them again") from None

    def __call__(self, params: Params, n: int) -> float:
        key = _key(params, n)
        if key not in self._known:
            value = self._evaluate(params, n)
            self._known[key] = None if math.isnan(value) else value
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([params, n, self._known[key]]) + "\n")
        known = self._known[key]
        return math.nan if known is None else known


def _key(params: Params, n: int) -> str:
    return json.dumps([params, n], sort_keys=True)


def run_task(
    setting: tuple[str, str],
    run: int,
    options: Options,
    experiment: Experiment,
    source: Source,
    samples: tuple[int, int],
) -> dict[str, Any]:
    """Return the accuracy of each recommendation at full fidelity, and the number and the cost of the evaluations."""
    (_, algorithm), (_, high) = setting, samples
    x, y = tuning_data.read(source.kind, source.folder)
    file = None
    if options.keep is not None:
        folder = options.keep / "evaluations"
        folder.mkdir(exist_ok=True)
        file = folder / f"{kept_name(setting, run, options, names_of(source, samples, options))}.jsonl"
    f = Evaluations(lambda params, n: experiment.accuracy(params, x[:n], y[:n], options.quick), file)
    seed = seed_of(options.seed, *setting, run)
    optimizer = make_optimizer(experiment.space, algorithm, f, samples, seed, options.faithful)
    clock = {"evaluation": experiment.evaluation, "delay": experiment.delay}
    times, waits = report.readings(options.iterations, N_READINGS), algorithm.startswith("wait-and-act")
    found = search(optimizer, f, high, times=times, waits=waits, **clock)
    curve = [math.nan if params is None else f(params, high) for params in found.recommended]
    counted = {key: getattr(found, key) for key in ("n_evaluations", "cost", "n_failed")}
    return {"curve": curve, "value": curve[-1], "params": found.recommended[-1], **counted}


def make_optimizer(
    space: Params, algorithm: str, f: Accuracy, samples: tuple[int, int], seed: int, faithful: bool = False
) -> Any:
    """Return the optimizer of a run."""
    if algorithm in ("RandomSearch", "BayesOpt"):
        return getattr(bl, algorithm)(space, seed=seed)
    low, high = samples
    bias = bias_constant(space, f, low, high)
    bound: bl.papers.DUCB1Sigma | bl.papers.DUCBV = bl.papers.DUCB1Sigma(noise_std=NOISE_STD)
    if "DUCBV" in algorithm:
        bound = bl.papers.DUCBV(b=B if faithful else B * B_FACTOR)
    cost = bl.PowerCost(low / high)  # in proportion to the samples
    fidelity = None if algorithm.endswith("full") else bl.Fidelity(low, high, cost=cost, bias=bias)
    return bl.TreeSearch(space, bound=bound, nu=bias, rho=RHO_MAX, fidelity=fidelity, seed=seed)


def bias_constant(space: Mapping[str, Any], f: Accuracy, low: int, high: int) -> float:
    """Return C = √2·|f_0.8 − f_0.2|/0.6 at the centre of the space; see the module's docstring."""
    centre = bl.TreeSearch(space, sample="centre", seed=0).suggest().params
    accurate, coarse = (f(centre, round(low + z * (high - low))) for z in (0.8, 0.2))
    apart = abs(accurate - coarse)
    return MIN_BIAS if math.isnan(apart) else max(MIN_BIAS, math.sqrt(2) * apart / 0.6)


@dataclass
class Found:
    """The result of a search: a recommendation for each reading (None before a result), and counts and cost."""

    recommended: list[Params | None]
    n_evaluations: int = 0
    cost: float = 0.0
    n_observed: int = 0
    n_failed: int = 0


def search(
    optimizer: Any, f: Accuracy, high: int, *, evaluation: float, delay: float, times: Array, waits: bool
) -> Found:
    """Run an optimizer in simulated time, up to the last of the readings.

    Parameters
    ----------
    optimizer : TreeSearch, RandomSearch or BayesOpt
    f : callable
        f(params, n); NaN if the training failed.
    high : int
        n of a full evaluation.
    evaluation : float
        A full evaluation keeps the machine busy for this number of seconds. An evaluation of n samples takes n/high of
        this time.
    delay : float
        Seconds from the end of an evaluation to its result.
    times : array, increasing
        The times at which the optimizer is asked for its recommendation.
    waits : bool
        Whether the next evaluation starts only when the last result has arrived.
    """
    found, in_flight, now = Found([]), InFlight(), 0.0

    def go_to(time: float) -> None:
        """Observe the results that have arrived."""
        for trial, value in in_flight.due(time):
            if math.isnan(value):
                optimizer.fail(trial)
                found.n_failed += 1
            else:
                optimizer.observe(trial, value)
                found.n_observed += 1

    for time in times:
        while now < time:
            go_to(now)
            trial = optimizer.suggest()
            n = trial.fidelity or high
            free = now + evaluation * n / high
            # If a result would arrive after the end, it does not change the search, so the result is not computed.
            value = f(trial.params, n) if free + delay <= times[-1] else math.nan
            in_flight.put(free + delay, found.n_evaluations, (trial, value))
            found.n_evaluations += 1
            found.cost += n / high
            now = free + delay if waits else free
        go_to(time)
        # If there are fidelities, the optimizer recommends a point; otherwise the recommendation is the best point so
        # far.
        params = None
        if found.n_observed:
            params = optimizer.best_params_ if optimizer.fidelity is None else optimizer.recommend()
        found.recommended.append(params)
    return found


def describe(algorithm: str, results: Sequence[dict[str, Any]], known: Mapping[str, Any]) -> Report:
    """Return the results of an algorithm."""
    values, curves = report.values_of(results, "value"), report.values_of(results, "curve")
    so_far = np.fmax.accumulate(curves, axis=1)
    best = int(np.nanargmax(values)) if not np.isnan(values).all() else 0
    described = {"algorithm": algorithm, **wang.figures_of(values), "best": np.median(so_far[:, -1])}
    described |= {key: np.median(report.values_of(results, key)) for key in ("n_evaluations", "n_failed", "cost")}
    described |= {"params": results[best]["params"], "published": known.get(PUBLISHED_AS.get(algorithm, ""))}
    return described | {"curve_median": np.median(curves, axis=0), "curve_best_median": np.median(so_far, axis=0)}


def table(found: Report) -> str:
    """Return table 6, with the numbers of evaluations."""
    header = ["", "max", "median (quartiles)", "std", "best so far", "evaluations", "cost"]
    is_known = any(each["published"] for each in found["settings"])
    rows = []
    for each in found["settings"]:
        row = [each["algorithm"], *(f"{each[key]:.4f}" for key in ("max", "std", "best"))]
        row.insert(2, report.quartiles(each["values"], 4))
        row += [f"{each['n_evaluations']:.0f}", f"{each['cost']:.1f}"]
        if is_known:
            row += [f"{each['published'][key]:.4f}" for key in ("median", "std")] if each["published"] else ["", ""]
        rows.append(row)
    low, high = found["samples"]
    best = max(found["settings"], key=lambda each: -math.inf if math.isnan(each["max"]) else each["max"])
    return (
        f"{found['data']}.\n\nAccuracy at full fidelity ({high:,} samples, the lowest {low:,}) after "
        f"{found['duration']} s, a full evaluation {found['evaluation']} s, delay {found['delay']} s, "
        f"{found['runs']} runs; cost in full evaluations\n"
        + report.format_table(header + (["published median", "std"] if is_known else []), rows)
        + f"\n\n{verdicts.table(found['verdicts'])}\n\nThe best: {best['algorithm']}, {best['params']}"
    )


def figure(found: Report) -> Any:
    """Return Figure 3: the best accuracy of the recommendations so far against time, as the median over runs."""
    curves = [(each["algorithm"], each["curve_best_median"], 0.0) for each in found["settings"]]
    dashes = ["-" if each["algorithm"].startswith("PCTS") else "--" for each in found["settings"]]
    axes = {"x": found["times"], "xlabel": "Time", "ylabel": "Best accuracy at full fidelity", "title": found["data"]}
    made = report.draw_panels([(curves, {**axes, "bands": False, "dashes": dashes}, ())], columns=1, below=2)
    made.set_figwidth(5.5)  # the legend is wider than a panel
    made.axes[0].set_ylim(top=min(1.0, made.axes[0].get_ylim()[1]))
    return made


#: Maximum number of iterations of the network's training. The first value is scikit-learn's default.
MAX_ITER, QUICK_MAX_ITER = 200, 10

SVM_SPACE = {"C": bl.Real(1e-5, 1e5, log=True), "gamma": bl.Real(1e-5, 1e5, log=True)}
XGB_SPACE = {
    "max_depth": bl.Integer(2, 13),
    "n_estimators": bl.Integer(10, 400),
    "colsample_bytree": bl.Real(0.2, 0.9),
    "gamma": bl.Real(0.0, 0.7),
    "learning_rate": bl.Real(0.05, 0.3),
}
GRADIENT = {"solver": ["sgd", "adam"]}
NN_SPACE = {
    "layer_1": bl.Integer(32, 128),
    "layer_2": bl.Integer(128, 256),
    "layer_3": bl.Integer(256, 512),
    "solver": ["lbfgs", "sgd", "adam"],
    "activation": ["tanh", "relu", "logistic"],
    "learning_rate_init": bl.Real(1e-5, 1e-1, log=True, when=GRADIENT),
    "early_stopping": bl.Categorical([True, False], when=GRADIENT),
}


def svm(params: Params, quick: bool) -> Any:
    """Return an SVM with a Gaussian kernel."""
    from sklearn.svm import SVC

    return SVC(**params)


def xgb(params: Params, quick: bool) -> Any:
    """Return gradient-boosted trees."""
    from xgboost import XGBClassifier

    return XGBClassifier(**params, n_jobs=1, random_state=0)


def nn(params: Params, quick: bool) -> Any:
    """Return a perceptron with three hidden layers."""
    from sklearn.neural_network import MLPClassifier

    settings = dict(params)
    sizes = tuple(settings.pop(f"layer_{i}") for i in (1, 2, 3))
    max_iter = QUICK_MAX_ITER if quick else MAX_ITER
    return MLPClassifier(**settings, hidden_layer_sizes=sizes, max_iter=max_iter, random_state=0)


#: Name → the experiment. The arguments are in the order of the fields of `Experiment`.
EXPERIMENTS = {
    "svm": Experiment("NewsGroup-SVM", "newsgroups", SVM_SPACE, svm, 5, (100, 7000), 100, 400, 9, 4),
    "xgb": Experiment("MNIST-XGB", "mnist", XGB_SPACE, xgb, 3, (500, 20_000), 100, 200, 106, 10),
    # A fold trains on two thirds of the samples, and early stopping holds out a tenth of these. The tenth must contain
    # all ten classes, so 180 samples are needed.
    "nn": Experiment("MNIST-NN", "mnist", NN_SPACE, nn, 3, (1000, 60_000), 180, 360, 129, 20),
}


def replay(name: str, what: str, duration: int, needs: list[str]) -> Replay:
    """Return the replay of an experiment."""
    text = f"Wang et al. 2022, {what}, tuned by tree search while results are late"
    functions = (partial(make, name), table, figure)
    return Replay(f"pcts-{name}", text, *functions, 5, duration, 2, needs=needs, options=["quick", "keep"])


REPLAYS = [
    replay("svm", "Figure 3 (a): an SVM on 20 newsgroups", 700, ["sklearn"]),
    replay("xgb", "Figure 3 (b): XGBoost on MNIST", 1700, ["xgboost", "sklearn"]),
    replay("nn", "Figure 3 (c): a neural network on MNIST", 1800, ["sklearn"]),
]
