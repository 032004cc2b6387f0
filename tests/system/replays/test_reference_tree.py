"""The replay of the authors' program for PCTS: its tree agrees with a recomputation, and one of its runs agrees with a
run that the authors recorded."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belated.replays import wang
from belated.replays.reference_tree import (
    UCBV,
    Evaluations,
    Instance,
    Node,
    Tree,
    UCB1Sigma,
    best_so_far,
    centre,
    halves,
    n_instances,
    run_instance,
    run_poo,
)
from belated.replays.wang import PROBLEMS

CUBE = ((0.0, 1.0), (0.0, 1.0))


def subtree(node):
    return [node, *itertools.chain.from_iterable(subtree(child) for child in node.children)]


def expected_b(tree, node):
    """Compute a bound from its definition, min{mean + width + 2·nu·rho^h, max over children}."""
    values = [each.value for each in subtree(node)]
    s, log_t = len(values), math.log(tree.t)
    if isinstance(tree.width, UCBV):
        width = math.sqrt(2 * np.var(values) * log_t / s) + 3 * tree.width.factor * tree.width.b * log_t / s
    else:
        width = math.sqrt(2 * tree.width.variance * log_t / s)
    own = np.mean(values) + width + 2 * tree.nu * tree.rho**node.height
    return min([own, *([max(expected_b(tree, child) for child in node.children)] if node.children else [])])


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 40),
    width=st.sampled_from([UCB1Sigma(0.1), UCBV(1.0), UCBV(5.0, 0.02)]),
)
def test_b_values_follow_the_definition(seed, n, width):
    rng = np.random.default_rng(seed)
    tree = Tree(Node(CUBE, 0, 0, rng.normal()), nu=0.5, rho=0.8, width=width)
    for _ in range(n):
        leaf = rng.choice([node for node in subtree(tree.root) if not node.children])
        dimension, cells = halves(leaf)
        for cell in cells:
            tree.add(leaf, Node(cell, leaf.height + 1, dimension, rng.normal()))
        tree.t += 2
    tree.refresh()
    for node in subtree(tree.root):
        assert node.b == pytest.approx(expected_b(tree, node), abs=1e-9)
        assert all(child.height == node.height + 1 and child.parent is node for child in node.children)
    assert tree.n_nodes == 1 + 2 * n == tree.root.n
    assert tree.height == max(node.height for node in subtree(tree.root))


@given(st.lists(st.booleans(), max_size=25), st.integers(1, 4))
def test_cells_are_halved_along_a_longest_side(path, d):
    node = Node(((0.0, 1.0),) * d, 0, 0, 0.0)
    for second in path:
        dimension, cells = halves(node)
        sides = [high - low for low, high in node.cell]
        longest = int(np.argmax(sides))
        assert dimension == (longest if longest != node.dimension else (longest - 1) % d)
        for cell in cells:
            assert all(low <= x < y <= high for (low, high), (x, y) in zip(node.cell, cell, strict=True))
        volumes = [math.prod(high - low for low, high in cell) for cell in cells]
        assert sum(volumes) == pytest.approx(math.prod(sides)) and volumes[0] == volumes[1]
        node = Node(cells[second], node.height + 1, dimension, 0.0)


def test_equal_bounds_are_chosen_evenly_and_all_of_them_are_reached():
    rng = np.random.default_rng(0)
    tree = Tree(Node(CUBE, 0, 0, 0.0), 1.0, 0.5, UCB1Sigma(0.0))
    dimension, cells = halves(tree.root)
    for cell in cells:
        tree.add(tree.root, Node(cell, 1, dimension, 0.0))
    tree.refresh()
    firsts = [next(tree.leaves_to_select(rng)) for _ in range(400)]
    assert 150 < sum(node is tree.root.children[0] for node in firsts) < 250
    assert set(tree.leaves_to_select(rng)) == set(tree.root.children)


def evaluations(f=lambda x, z: float(-np.sum((x - 0.3) ** 2)), d=2, delay=4.0, **settings):
    made = Evaluations(f, d, itertools.repeat(delay), **settings)
    made.c = 1.0
    return made


def test_waiting_expands_a_leaf_every_two_delays():
    found = run_instance(evaluations(), 0.1, 0.9, UCB1Sigma(0.01), 599.0, np.random.default_rng(0), "wait")
    # Table 5: 75 expansions and 151 nodes in 600 s.
    assert len(found.times) == 76 and found.n_nodes == 151
    assert found.times == [8.0 * k for k in range(76)]


def test_delay_expands_more_leaves_than_waiting_and_selection_waits_at_a_pending_leaf():
    made = evaluations()
    found = run_instance(made, 0.1, 0.9, UCB1Sigma(0.01), 400.0, np.random.default_rng(0))
    assert set(found.times) <= {4.0 * k for k in range(101)}
    per_moment = [found.times[1:].count(time) for time in sorted(set(found.times))]
    # The tree first evaluates the root, then one child of the root, then the second child.
    assert per_moment[0] == 1 and 1 <= np.mean(per_moment) < 4
    assert len(found.times) - 1 > 1.2 * 50


def test_known_cells_cost_no_time():
    made = evaluations()
    first = run_instance(made, 0.1, 0.9, UCB1Sigma(0.01), 100.0, np.random.default_rng(0))
    n = made.n
    again = run_instance(made, 0.1, 0.9, UCB1Sigma(0.01), 0.0, np.random.default_rng(0))
    assert made.n - n <= 4 < again.n_nodes and again.times[-1] == 0.0
    assert first.n_nodes <= n


def test_a_bias_contradicted_by_values_is_increased():
    """C is estimated at the centre, but the function changes faster in z elsewhere."""
    made = evaluations(lambda x, z: float(z * (0.1 + 5 * abs(x[0] - 0.5))), fidelity=True)
    found = run_poo(made, UCB1Sigma(0.01), 600.0, 4.0, np.random.default_rng(0), at_most=3)
    assert found[0].nu == pytest.approx(math.sqrt(2) * 0.1)
    assert found[-1].nu == pytest.approx(1.4 * found[0].nu) or found[-1].nu == pytest.approx(1.96 * found[0].nu)
    still = evaluations(lambda x, z: float(z * 0.1), fidelity=True)
    assert len({each.nu for each in run_poo(still, UCB1Sigma(0.01), 300.0, 4.0, np.random.default_rng(0))}) == 1


def test_the_smoothness_of_instances_equals_the_tables():
    rho = [each.rho for each in run_poo(evaluations(), UCB1Sigma(0.01), 60.0, 4.0, np.random.default_rng(0), at_most=3)]
    assert rho == pytest.approx([0.95, 0.9259454628, 0.857375])
    assert n_instances(148.0, 0.95, 3) == 3
    # The number of instances is 0.5·13·log(n/log(n + 1)), but at most n/2 + 1.
    assert n_instances(148.0, 0.95, None) == int(6.5 * math.log(148 / math.log(149)))
    assert n_instances(2.0, 0.95, None) == 2


@pytest.mark.parametrize(
    ("name", "nu"),
    [
        ("Hartmann3", 0.006103201358),
        ("Hartmann6", 0.00842254613),
        ("CurrinExp", 0.6094708386),
        ("Borehole", 20.46960058),
        ("Branin", 0.8313313704),
    ],
)
def test_the_bias_constant_of_the_program_equals_the_tables(name, nu):
    problem = PROBLEMS[name]
    made = Evaluations(wang.program_value(problem), problem.d, itertools.repeat(4.0))
    assert made.estimate_bias() == 8.0
    assert made.c == pytest.approx(nu, rel=1e-9)


def test_hartmann3_ends_at_the_point_of_the_recorded_run():
    """The authors' run with DUCBV: 3.86254291643 at (0.12890625, 0.5546875, 0.8515625), 577 nodes, height 24."""
    problem = PROBLEMS["Hartmann3"]
    (found,) = wang.run_program(problem, "constant", "PCTS+DUCBV", np.random.default_rng(0))
    assert found.points[-1].tolist() == [0.12890625, 0.5546875, 0.8515625]
    assert problem.value(found.points[-1]) == pytest.approx(3.86254291643, abs=1e-10)
    assert found.n_nodes == pytest.approx(577, rel=0.05) and abs(found.height - 24) <= 2


def test_trees_are_deeper_with_delay_than_by_waiting():
    """Table 5."""
    for name in ("Hartmann3", "Branin"):
        heights = [
            wang.run_program(PROBLEMS[name], "constant", algorithm, np.random.default_rng(0))[-1].height
            for algorithm in ("MFPOO+UCBV", "PCTS+DUCBV")
        ]
        assert heights[0] < heights[1]


def test_the_best_so_far_is_the_best_recommendation_of_an_instance():
    def instance(times, points):
        return Instance(1.0, 0.9, times, [np.array([point]) for point in points], 1, 1, max(points))

    both = [instance([0.0, 4.0], [0.1, 0.5]), instance([0.0, 2.0], [0.3, 0.7])]
    times, values = best_so_far(both, lambda x: float(x[0]))
    assert times.tolist() == [0.0, 4.0, 4.0, 6.0] and values.tolist() == [0.1, 0.5, 0.5, 0.7]
    times, values = best_so_far(both, lambda x: float(x[0]), side_by_side=True)
    assert times.tolist() == [0.0, 0.0, 2.0, 4.0] and values.tolist() == [0.1, 0.3, 0.7, 0.7]


def test_the_centre_of_a_cell():
    assert centre(((0.0, 0.5), (0.5, 1.0))).tolist() == [0.25, 0.75]
