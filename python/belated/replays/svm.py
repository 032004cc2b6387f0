"""Verma et al. 2022, Figure 2 (a)-(d): a support vector machine on Pima diabetes, six algorithms, late results.

The data have a stratified 70/30 split with ``random_state=0``, and features are unscaled. The SVM has an RBF kernel.
The scales of C in [1e-4, 100] and gamma in [1e-4, 10] are linear, as in the authors' code; the paper does not state the
scales. If the data folder has the authors' 120 published runs, run r uses the initial points and delays of the authors'
run r. The table then also shows the published errors.
"""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import belated as bl
from belated.replays import verma
from belated.replays.report import Array, Report, mean_stderr, plus_minus, read_json
from belated.replays.runner import MissingData, Options, Replay, run_all
from belated.replays.verdicts import verdicts

BOUNDS = {"C": (1e-4, 100.0), "gamma": (1e-4, 10.0)}
DATA_FILE = "pima_diabetes.csv"
PUBLISHED_FILE = "verma2022_svm_runs.json.gz"

GOOD_ERROR = 24.3  # in %: nearly all points with a lower error are at gamma's lower bound

Published = dict[tuple[str, str, int], dict[str, Any]]


def make(options: Options) -> Report:
    """All runs of the six algorithms under both delay settings."""
    pima_diabetes(options.data)  # raises an error before any process starts if the data are missing
    published = published_runs(options.data)
    settings = verma.summarise(run_all(run_task, verma.SETTINGS, options, "svm"))
    for setting in settings:
        setting["fraction_at_or_below_24.3"] = float(np.mean(setting["error_per_run"][:, -1] <= GOOD_ERROR))
        if published:
            compare(setting, published)
    compared = {"published": against_published(settings)} if published else {}
    return {"settings": settings, "rivals": verma.of_tasks(settings)} | compared


def table(report: Report) -> str:
    """Return a table of our errors; if published errors are known, also show them."""
    text = verma.tables(
        report["settings"],
        f"≤ {GOOD_ERROR} %",
        lambda setting: f"{100 * setting['fraction_at_or_below_24.3']:.0f} %",
        _published_row,
    )
    for compared in ("rivals", "published"):
        if compared in report:
            text += "\n\n" + verma.in_words(report[compared])
    return text


def space() -> dict[str, Any]:
    """The two hyperparameters."""
    return {name: bl.Real(*bounds) for name, bounds in BOUNDS.items()}


def initial_points(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Uniform points."""
    return [to_params(row) for row in rng.random((verma.N_INITIAL, len(BOUNDS)))]


def to_params(unit: Any) -> dict[str, Any]:
    """Return a point of the unit square as parameters."""
    return {name: float(low + u * (high - low)) for u, (name, (low, high)) in zip(unit, BOUNDS.items(), strict=True)}


def start(setting: tuple[str, str], run: int, options: Options) -> verma.Start:
    """Return the initial points and the delays of a run: the published ones if they are known."""
    known = published_runs(options.data).get((*setting, run))
    published = None if known is None else ([to_params(row) for row in known["init"]], known["delay"])
    return verma.start(setting, run, options, initial_points, published)


def run_task(setting: tuple[str, str], run: int, options: Options) -> dict[str, Any]:
    """One run of one algorithm."""
    started = start(setting, run, options)
    return verma.run_task(setting, run, options, started, space(), lambda params: accuracy(options.data, **params))


@cache
def accuracy(data: Path | None, C: float, gamma: float) -> float:
    """Train with these hyperparameters and return the validation accuracy. Results are cached."""
    from sklearn.svm import SVC

    x, y, x_validation, y_validation = pima_diabetes(data)
    return float(SVC(C=C, gamma=gamma, kernel="rbf").fit(x, y).score(x_validation, y_validation))


@lru_cache(maxsize=1)
def pima_diabetes(data: Path | None) -> tuple[Array, Array, Array, Array]:
    """Return training features and labels, validation features and labels."""
    from sklearn.model_selection import train_test_split

    x, y = _openml() if data is None else _csv(data / DATA_FILE)
    x, x_validation, y, y_validation = train_test_split(x, y, test_size=0.3, stratify=y, random_state=0)
    return x, y, x_validation, y_validation


@lru_cache(maxsize=1)
def published_runs(data: Path | None) -> Published:
    """Return (algorithm, delays, run) → run of the authors; empty if the data folder does not have the file."""
    runs = read_json(data, PUBLISHED_FILE) or []
    return {(run["algorithm"], run["delays"], run["run"]): run for run in runs}


def published_errors(published: Published, algorithm: str, delays: str) -> Array:
    """Return the best converted error in % after 0, 1, 2, … iterations, one row per run; NaN before any result."""
    runs = [run for key, run in sorted(published.items()) if key[:2] == (algorithm, delays)]
    return 100.0 * (1.0 - np.array([run["best_converted"] for run in runs], dtype=float))


def compare(setting: Report, published: Published) -> None:
    """Add the published errors to a setting."""
    errors = published_errors(published, setting["algorithm"], setting["delays"])
    mean, stderr = mean_stderr(errors)
    known = setting["iteration"]
    setting["published_mean"], setting["published_stderr"] = mean[known], stderr[known]
    setting["published_curve_mean"] = mean
    setting["published_fraction_at_or_below_24.3"] = float(np.mean(errors[:, known[-1]] <= GOOD_ERROR))
    setting["published_per_run"] = errors[:, known]


def against_published(settings: list[Report]) -> list[Report]:
    """Return the verdicts on our errors, against the errors of the published runs with the same points and delays."""
    pairs = {}
    for each in settings:
        ours, theirs = each["error_per_run"], each["published_per_run"]
        n = min(len(ours), len(theirs))
        for k, i in enumerate(each["iteration"]):
            if i in verma.COMPARED:
                pairs[verma.DELAYS[each["delays"]].title, i, each["algorithm"]] = ours[:n, k], theirs[:n, k]
    keys = "delays", "iteration", "algorithm"
    rival = {"rival": "the published runs"}
    return [dict(zip(keys, key, strict=True)) | rival | {"verdict": each} for key, each in verdicts(pairs).items()]


def _published_row(setting: Report) -> list[str]:
    if "published_mean" not in setting:
        return []
    means = plus_minus(setting["published_mean"], setting["published_stderr"])
    return ["  published", *means, f"{100 * setting['published_fraction_at_or_below_24.3']:.0f} %"]


def _csv(path: Path) -> tuple[Array, Array]:
    """Return features and label from a file with a header line, eight feature columns and the outcome, 0 or 1."""
    if not path.exists():
        raise MissingData(_how_to_get_data(f"there is no {path}"))
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    if table.ndim != 2 or table.shape[1] != 9 or not np.isfinite(table).all():
        raise MissingData(_how_to_get_data(f"{path} is not the table of numbers that is expected"))
    return table[:, :8], table[:, 8]


def _openml() -> tuple[Array, Array]:
    """Return the same features and labels from OpenML, data set 37."""
    from sklearn.datasets import fetch_openml

    try:
        found = fetch_openml(name="diabetes", version=1, as_frame=False, parser="liac-arff")
    except Exception as error:  # without a network, behind a proxy, …: each layer raises different exceptions
        raise MissingData(_how_to_get_data(f"OpenML did not answer ({error})")) from error
    return found.data.astype(float), (found.target == "tested_positive").astype(float)


def _how_to_get_data(problem: str) -> str:
    return (
        f"the svm replay needs the Pima diabetes data, but {problem}. Put them into a folder as {DATA_FILE}, a header "
        "line, then 768 lines of the eight features and the outcome (0 or 1), separated by commas, and give the "
        "folder: belated replay svm --data FOLDER"
    )


REPLAYS = [
    Replay("svm", __doc__, make, table, verma.figure, runs=10, iterations=verma.ITERATIONS, needs=["sklearn", "scipy"])
]
