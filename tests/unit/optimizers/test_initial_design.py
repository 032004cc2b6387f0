"""Each added or enqueued point covers the nearest point of the initial design, and only covered points are skipped.

The expected points are computed with NumPy from the suggestions of an optimizer without other points.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import belated as bl

BOX = {"x": (-2.0, 3.0), "y": bl.Real(1e-3, 1.0, log=True)}
MIXED = {"x": (0.0, 1.0), "n": (0, 1000), "k": ["a", "b", "c"]}
FIXED = bl.GP(lengthscale=0.5, signal_std=1.0, noise_std=0.1)
CANDIDATES = np.random.default_rng(1).random((30, 2))
N = 6


def made(space=BOX, seed=0, how="quasi_random", **arguments):
    return bl.BayesOpt(space, seed=seed, initial=bl.Initial(N, how=how), surrogate=FIXED, **arguments)


def encoded(params):
    """Return the columns of a point; the distance between two choices of a parameter k is 1/2."""
    if not isinstance(params, dict):
        return np.asarray(params)
    columns = []
    for name, value in sorted(params.items()):
        if name == "k":
            columns += [(value == choice) / np.sqrt(8) for choice in "abc"]
        elif name == "n":
            columns.append(value / 1000)
        elif "n" in params:
            columns.append(value)
        else:
            columns.append((value + 2) / 5 if name == "x" else 1 + np.log10(value) / 3)
    return np.array(columns)


def uncovered(design, rows):
    """Return the design points that are not covered: no row has them as its nearest design point."""
    if not len(rows):
        return list(design)
    points, rows = np.array([encoded(p) for p in design]), np.array([encoded(r) for r in rows])
    squares = ((rows[:, None] - points[None]) ** 2).sum(-1)
    nearest = set(squares.argmin(1).tolist())
    return [p for i, p in enumerate(design) if i not in nearest]


def plain(points):
    return [p if isinstance(p, dict) else p.tolist() for p in points]


def design_of(opt, **context):
    return plain(t.params for t in opt.suggest(n=N, **context))


def next_points(opt, n=N, **context):
    """Suggest and observe n points."""
    found = []
    for _ in range(n):
        trial = opt.suggest(**context)
        found.append(trial.params)
        trial.observe(0.5)
    return plain(found)


def random_points(n, seed=0, low=(0.0, 0.0), high=(1.0, 1.0)):
    u = np.random.default_rng(seed).uniform(low, high, (n, 2))
    return [{"x": 5 * a - 2, "y": 10 ** (3 * b - 3)} for a, b in u.tolist()]


def add(opt, rows, **more):
    opt.add(rows, np.linspace(-1.0, 1.0, len(rows)).tolist(), **more)


def check(opt, design, rows):
    """Check that the next suggestions are the uncovered points, followed by a point of the model."""
    left = uncovered(design, rows)
    found = next_points(opt)
    assert found[: len(left)] == left
    assert all(point not in design for point in found[len(left) :])
    return len(left)


ROWS = {
    "a corner": (random_points(40, high=(0.01, 0.01)), (N - 2, N - 1)),
    "a half": (random_points(40, high=(0.5, 1.0)), (1, N - 2)),
    "one row": (random_points(1), (N - 1, N - 1)),
    "1000 rows": (random_points(1000), (0, 0)),
    "spread rows": (random_points(20, seed=3), (0, 2)),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rows", ROWS)
def test_only_the_points_that_rows_cover_are_skipped(rows, seed):
    rows, (low, high) = ROWS[rows]
    opt = made(seed=seed)
    add(opt, rows)
    assert low <= check(opt, design_of(made(seed=seed)), rows) <= high


def test_rows_as_spread_as_a_design_replace_most_of_it():
    left = []
    for seed in range(10):
        opt, rows = made(seed=seed), design_of(made(seed=seed + 100))
        add(opt, rows)
        left.append(check(opt, design_of(made(seed=seed)), rows))
    assert np.mean(left) < N / 2


rows_of_mixed = st.fixed_dictionaries({"x": st.floats(0, 1), "n": st.integers(0, 1000), "k": st.sampled_from("abc")})


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(rows_of_mixed, min_size=1, max_size=12), seed=st.integers(0, 5), late=st.integers(0, N))
def test_any_rows_of_a_mixed_space_cover_their_nearest_points(rows, seed, late):
    opt, design = made(MIXED, seed=seed), design_of(made(MIXED, seed=seed))
    first = design[:late] if late else []
    assert next_points(opt, late) == first  # rows may be added after the first points
    add(opt, rows)
    left = [point for point in uncovered(design, rows) if point not in first]
    assert next_points(opt, len(left)) == left


def test_candidates_cover_the_nearest_candidates_of_the_design():
    design, rows = design_of(made(None, candidates=CANDIDATES)), CANDIDATES[:12]
    opt = made(None, candidates=CANDIDATES)
    add(opt, list(range(12)))
    left = uncovered(design, rows)
    assert 0 < len(left) < N
    assert next_points(opt, len(left)) == left


def below(p):
    return p["x"] < 1.0 or p["y"] < 0.1


def test_rows_cover_points_under_constraints():
    rows = random_points(30, high=(0.3, 0.3))
    opt = made(constraints=[below])
    add(opt, rows)
    left = uncovered(design_of(made(constraints=[below])), rows)
    assert 0 < len(left) < N
    assert next_points(opt, len(left)) == left


def test_rows_of_other_contexts_do_not_count():
    context = {"c": ["u", "v"]}
    rows = random_points(30)
    opt = made(context=context)
    add(opt, rows, context={"c": "v"})
    add(opt, rows[:1], context={"c": "u"})
    left = uncovered(design_of(made(context=context), context={"c": "u"}), rows[:1])
    assert len(left) == N - 1
    assert next_points(opt, len(left), context={"c": "u"}) == left


def test_enqueued_points_count_when_they_are_suggested():
    rows, design = random_points(4, seed=5, high=(0.3, 1.0)), design_of(made())
    opt = made()
    opt.enqueue(rows)
    assert np.allclose([encoded(p) for p in next_points(opt, 4)], [encoded(r) for r in rows])
    check(opt, design, rows)


def test_a_table_of_another_study_covers_points():
    first, other = made(seed=1), made(seed=2)
    rows = next_points(other, 12)
    first.add(other.trials_dataframe())
    check(first, design_of(made(seed=1)), rows)


def test_a_corrected_row_counts_where_it_was_run():
    design = design_of(made())
    opt = made()
    trial = opt.add(design[0], 0.5)
    trial.observe(0.5, amend=True, params=design[3])
    check(opt, design, [design[3]])


@pytest.mark.parametrize("end", ["fail", "abandon"])
def test_failed_rows_count_and_abandoned_rows_do_not(end):
    design = design_of(made())
    opt = made()
    opt.add(design[1], 0.5)
    getattr(opt, end)(opt.add(design[4]))
    rows = [design[1], design[4]] if end == "fail" else [design[1]]
    assert next_points(opt, N - len(rows)) == uncovered(design, rows)


def test_added_trials_that_failed_before_the_first_success_do_not_count():
    design, rows = design_of(made()), random_points(50, high=(0.3, 1.0))
    opt = made()
    for row in rows:
        opt.fail(opt.add(row))
    check(opt, design, [])
    # Trials that failed later cover points.
    later = made()
    later.add(design[2], 0.5)
    for row in rows:
        later.fail(later.add(row))
    check(later, design, [design[2], *rows])


def test_enqueued_trials_that_failed_before_the_first_success_do_not_count():
    design, opt = design_of(made()), made()
    opt.enqueue(random_points(3))
    for trial in opt.suggest(n=3):
        opt.fail(trial)
    check(opt, design, [])


@pytest.mark.parametrize("arguments", [{"space": None, "candidates": CANDIDATES}, {"how": "uniform"}])
def test_failed_points_are_replaced_after_the_end_of_a_list(arguments):
    found = []
    for acquisition in ("log_ei", "max_variance"):
        opt = made(**arguments, acquisition=acquisition)
        opt.enqueue(CANDIDATES[:1] if "candidates" in arguments else random_points(1))
        for _ in range(9):
            opt.fail(opt.suggest())
        found.append([])
        for number in range(N + 1):
            trial = opt.suggest()
            found[-1].append(trial.params)
            trial.observe(10.0 * (number == 2))
    found = [plain(points) for points in found]
    # The two acquisitions suggest the same design, and different points once the model chooses.
    assert found[0][:N] == found[1][:N] and found[0][N] != found[1][N]


def test_pending_rows_count_before_the_first_value():
    rows, design = random_points(3, seed=7), design_of(made())
    opt = made()
    opt.add(rows, [None] * 3)
    left = uncovered(design, rows)
    points, designed = plain(t.params for t in opt.suggest(n=30)), {tuple(p.values()) for p in design}
    assert points[: len(left)] == left
    later = [tuple(p.values()) for p in points[len(left) :]]
    assert len(set(later)) == len(later) and designed.isdisjoint(later)


@pytest.mark.parametrize("arguments", [{"how": "uncertainty"}, {"how": "uniform", "constraints": [below]}])
def test_a_drawn_point_is_left_out_for_each_covered_point(arguments):
    """Rows in a corner cover one design point, so N - 1 design points precede the first point of the model."""
    corner = random_points(40, high=(0.01, 0.01))
    opt = made(**arguments)
    add(opt, corner)
    points = next_points(opt, N)
    inside = [max(encoded(p)) < 0.05 for p in points[: N - 1]]
    assert not any(inside)
    alone = made(**arguments, acquisition=bl.UCB(1.0))
    add(alone, corner)
    other = next_points(alone, N)
    # The two acquisitions suggest the same design, and different points once the model chooses.
    assert points[: N - 1] == other[: N - 1] and points[N - 1] != other[N - 1]


def test_equal_points_of_a_design_are_covered_together():
    few = {"a": (1, 3), "b": ["p", "q"]}
    opt = bl.BayesOpt(few, seed=0, initial=5, surrogate=FIXED)
    rows = [{"a": a, "b": b} for a in (1, 2, 3) for b in "pq"][:5]
    add(opt, rows)
    assert next_points(opt, 1) == [{"a": 3, "b": "q"}]
    again = bl.BayesOpt(few, seed=0, initial=5, surrogate=FIXED)
    add(again, rows * 2)
    assert next_points(again, 1) == [{"a": 3, "b": "q"}]
