"""The program of Wang et al. 2022 in simulated time: a tree search that evaluates cell centres, with delays.

Notation: a node of height h covers a cell of the unit cube. The node's own bound is U = mean + width(s, t) +
2·nu·rho^h, where s is the number of values in the subtree of the node, and t is the number of evaluations that were
started. To select a leaf, the program follows the largest B = min{U, max over children B}. z is the fidelity of an
evaluation, and C is the bias constant: |f(x, z) − f(x, z')| ≤ C·|z − z'|.

The program differs from the paper's Algorithm 1. When the program expands a leaf, it evaluates the centres of both
children, and t grows by 2. The program adds nu·rho^h twice: once for the variation of f in the cell, and once for the
bias of the fidelity. An expanded leaf remains a leaf until the values of its children have arrived. While it is the
selected leaf, the program does not start evaluations. B is recomputed when an expansion is started, not when a value
arrives. Among all cells that were a leaf at any time, the recommendation is the cell with the largest value − nu·rho^h.
The best of several instances is chosen by the noiseless function. The program sleeps in real time, but here the clock
is simulated. One detail is not reproduced: the program identifies leaves by B, so it can expand a leaf twice if two
leaves have the same B.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Literal

import numpy as np

from belated.replays.report import Array

Rng = np.random.Generator
Cell = tuple[tuple[float, float], ...]
Act = Literal["delayed", "wait"]

#: Fidelities whose difference is at most this number count as equal.
TOLERANCE = 1e-3
#: Factor by which the bias constant grows after an instance contradicts it.
GROWTH = 1.4
RHO_MAX = 0.95  # the largest rho of POO; nu equals C, because the program multiplies C by nu_max = 1


@dataclass(slots=True, eq=False)
class Node:
    """A cell, and the values in its subtree: their mean, the mean of their squares, and their number."""

    cell: Cell
    height: int
    dimension: int  # the dimension that was halved to make this cell
    value: float
    parent: "Node | None" = None
    children: "list[Node]" = field(default_factory=list)
    n: int = 1
    mean: float = 0.0
    mean_square: float = 0.0
    bound: float = 0.0  # U without width(s, t)
    b: float = 0.0

    @property
    def variance(self) -> float:
        """Return the biased variance of the values in the subtree."""
        return max(0.0, self.mean_square - self.mean**2)


#: A function of a node and log t that returns the node's bound minus its mean.
Width = Callable[[Node, float], float]


@dataclass(frozen=True)
class UCB1Sigma:
    """sqrt(2σ²·log t/s): UCB1σ without delays (Sen et al. 2018), DUCB1σ with delays (Wang et al. 2022, Table 2)."""

    variance: float

    def __call__(self, node: Node, log_t: float) -> float:
        return math.sqrt(2 * self.variance * log_t / node.n)


@dataclass(frozen=True)
class UCBV:
    """sqrt(2v·log t/s) + 3·b·log t/s (Audibert et al. 2007; DUCBV of Wang et al.); the program scales the last term."""

    b: float
    factor: float = 1.0

    def __call__(self, node: Node, log_t: float) -> float:
        return math.sqrt(2 * node.variance * log_t / node.n) + 3 * self.factor * self.b * log_t / node.n


class Tree:
    """A tree of cells for a given smoothness (nu, rho)."""

    def __init__(self, root: Node, nu: float, rho: float, width: Width) -> None:
        self.root, self.nu, self.rho, self.width = root, nu, rho, width
        self.t, self.n_nodes, self.height = 1, 0, 0
        self.add(None, root)

    def diameter(self, height: int) -> float:
        """Return nu·rho^h."""
        return self.nu * self.rho**height

    def add(self, parent: Node | None, node: Node) -> None:
        """Add a node whose value has arrived. The value counts for all ancestors, but does not change their B."""
        node.mean, node.mean_square = node.value, node.value**2
        node.b = node.bound = node.value + 2 * self.diameter(node.height)
        self.n_nodes += 1
        self.height = max(self.height, node.height)
        if parent is not None:
            parent.children.append(node)
            node.parent = parent
        while parent is not None:
            parent.n += 1
            parent.mean += (node.value - parent.mean) / parent.n
            parent.mean_square += (node.value**2 - parent.mean_square) / parent.n
            parent.bound = parent.mean + 2 * self.diameter(parent.height)
            parent = parent.parent

    def refresh(self) -> None:
        """Recompute B of every node."""
        log_t = math.log(self.t)
        ordered = [self.root]
        for node in ordered:  # parents before children
            ordered.extend(node.children)
        for node in reversed(ordered):
            node.b = node.bound + self.width(node, log_t)
            if node.children:
                node.b = min(node.b, max(child.b for child in node.children))

    def leaves_to_select(self, rng: Rng) -> Iterator[Node]:
        """Yield the leaf reached by always following the child with the largest B; for equal B, yield all leaves."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            if not node.children:
                yield node
                continue
            largest = max(child.b for child in node.children)
            best = [child for child in node.children if child.b == largest]
            stack.extend(best if len(best) == 1 or rng.random() < 0.5 else best[::-1])


def halves(node: Node) -> tuple[int, tuple[Cell, Cell]]:
    """Return the dimension to halve, and both halves.

    The dimension is the longest side of the cell, or the preceding dimension if the parent was halved there.
    """
    dimension = longest_side(node.cell)
    if dimension == node.dimension:
        dimension = (dimension - 1) % len(node.cell)
    return dimension, halved(node.cell, dimension)


def longest_side(cell: Cell) -> int:
    """Return the first dimension in which a cell is longest."""
    return int(np.argmax([high - low for low, high in cell]))


def halved(cell: Cell, j: int) -> tuple[Cell, Cell]:
    """Return both halves of a cell along a dimension."""
    low, high = cell[j]
    middle = 0.5 * (low + high)
    return (*cell[:j], (low, middle), *cell[j + 1 :]), (*cell[:j], (middle, high), *cell[j + 1 :])


def centre(cell: Cell) -> Array:
    """Return the middle of a cell."""
    return np.array([0.5 * (low + high) for low, high in cell])


@dataclass
class Evaluations:
    """Delayed evaluations of f at centres of cells. Repetitions at (nearly) the same fidelity take no time.

    Parameters
    ----------
    f : callable
        f(x, z) on the unit cube, x of shape (d,).
    delays : iterator
        The delays of the evaluations, in the order in which these start.
    noise : callable, optional
        A function that draws the noise of a value. By default there is no noise, as in the authors' program.
    fidelity : bool, default False
        Whether cells are evaluated at z_h = clip(1 − nu·rho^h/C, 0.001, 1). By default cells are evaluated at z = 1, as
        in the program that the authors released.
    """

    f: Callable[[Array, float], float]
    d: int
    delays: Iterator[float]
    noise: Callable[[], float] | None = None
    fidelity: bool = False
    known: dict[Cell, tuple[float, float]] = field(default_factory=dict)  # z and value
    c: float = math.nan
    contradicted: bool = False
    n: int = 0

    def at(self, x: Array, z: float) -> tuple[float, float]:
        """Return a value and its delay."""
        self.n += 1
        value = float(self.f(x, z))
        return value if self.noise is None else value + self.noise(), float(next(self.delays))

    def of_cell(self, cell: Cell, diameter: float) -> tuple[float, float, float]:
        """Return the value of a cell, its fidelity and its delay."""
        z = min(max(1 - diameter / self.c, TOLERANCE), 1.0) if self.fidelity else 1.0
        z_before, value_before = self.known.get(cell, (math.nan, math.nan))
        if abs(z_before - z) <= TOLERANCE:
            return value_before, z_before, 0.0
        value, delay = self.at(centre(cell), z)
        if abs(value - value_before) > self.c * abs(z - z_before):
            self.contradicted = True
        return value, z, delay

    def estimate_bias(self) -> float:
        """Estimate C = sqrt(2)·|f_0.8 − f_0.2|/0.6, where f_z is the value at the centre of the cube with fidelity z.
        Return the time that the estimate takes."""
        x = np.full(self.d, 0.5)
        (high, first), (low, second) = self.at(x, 0.8), self.at(x, 0.2)
        self.c = math.sqrt(2) * abs(high - low) / 0.6
        return first + second


@dataclass(frozen=True)
class Instance:
    """A tree after its last expansion.

    ``points`` are the recommendations at the start and after each expansion, and ``times`` are the times of these
    recommendations. ``largest`` is the largest value of any node, at the fidelity of the node.
    """

    nu: float
    rho: float
    times: list[float]
    points: list[Array]
    height: int
    n_nodes: int
    largest: float


def run_instance(
    evaluations: Evaluations, nu: float, rho: float, width: Width, duration: float, rng: Rng, act: Act = "delayed"
) -> Instance:
    """Grow a tree for ``duration`` units of time after the value of the root has arrived.

    ``act="delayed"`` is PCTS: every selected leaf is expanded, also while results are in flight. ``act="wait"`` is HOO:
    each evaluation starts when the last result has arrived.
    """
    whole: Cell = ((0.0, 1.0),) * evaluations.d
    value, z, _ = evaluations.of_cell(whole, nu)
    evaluations.known[whole] = (z, value)
    tree = Tree(Node(whole, 0, 0, value), nu, rho, width)
    best_score, best, largest, unseen = -math.inf, centre(whole), value, [tree.root]
    times, points = [0.0], [best]
    # Arrivals: time, order of the start, fidelity, parent, child.
    in_flight: list[tuple[float, int, float, Node, Node]] = []
    order, now = count(), 0.0
    pending: set[Node] = set()

    def expand(leaf: Node) -> None:
        dimension, cells = halves(leaf)
        arrival = now
        for cell in cells:
            value, z, delay = evaluations.of_cell(cell, tree.diameter(leaf.height + 1))
            arrival = (arrival if act == "wait" else now) + delay
            child = Node(cell, leaf.height + 1, dimension, value)
            heapq.heappush(in_flight, (arrival, next(order), z, leaf, child))

    def receive() -> None:
        _, _, z, parent, child = heapq.heappop(in_flight)
        evaluations.known[child.cell] = (z, child.value)
        tree.add(parent, child)
        unseen.append(child)
        pending.discard(parent)

    while now <= duration:
        leaf = next((each for each in tree.leaves_to_select(rng) if each not in pending), None)
        if leaf is not None:
            pending.add(leaf)
            expand(leaf)
            tree.t += 2
            if act == "wait":
                now = max(each[0] for each in in_flight)
                while in_flight:
                    receive()
            tree.refresh()
            for node in unseen:
                largest = max(largest, node.value)
                score = node.value - tree.diameter(node.height)
                if score > best_score:
                    best_score, best = score, centre(node.cell)
            unseen.clear()
            times.append(now)
            points.append(best)
        else:
            now = in_flight[0][0]
        # All results that arrive at the same time are added before the next selection.
        while in_flight and in_flight[0][0] <= now:
            receive()
    return Instance(nu, rho, times, points, tree.height + 1, tree.n_nodes, largest)


def n_instances(n: float, rho_max: float, at_most: int | None) -> int:
    """Return how many instances POO runs for n evaluations: N = 0.5·D_max·log(n/log(n + 1)) with an integer D_max."""
    d_max = int(math.log(2) / math.log(1 / rho_max))
    found = int(0.5 * d_max * math.log(n / math.log(n + 1)))
    found = max(1, int(min(max(1, found), n / 2 + 1)))
    return found if at_most is None else min(found, at_most)


def run_poo(
    evaluations: Evaluations,
    width: Width,
    duration: float,
    unit: float,
    rng: Rng,
    *,
    at_most: int | None = None,
    act: Act = "delayed",
    whole_each: bool = False,
) -> list[Instance]:
    """Run N instances in sequence, with rho_i = rho_max^(N/(N − i)) and shared evaluations (POO, MFPOO).

    Parameters
    ----------
    duration : float
        The time for all instances together.
    unit : float
        The assumed time of an evaluation, which determines the number of instances and the time of each instance.
    at_most : int, optional
        Maximum number of instances.
    whole_each : bool, default False
        Whether each instance has the whole duration.
    """
    left = duration - evaluations.estimate_bias()
    n = n_instances(max(left / unit, 1.0), RHO_MAX, at_most)
    share = left - unit if whole_each else (left - n * unit) / n
    found = []
    for i in range(n):
        nu = evaluations.c
        evaluations.contradicted = False
        found.append(run_instance(evaluations, nu, RHO_MAX ** (n / (n - i)), width, share, rng, act))
        if evaluations.contradicted:
            evaluations.c *= GROWTH
    return found


def best_so_far(
    instances: Sequence[Instance], value: Callable[[Array], float], *, side_by_side: bool = False
) -> tuple[Array, Array]:
    """Return the times of expansions, and for each of these times the largest value of the instances' recommendations.

    The instances run one after the other, or in parallel.
    """
    events: list[tuple[float, int, Array]] = []
    begin = 0.0
    for i, each in enumerate(instances):
        events.extend((begin + time, i, point) for time, point in zip(each.times, each.points, strict=True))
        if not side_by_side:
            begin += each.times[-1]
    events.sort(key=lambda event: event[:2])
    value_at = cache(lambda key: value(np.frombuffer(key)))
    latest, values = [-math.inf] * len(instances), []
    for _, i, point in events:
        latest[i] = value_at(point.tobytes())
        values.append(max(latest))
    return np.array([time for time, _, _ in events]), np.array(values)
