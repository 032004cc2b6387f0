"""The seed and the history determine every suggestion, bit for bit. A copy of an optimizer makes the same suggestions
as the original, and reading the model does not change suggestions."""

import contextlib
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import belated as bl

FULL = os.environ.get("BELATED_FULL") == "1"
LONGEST = 120 if FULL else 60

BOX = {"x": (-1.0, 1.0), "y": bl.Real(1e-3, 1.0, log=True), "n": (1, 6), "c": ["u", "v", "w"]}
# A lattice has many equal distances, so many acquisition values are equal up to rounding. A lattice is therefore the
# hardest case for reproducing suggestions bit for bit.
LATTICE = np.array([[i, j] for i in range(7) for j in range(6)], dtype=float)
SCATTERED = np.random.default_rng(0).random((60, 3))
NAMED = [
    {"x": x, "c": c} | ({"n": n} if c != "w" else {}) for x in (0.0, 0.1, 0.5) for c in "uvw" for n in (1, 2, 3, 4)
]
CONTEXT = {"age": (0.0, 1.0), "site": ["a", "b"]}
CONTEXTS = [{"age": 0.5, "site": "a"}, {"age": 0.5, "site": "b"}, {"age": 0.1, "site": "a"}]

TREE = {"c": ["u", "v", "w"], "n": bl.Integer(1, 6, when={"c": ["u", "v"]})}
TREE |= {"y": bl.Real(1e-3, 1.0, log=True, when={"c": "u", "n": [1, 2, 3]}), "x": bl.Real(-1.0, 1.0, step=0.1)}

DOMAINS = {
    "box": {"space": BOX},
    "plane": {"space": {name: BOX[name] for name in ("x", "y")}},
    "tree": {"space": TREE},
    "lattice": {"candidates": LATTICE},
    "scattered": {"candidates": SCATTERED},
    "named": {"candidates": NAMED},
}


def make(plan):
    """The optimizer of a plan."""
    arguments = dict(plan["arguments"])
    if plan["context"]:
        arguments["context"] = CONTEXT
    if arguments.get("clock") == "seconds":
        arguments["time"] = np.zeros(()).item  # the method is pickled together with the array that holds the time
    return optimizer(**DOMAINS[plan["domain"]], **arguments)


def optimizer(**arguments):
    """Construct the optimizer of a plan; an argument named ``argument__field`` sets a field of a setting."""
    nested = {name: value for name, value in arguments.items() if "__" in name}
    return bl.BayesOpt(**{name: arguments[name] for name in arguments.keys() - nested}).set_params(**nested)


def params_of(plan, u):
    """Return the point of the plan's domain that u in [0, 1) selects."""
    if plan["domain"] == "tree":
        c = "uvw"[int(3 * u)]
        inner = {"n": 1 + int(6 * u)} if c != "w" else {}
        inner |= {"y": 10 ** (-3 * u)} if c == "u" and inner["n"] <= 3 else {}
        return {"c": c, "x": (int(20 * u) - 10) / 10} | inner
    if plan["domain"] == "plane":
        return {"x": 2 * u - 1, "y": 10 ** (-3 * u)}
    if plan["domain"] != "box":
        return int(u * len(DOMAINS[plan["domain"]]["candidates"]))
    return {"x": 2 * u - 1, "y": 10 ** (-3 * u), "n": 1 + int(6 * u), "c": "uvw"[int(3 * u)]}


def read_model(opt, plan, which):
    """Make calls that must not change later suggestions: calls that read the model, and calls that raise an error."""
    context = CONTEXTS[which % 3] if plan["context"] else None
    problem = opt._problem
    for call in (
        lambda: opt.recommend(context),
        lambda: opt._log.surrogate(opt._problem.wall_time(), which % 2 == 0),
        # Not logged.
        lambda: opt._log.propose(1 + which % 3, problem.context_numbers(context), problem.wall_time()),
        lambda: opt.predict([params_of(plan, 0.3)], context, pending=which % 3 == 0),
        lambda: opt.suggest(context={"age": 7}),
        lambda: opt.add(params_of(plan, 0.3), float("nan"), context=context),
        lambda: opt.observe(which % 50, float("inf")),
        lambda: opt.observe(which % 50, -77.0) if which % 50 < opt.n_trials and opt.trial(which % 50).value else None,
    ):
        with contextlib.suppress(bl.BelatedError):  # the call may be unsupported, or need a fit
            call()


def step(opt, plan, what, number):
    """Make one step of a history; `number` determines the trial, the point and the value."""
    context = CONTEXTS[number % 3] if plan["context"] else None
    u = number // 3 % 100 / 100
    value = np.round(8 * u) / 4 - 1  # values are coarse, so equal values are frequent
    if what == "suggest":
        opt.suggest(context=context)
    elif what == "batch":
        opt.suggest(2 + number % 2, context=context)
    elif what == "add":
        opt.add(params_of(plan, u), value if number % 2 else None, context=context)
    elif what == "enqueue":
        opt.enqueue(params_of(plan, u))
    elif what == "wait":
        if opt.clock == "seconds":
            opt.time.__self__[...] += 3 * u
    else:
        trials = [trial for trial in opt.trials if (trial.value is None) == (what not in ("amend", "withdraw"))]
        if trials:
            trial = trials[number % len(trials)]
            if what in ("fail", "give up"):
                trial.fail(error="diverged" if number % 2 else None)
            if what in ("abandon", "give up"):  # a failed trial that is abandoned leaves the model
                trial.abandon()
            if what == "withdraw":
                trial.withdraw()
            if what in ("observe", "amend"):
                place = params_of(plan, (u + 0.5) % 1) if number % 7 == 1 else None  # run elsewhere
                trial.observe(value, amend=what == "amend", std=0.2 if number % 5 == 0 else None, params=place)


def travel(opt, plan, which):
    """Return a copy of the optimizer, made by pickling or from the events of the log."""
    if which % 2:
        return pickle.loads(pickle.dumps(opt))
    copy = make(plan)
    copy._log.extend(opt._log.events(0))
    if opt.clock == "seconds":
        copy.time.__self__[...] = opt.time()
    return copy


def run(opt, plan, steps, readings=(), travels=()):
    """Run the steps. Before each step in `readings`, read the model; before each step in `travels`, replace the
    optimizer by a copy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bl.BelatedWarning)
        for i, (what, number) in enumerate(steps):
            if i in readings:
                read_model(opt, plan, i + number)
            if i in travels:
                opt = travel(opt, plan, number)
            step(opt, plan, what, number)
    return opt


def record(opt):
    """Return all data of an optimizer's trials and its predictions of f. Floats are returned as bits."""
    trials = [opt._log.trial(number) for number in range(opt.n_trials)]
    facts = [
        (t.number, repr(t.place), repr(t.run), t.context, t.state, t.value, t.suggested_at, t.observed_at)
        for t in trials
    ]
    for pending in (False, True):
        surrogate = opt._log.surrogate(opt._problem.wall_time(), pending)
        if surrogate is not None:
            model, *units = surrogate
            mean, std = model.predict(np.linspace(0, 1, 3)[:, None] * np.ones(model.lengthscale.size))
            theta = [*model.lengthscale, model.variance, model.noise]
            facts.append((theta, units, mean.tobytes(), std.tobytes()))
    return facts


KERNELS = ["matern52", "squared_exponential", "matern32", "matern12", "linear"]
KINDS = ["suggest"] * 10 + ["observe"] * 7
KINDS += ["batch", "add", "enqueue", "wait", "fail", "abandon", "give up", "amend", "withdraw"]


@st.composite
def plans(draw):
    """Arguments of an optimizer, and a history."""
    domain = draw(st.sampled_from(sorted(DOMAINS)))
    arguments = {
        "seed": draw(st.integers(0, 3)),
        "acquisition": draw(st.sampled_from(["thompson", "ucb", "log_ei", "max_variance", "ucb_pe"])),
        "pending": draw(st.sampled_from(["hallucinate", "censor", "integrate", "ignore", "liar", "nearest"])),
        "surrogate__kernel": draw(st.sampled_from(KERNELS)),
        "initial": draw(st.integers(1, 3)),
        "initial__how": draw(st.sampled_from(["quasi_random", "uniform", "uncertainty"])),
        "surrogate__n_restarts": draw(st.integers(1, 2)),
        "clock": draw(st.sampled_from(["iterations", "seconds"])),
        "direction": draw(st.sampled_from(["maximize", "minimize"])),
        "window": draw(st.sampled_from([None, 1.5, 4.0, "auto"])),
        "surrogate__fit_rows": draw(st.sampled_from(["policy", "observed", "all"])),
        "surrogate__refit_clock": draw(st.sampled_from(["observations", "trials"])),
        "surrogate__refit_every": draw(st.sampled_from([1, 4, 50])),
        "surrogate__mean": draw(st.sampled_from(["zero", "median", 0.25])),
    }
    if domain == "plane":
        methods = [("aegis", "ignore"), ("ucb", "local_penalization"), ("log_ei", "playbook"), ("ucb", "playbook")]
        arguments["acquisition"], arguments["pending"] = draw(st.sampled_from(methods))
    if arguments["pending"] == "integrate":
        arguments["acquisition"] = "log_ei"
    if arguments["acquisition"] == "ucb_pe":
        arguments["pending"] = "hallucinate"
    if arguments["acquisition"] in ("ucb", "ucb_pe"):
        arguments["acquisition__beta"] = draw(st.sampled_from([1.0, "kandasamy", "kandasamy_code", "theory"]))
    if arguments["acquisition"] == "ucb":
        arguments["acquisition__per_batch"] = draw(st.booleans())
    if arguments["pending"] != "censor" and arguments["window"] == "auto":
        arguments["window"] = None
    if arguments["pending"] == "censor" and arguments["window"] is not None:
        arguments["pending__late"] = draw(st.sampled_from(["accept", "discard"]))
    if arguments["pending"] == "censor":
        arguments["pending__floor"] = draw(
            st.sampled_from([None, -2.0 if arguments["direction"] == "maximize" else 2.0])
        )
    if draw(st.booleans()):
        arguments |= {"surrogate__lengthscale": draw(st.sampled_from([0.4, 4.0])), "surrogate__signal_std": 1.0}
        arguments["surrogate__noise_std"] = draw(st.sampled_from([1e-1, 1e-3, 10**-7.5]))  # 10**-7.5 needs jitter
    if arguments.get("acquisition__beta") == "theory":
        # Make the settings those to which the theorem applies.
        floor = arguments.get("pending__floor") or 0.25
        arguments |= {"surrogate__lengthscale": 0.4, "surrogate__signal_std": 1.0, "surrogate__noise_std": 0.1}
        arguments |= {"surrogate__kernel": "matern52", "surrogate__targets": "raw", "surrogate__mean": floor}
        constants = bl.papers.Theory(rkhs_bound=1.0, noise_bound=0.1, value_bound=5.0)
        arguments["acquisition__theory"] = constants
        if arguments["pending"] == "censor":
            window = None if arguments["window"] is None else 4.0
            arguments |= {"window": window, "pending__floor": floor}
            arguments["pending__late"] = "accept" if window is None else "discard"
        elif arguments["acquisition"] == "ucb":
            arguments["pending"] = "ignore"
    if domain == "box":
        arguments |= draw(st.sampled_from([{}, {"search__multistart": (40, 2)}, {"search__direct": 60}]))
    if arguments["acquisition"] == "thompson":
        arguments["acquisition__n_features"] = 32
    if domain == "box" and arguments["acquisition"] == "thompson":
        arguments["acquisition__draws"] = draw(st.sampled_from(["pathwise", "weight_space"]))
    # The length is drawn before the steps, because hypothesis would otherwise mostly draw short histories, in which the
    # model is never used.
    length = draw(st.integers(5, LONGEST))
    steps = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2999)), min_size=length, max_size=length))
    context = domain != "plane" and draw(st.booleans())
    return {"domain": domain, "context": context, "arguments": arguments, "steps": steps}


moments = st.sets(st.integers(0, LONGEST), max_size=LONGEST // 3)
few = settings(
    max_examples=1500 if FULL else 60,
    phases=[phase for phase in Phase if phase != Phase.explain],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@few
@given(plan=plans(), readings=moments, travels=moments)
def test_copies_and_readings_do_not_change_suggestions(plan, readings, travels):
    plain = record(run(make(plan), plan, plan["steps"]))
    assert record(run(make(plan), plan, plan["steps"], readings=readings)) == plain
    assert record(run(make(plan), plan, plan["steps"], readings=readings, travels=travels)) == plain


@few
@given(plan=plans())
def test_a_batch_equals_single_suggestions(plan):
    singly = []
    for what, number in plan["steps"]:
        singly += [("suggest", number)] * (2 + number % 2) if what == "batch" else [(what, number)]
    assert record(run(make(plan), plan, singly)) == record(run(make(plan), plan, plan["steps"]))


def lattice_indices(settings, readings=False, travels=False, rounds=30):
    """Return the indices suggested on a lattice. The scores depend only on distances, so many scores are equal up to
    rounding."""
    # The coordinates are exact binary fractions, and all values equal the prior mean.
    lattice = np.array([[i, j] for i in range(9) for j in range(9)], dtype=float)
    theta = {"surrogate__lengthscale": 0.5, "surrogate__signal_std": 1.0, "surrogate__noise_std": 0.1}
    opt = optimizer(candidates=lattice, surrogate__targets="raw", initial=1, **theta, **settings)
    contexts = [{"age": 0.0}, {"age": 0.25}] if opt.context else [None]
    for k in range(rounds):
        if travels:
            opt = pickle.loads(pickle.dumps(opt))
        opt.suggest(context=contexts[k // 4 % len(contexts)])
        if k % 6 == 5:
            opt.fail(k)
        if k % 6 == 2 and k > 6:
            opt.abandon(k - 3)  # the failed trial leaves the model
        if readings:
            opt._log.surrogate(None, k % 2 == 0)
        for trial in opt.pending[k % 4 :: 4]:
            trial.observe(0.0)
    return [trial.index for trial in opt.trials]


@pytest.mark.parametrize("pending", ["hallucinate", "censor", "ignore"])
@pytest.mark.parametrize("acquisition", ["ucb", "thompson"])
@pytest.mark.parametrize("context", [None, {"age": (0.0, 1.0)}], ids=["", "context"])
def test_scores_that_tie_up_to_rounding_give_the_same_suggestions(pending, acquisition, context):
    for seed in range(20 if FULL else 2):
        for kernel in ("matern52", "squared_exponential"):
            settings = {"seed": seed, "surrogate__kernel": kernel, "pending": pending, "acquisition": acquisition}
            settings |= {"context": context} | ({"pending__floor": 0.0} if pending == "censor" else {})
            plain = lattice_indices(settings)
            assert lattice_indices(settings, readings=True) == plain
            assert lattice_indices(settings, travels=True) == plain


@pytest.mark.parametrize("n", [60, 150, 290, 600] if FULL else [150])
@pytest.mark.parametrize(
    ("acquisition", "pending"),
    [("ucb", "hallucinate"), ("ucb", "censor"), ("thompson", "hallucinate"), ("log_ei", "censor")],
)
@pytest.mark.parametrize("domain", ["box", "lattice"])
@pytest.mark.parametrize(
    "theta",
    [{}, {"surrogate__lengthscale": 0.3, "surrogate__signal_std": 1.0, "surrogate__noise_std": 0.1}],
    ids=["fitted", "given"],
)
def test_copies_with_many_rows_continue_bit_for_bit(n, pending, acquisition, domain, theta):
    # A copy's Cholesky factor has a different capacity, and therefore different strides. Results must not depend on
    # these strides.
    plan = {"domain": domain, "context": False, "arguments": {"acquisition": acquisition, "pending": pending}}
    plan["arguments"] |= {"seed": 1, "initial": 1, "surrogate__n_restarts": 2, **theta}
    plan["arguments"] |= {"acquisition__n_features": 64} if acquisition == "thompson" else {}
    rng = np.random.default_rng(n)
    steps = [("add", 2 * number + 1) for number in rng.integers(0, 1500, size=n)]
    steps += [("suggest", 0), ("suggest", 0), ("observe", n + 1), ("suggest", 0), ("observe", n)] * 4
    plain = record(run(make(plan), plan, steps))
    assert record(run(make(plan), plan, steps, travels=range(n, len(steps), 3), readings=[n + 5, n + 11])) == plain


def in_another_process(jobs):
    """Continue the history of each (optimizer, plan, steps) in another process; return the records in order."""
    child = subprocess.run([sys.executable, __file__], input=pickle.dumps(jobs), stdout=subprocess.PIPE, check=True)
    return pickle.loads(child.stdout)


@settings(few, max_examples=40 if FULL else 2)
@given(plans=st.lists(plans(), min_size=5, max_size=5), cut=st.floats(0, 1))
def test_another_process_continues_bit_for_bit(plans, cut):
    jobs, here = [], []
    for plan in plans:
        steps = plan["steps"]
        middle = int(cut * len(steps))
        jobs.append((make(plan), plan, steps))
        jobs.append((run(make(plan), plan, steps[:middle]), plan, steps[middle:]))
        here += 2 * [record(run(make(plan), plan, steps))]
    assert in_another_process(jobs) == here


if __name__ == "__main__":
    sys.stdout.buffer.write(pickle.dumps([record(run(*job)) for job in pickle.load(sys.stdin.buffer)]))
