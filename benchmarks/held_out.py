"""The page of comparisons: problems and tables that were not used to choose a default.

    python benchmarks/compare.py run --settings unseen ours-unseen held-out aside ours-held-out --out results.jsonl \\
        --optimizers belated botorch optuna-gp optuna-tpe random
    python benchmarks/held_out.py collect results.jsonl      # writes data/unseen.jsonl.gz and data/held_out.jsonl.gz
    python benchmarks/held_out.py tables                     # writes data/measurements/compared.json
    python benchmarks/page_tables.py                         # writes the page

A cell has the mean score, its standard error and the number of seeds. Two optimizers are compared on the seeds that
both have. A cell is bold if no other optimizer is better by more than two standard errors of the paired difference. In
the summary, belated wins if its paired difference is below minus two standard errors, and loses if it is above two
standard errors.
"""

import argparse
import gzip
import json
import math
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import page_tables

DATA = Path(__file__).parent / "data"
PAGE = DATA / "measurements" / "compared.json"
COMMAND = "python benchmarks/held_out.py tables"
OPTIMIZERS = {
    "belated": "belated",
    "botorch": "BoTorch",
    "optuna-gp": "GPSampler",
    "optuna-tpe": "TPE",
    "random": "random",
}
#: The problems of each table, with their names on the page. The runs of a table are in the file of its name.
SETTINGS = {
    "unseen": {
        "michalewicz5-uniform": "Michalewicz, d = 5",
        "rosenbrock4-halfnormal": "Rosenbrock, d = 4",
        "griewank3-poisson10": "Griewank, d = 3, Poisson(10)",
        "goldstein-uniform": "Goldstein–Price",
        "otl-exponential": "OTL circuit",
        "wing-pareto": "wing weight, outliers",
        "steps4-exponential": "staircase",
        "recipe-uniform": "recipe, mixed space",
        "sgd-breast_cancer": "linear model, breast cancer",
        "gp-diabetes": "Gaussian process, diabetes",
    },
    "held_out": {
        "hartmann6-growing": "Hartmann6, growing noise",
        "park2-poisson30": "Park2, Poisson(30)",
        "camel-halfnormal": "six-hump camel, 4 workers",
        "shekel-exponential": "Shekel, 6 workers",
        "cosines8-uniform": "cosine mixture, d = 8",
        "mixed-uniform": "mixed space",
        "hartmann3of12-exponential": "Hartmann3, d = 12",
        "branin-noiseless": "Branin, no noise",
        "mlp-wine": "network, wine",
        "pipeline-breast_cancer": "pipeline, breast cancer",
    },
}
MIN_SEEDS = 2  # an optimizer with fewer seeds in a setting has no cell

Scores = dict[str, dict[str, dict[int, float]]]  # setting → optimizer → seed → score


def collect(files: list[str]) -> None:
    """Write the runs of some files into the data of this page, without the regrets. A table without runs is kept."""
    found = [json.loads(line) for file in files for line in Path(file).read_text(encoding="utf-8").splitlines()]
    for name, settings in SETTINGS.items():
        runs = {(run["setting"], run["optimizer"], run["seed"]): run for run in found if run["setting"] in settings}
        if not runs:
            continue
        with gzip.GzipFile(runs_of(name), "wb", mtime=0) as out:
            for key in sorted(runs):
                out.write((json.dumps({k: v for k, v in runs[key].items() if k != "regret"}) + "\n").encode())


def runs_of(name: str) -> Path:
    """Return the file of the runs of a table."""
    return DATA / f"{name}.jsonl.gz"


def read(name: str) -> list[dict]:
    """Return the runs of a table."""
    with gzip.open(runs_of(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def scores(name: str) -> Scores:
    """Return the scores of the optimizers that have enough seeds in a setting of a table."""
    found: Scores = {setting: defaultdict(dict) for setting in SETTINGS[name]}
    for run in read(name):
        found[run["setting"]][run["optimizer"]][run["seed"]] = run["score"]
    return {
        setting: {name: by_seed for name, by_seed in by.items() if len(by_seed) >= MIN_SEEDS}
        for setting, by in found.items()
    }


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Return the mean and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def difference(one: dict[int, float], other: dict[int, float]) -> tuple[float, float]:
    """Return the mean difference on the common seeds, and its standard error."""
    return mean_and_error([one[seed] - other[seed] for seed in one if seed in other])


def signed(mean: float, error: float, plus: bool = False) -> str:
    """Return a mean with its error, as the pages show it."""
    return f"{mean:{'+' if plus else ''}.2f} ± {error:.2f}".replace("-", "−")


def best(by: dict[str, dict[int, float]]) -> set[str]:
    """Return the optimizers that no other optimizer surpasses by more than two paired errors."""

    def is_surpassed(name: str) -> bool:
        differences = [difference(by[name], by[other]) for other in by if other != name]
        return any(mean > 2 * error for mean, error in differences)

    return {name for name in by if not is_surpassed(name)}


def score_table(name: str) -> list[list[str]]:
    """Return the rows of a table of scores."""
    rows = []
    for setting, by in scores(name).items():
        bold, cells = best(by), [SETTINGS[name][setting]]
        for optimizer in OPTIMIZERS:
            if optimizer not in by:
                cells.append("–")
                continue
            text = signed(*mean_and_error(list(by[optimizer].values())))
            cells.append(f"{f'**{text}**' if optimizer in bold else text} ({len(by[optimizer])})")
        rows.append(cells)
    return rows


def summary_table(name: str) -> list[list[str]]:
    """Return the rows of the summary of a table: belated against each of the other optimizers."""
    rows, found = [], scores(name)
    for rival, label in list(OPTIMIZERS.items())[1:]:
        pairs = [difference(by["belated"], by[rival]) for by in found.values() if {"belated", rival} <= set(by)]
        if not pairs:
            continue
        means, errors = np.transpose(pairs)
        mean, error = means.mean(), math.sqrt((errors**2).sum()) / len(errors)
        wins, losses = int((means < -2 * errors).sum()), int((means > 2 * errors).sum())
        counts = f"{wins} / {len(pairs) - wins - losses} / {losses}"
        rows.append([label, signed(mean, error, plus=True), str(len(pairs)), counts])
    return rows


def version_table(runs: list[dict]) -> list[list[str]]:
    """Return the rows of the table of versions and times."""
    rows = []
    for name, label in list(OPTIMIZERS.items())[:-1]:
        mine = [run for run in runs if run["optimizer"] == name]
        if not mine:
            continue
        packages = {package: version for run in mine for package, version in run["versions"].items()}
        if name != "belated":
            packages.pop("belated")
        versions = ", ".join(f"{package} {version}" for package, version in packages.items())
        rows.append([label, versions, f"{np.mean([run['seconds'] for run in mine]):.3f}"])
    return rows


def tables() -> None:
    """Write the tables of the page, with the commit of the defaults."""
    page = json.loads(PAGE.read_text(encoding="utf-8"))
    summary = ["belated minus", "mean difference", "problems", "wins / ties / losses"]
    for name in SETTINGS:
        git = ["git", "-C", str(DATA), "log", "-1", "--format=%h", "--abbrev=8", "--", str(runs_of(name)), "../../src"]
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        made = {
            name: (["problem", *OPTIMIZERS.values()], score_table(name)),
            f"{name}-summary": (summary, summary_table(name)),
            f"{name}-versions": (
                ["optimizer", "versions", "seconds for a suggestion, mean"],
                version_table(read(name)),
            ),
        }
        for table, (header, rows) in made.items():
            page["tables"][table] = {"command": COMMAND, "commit": commit, "header": header, "rows": rows}
    page_tables.write(PAGE, page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("collect").add_argument("files", nargs="+")
    commands.add_parser("tables")
    arguments = parser.parse_args()
    sys.exit(collect(arguments.files) if arguments.what == "collect" else tables())
