"""Comparisons on laboratory tables: results arrive two weeks later, and the recorded regrets follow from the table."""

import importlib
import os
from pathlib import Path

import numpy as np
import pytest

_FOLDER = Path(__file__).parents[3] / "benchmarks"
DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
needs_tables = pytest.mark.skipif(
    DATA is None or not (DATA / "lab").is_dir(), reason="BELATED_DATA does not name a folder with lab/"
)


@pytest.fixture
def laboratory(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("laboratory_tables")


@pytest.fixture
def peers(laboratory):
    return importlib.import_module("laboratory_peers").PEERS


def table(laboratory, n=320):
    rows = [(float(i), "ab"[i % 2]) for i in range(n)]
    return laboratory.LaboratoryTable(["x", "c"], rows, [np.array([i - 1.0, i + 1.0]) for i in range(n)], {})


class InOrder:
    """Chooses the rows in order, and records how many results it has at each choice."""

    def __init__(self, table, seed):
        self.n, self.told, self.known = 0, [], []

    def ask(self, n):
        self.known.append(len(self.told))
        self.n += n
        return list(range(self.n - n, self.n))

    def tell(self, rows, values):
        assert rows == list(range(len(self.told), len(self.told) + len(rows)))
        self.told += values


def test_results_arrive_two_weeks_later(laboratory):
    found = table(laboratory)
    peers = []
    run = laboratory.LaboratorySetting(lambda: found).run(lambda *a: peers.append(InOrder(*a)) or peers[0], 3)
    assert peers[0].known == [0, 0, 5, 10, 15, 20, 25, 30, 35, 40]
    assert len(peers[0].told) == 50 and set(np.array(peers[0].told) - np.arange(50)) == {-1.0, 1.0}
    # f of row i is i: the best of 5w rows is 5w − 1, the optimum is 319, and the median is 159.5.
    np.testing.assert_allclose(run.regret, [(319 - (5 * w - 1)) / 159.5 for w in range(1, 11)])


def test_small_tables_have_five_weeks(laboratory):
    setting = laboratory.LaboratorySetting(lambda: table(laboratory, 299))
    assert len(setting.run(InOrder, 0).regret) == setting.n_evaluations == 3


@pytest.mark.parametrize("name", ["belated", "random"])
def test_optimizers_choose_rows(laboratory, peers, name):
    found = table(laboratory)
    assert found.space is None and found.categories == [1]
    chosen = []
    peer = peers[name](found, 0, "")
    for _ in range(4):
        chosen.append(peer.ask(5))
        peer.tell(chosen[-1], [found.means[row] for row in chosen[-1]])
    assert len(set(sum(chosen, []))) == 20


@needs_tables
def test_full_tables_are_spaces(laboratory, peers):
    full = [name for name in laboratory.SETTINGS if laboratory.load(name).space]
    assert {laboratory.OPEN.get(name, laboratory.ASIDE.get(name))[0] for name in full} == {
        "buchwald_a", "lnp3", "perovskites", "redoxmers", "suzuki_edbo"
    }  # fmt: skip
    found = laboratory.load("lnp3_encapsulation")
    params = [dict(zip(found.names, found.rows[row], strict=True)) for row in (0, 17, 767)]
    assert [found.find(each) for each in params] == [0, 17, 767]


@needs_tables
def test_compare_records_runs_on_laboratory_tables(laboratory, tmp_path, capsys):
    compare = importlib.import_module("compare")
    out = tmp_path / "runs.jsonl"
    settings = ["--settings", "perovskites", "photo_pce10"]
    assert not compare.main(
        ["run", "--optimizers", "belated", "random", "--seeds", "0:2", "--out", str(out), *settings]
    )
    compare.main(["table", str(out), "--against", "random", *settings])
    assert "| perovskites | 2 |" in capsys.readouterr().out
