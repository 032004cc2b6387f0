"""Problems given by tables of real laboratory experiments.

A run has the following rules. A run has 12 weeks (5 weeks on tables with fewer than 300 rows). At the start of each
week, five experiments are chosen together. Their results arrive two weeks later, before the choice of that week.
Results that would arrive after the last week do not count, so no experiments are chosen in the last two weeks. The
objective of an experiment is the value in the table; if the table has several measurements of a point, the k-th
experiment gives measurement number floor(u_k·r) of r, with the same u_k for every optimizer with the same seed, and f
is the mean of the r measurements. The regret in a week is (best − max f)/(best − median). The maximum is taken over the
experiments whose results have arrived; best and median are taken over the points of the table. The regret is recorded
each week from the third week on. Regrets below 1e-3 count as 1e-3. The score is the mean of log10 of the recorded
regrets.

The tables are from the Olympus project. The environment variable BELATED_DATA names a folder that contains the tables
in lab/. Tables in which every combination of levels was measured are spaces of categories and ordered parameters. The
other tables are lists of candidates.
"""

import csv
import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from belated import Categorical, Ordinal

FLOOR = 1e-3  # all regrets below this value are treated as equal
BATCH, WEEKS, FEW_WEEKS, LATENESS = 5, 12, 5, 2
FEW_ROWS = 300

#: For each name: the file, the columns of parameters, the column of the outcome, and its sign (−1: minimised).
OPEN = {
    "agnp": ("agnp", 5, "spectrum_score", 1),
    "buchwald_a": ("buchwald_a", 4, "yield", 1),
    "crossed_barrel": ("crossed_barrel", 4, "toughness", 1),
    "lnp3_encapsulation": ("lnp3", 5, "encap_efficiency", 1),
    "oer_plate_3496": ("oer_plate_3496", 6, "overpotential", -1),
    "perovskites": ("perovskites", 3, "hse_gap", -1),
    "photo_pce10": ("photo_pce10", 4, "degradation", -1),
    "redoxmers_absorption": ("redoxmers", 4, "abs_lam_diff", -1),
    "suzuki_edbo": ("suzuki_edbo", 5, "yield", 1),
}
#: No default was chosen with these tables.
ASIDE = {
    "hplc": ("hplc", 6, "peak_area", 1),
    "lnp3_diameter": ("lnp3", 5, "particle_diameter", -1),
    "lnp3_loading": ("lnp3", 5, "drug_loading", 1),
    "redoxmers_reduction": ("redoxmers", 4, "ered", -1),
    "redoxmers_solvation": ("redoxmers", 4, "gsol", -1),
}


class LaboratoryTable:
    """A table of experiments.

    Parameters
    ----------
    names : list of str
        The parameters.
    rows : list of tuples
        The distinct points, as strings or numbers.
    measurements : list of arrays
        The measurements of each point. Larger values are better.
    descriptors : dict
        The descriptors of the choices: parameter → choice → descriptor → number.

    Attributes
    ----------
    means : array (n,)
        f of each point.
    space : dict or None
        The parameters, if every combination of their levels is a point.
    encoded : array (n, d)
        The points as numbers. A text is encoded as the index of the choice.
    categories : list of int
        The columns of text.
    """

    def __init__(self, names, rows, measurements, descriptors):
        self.names, self.rows, self.measurements, self.descriptors = names, rows, measurements, descriptors
        self.means = np.array([each.mean() for each in measurements])
        self.optimum, self.median = float(self.means.max()), float(np.median(self.means))
        self.n_weeks = FEW_WEEKS if len(rows) < FEW_ROWS else WEEKS
        self._index = {row: i for i, row in enumerate(rows)}
        columns = list(zip(*rows, strict=True))
        self.categories = [j for j, column in enumerate(columns) if isinstance(column[0], str)]
        self.levels = [list(dict.fromkeys(column)) if j in self.categories else sorted(set(column))
                       for j, column in enumerate(columns)]  # fmt: skip
        self.encoded = np.array(
            [[levels.index(value) if isinstance(value, str) else value
              for value, levels in zip(row, self.levels, strict=True)] for row in rows], dtype=float
        )  # fmt: skip
        full = np.prod([len(levels) for levels in self.levels]) == len(rows)
        self.space = {
            name: Categorical(levels) if j in self.categories else Ordinal(levels)
            for j, (name, levels) in enumerate(zip(names, self.levels, strict=True))
        } if full else None  # fmt: skip

    def find(self, params):
        """Return the index of a point of a space."""
        return self._index[tuple(params[name] for name in self.names)]

    def measure(self, row, u):
        """Return the measurement of a point that the number u in [0, 1) selects."""
        measurements = self.measurements[row]
        return float(measurements[int(u * len(measurements))])


def folder():
    """Return the folder of the tables.

    Raises
    ------
    FileNotFoundError
        The environment variable BELATED_DATA is missing.
    """
    found = os.environ.get("BELATED_DATA")
    if found is None:
        raise FileNotFoundError("BELATED_DATA is not set: set it to the data folder, which contains the tables in lab/")
    return Path(found) / "lab"


@functools.cache
def load(name):
    """Return one of the tables."""
    file, width, outcome, sign = {**OPEN, **ASIDE}[name]
    found = {}
    with open(folder() / f"{file}.csv", newline="") as source:
        reader = csv.DictReader(source)
        names = list(reader.fieldnames)[:width]
        for record in reader:
            row = tuple(_number(record[name]) for name in names)
            found.setdefault(row, []).append(sign * float(record[outcome]))
    return LaboratoryTable(names, list(found), [np.array(each) for each in found.values()], _descriptors(file, names))


def sign(name):
    """Return the sign of a table's outcome: −1 if the outcome in the file is minimised."""
    return {**OPEN, **ASIDE}[name][3]


def _descriptors(file, names):
    """Return the numeric descriptors of the table's choices. In suzuki_edbo, descriptors whose name does not begin with
    the name of their parameter belong to another parameter."""
    path = folder() / f"{file}.descriptors.csv"
    found = {}
    if path.exists():
        with open(path, newline="") as source:
            for parameter, choice, descriptor, text in csv.reader(source):
                value = _number(text)
                named = file != "suzuki_edbo" or descriptor.startswith(parameter)
                if parameter in names and named and not isinstance(value, str):
                    found.setdefault(parameter, {}).setdefault(choice, {})[descriptor] = value
    return found


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class LaboratorySetting:
    """A setting of `compare`: weeks of five experiments, by the rules above."""

    load: Callable[[], LaboratoryTable]
    smallest: float = FLOOR

    @property
    def n_evaluations(self):
        """Return the number of times at which regret is recorded."""
        return self.load().n_weeks - LATENESS

    workers = None
    horizon = None

    def run(self, make, seed):
        """Run an optimizer of `laboratory_peers`.

        Returns
        -------
        SimpleNamespace
            ``regret`` (n_evaluations,), and ``seconds``, the real time of the calls per experiment.
        """
        table = self.load()
        n = BATCH * self.n_evaluations
        u = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[1]).random(n)
        peer = make(table, seed)
        begin, weeks = time.perf_counter(), [peer.ask(BATCH) for _ in range(LATENESS)]
        best, regret = -np.inf, []
        for week in range(self.n_evaluations):
            rows = weeks[week]
            values = [table.measure(row, u[k]) for k, row in enumerate(rows, start=BATCH * week)]
            best = max(best, *table.means[rows])
            regret.append((table.optimum - best) / (table.optimum - table.median))
            peer.tell(rows, values)
            if week + LATENESS < self.n_evaluations:
                weeks.append(peer.ask(BATCH))
        return SimpleNamespace(regret=np.array(regret), seconds=np.array([(time.perf_counter() - begin) / n]))


SETTINGS = {name: LaboratorySetting(functools.partial(load, name)) for name in {**OPEN, **ASIDE}}
GROUPS = {"laboratory": list(OPEN), "laboratory-aside": list(ASIDE)}
