"""Random spaces with every kind of dimension and with nested conditions, for tests."""

from hypothesis import strategies as st

import belated as bl

VALUES = ["u", None, True, 1, (1, "a"), 2.5]


@st.composite
def dimensions(draw, when=None, continuous=True):
    """Draw a dimension with the condition `when`."""
    kinds = ["integer", "log integer", "stepped integer", "stepped real", "stepped log"]
    kinds += ["ordinal", "categorical", "constant"]
    kind = draw(st.sampled_from(kinds + ["real", "log real"] * continuous))
    n, low = draw(st.integers(1, 4)), draw(st.integers(-3, 3))
    if kind == "integer":
        return bl.Integer(low, low + n, when=when)
    if kind == "log integer":
        return bl.Integer(abs(low) + 1, abs(low) + 1 + n, log=True, when=when)
    if kind == "stepped integer":
        return bl.Integer(low, low + 3 * n + 1, step=3, when=when)
    if kind == "stepped real":
        return bl.Real(low / 10, low / 10 + 0.1 * n + 0.05, step=0.1, when=when)
    if kind == "stepped log":
        return bl.Integer(3 * abs(low) + 3, 3 * abs(low) + 3 + 3 * n, log=True, step=3, when=when)
    if kind == "real":
        return bl.Real(low, low + n, when=when)
    if kind == "log real":
        return bl.Real(10.0**low, 10.0 ** (low + n), log=True, when=when)
    count = {"ordinal": n + 1, "categorical": n + 1, "constant": 1}[kind]
    values = draw(st.lists(st.sampled_from(VALUES), min_size=count, max_size=count, unique_by=repr))
    return bl.Ordinal(values, when=when) if kind == "ordinal" else bl.Categorical(values, when=when)


@st.composite
def conditional_spaces(draw, continuous=True, max_size=6):
    """Draw a dict of dimensions by name. A dimension may depend on earlier discrete dimensions."""
    space = {"p0": draw(dimensions(continuous=False).filter(lambda each: each.n_levels > 1))}
    for i in range(1, draw(st.integers(2, max_size))):
        parents = [name for name, each in space.items() if each.n_levels is not None]
        when = {}
        for parent in draw(st.lists(st.sampled_from(parents), max_size=2, unique=True)):
            n_levels = space[parent].n_levels
            levels = draw(st.lists(st.integers(0, n_levels - 1), min_size=1, max_size=n_levels, unique=True))
            when[parent] = [space[parent].member(level) for level in levels]
        space[f"p{i}"] = draw(dimensions(when or None, continuous))
    try:
        bl.Space(space)
    except bl.errors.InvalidSpace:  # constants make the condition impossible
        return {name: each for name, each in space.items() if each.when is None}
    return space


def active_names(space, params):
    """Compute the expected active names from the declarations. A condition names only earlier dimensions."""
    active = []

    def holds(parent, values):
        return parent in active and repr(params[parent]) in map(repr, values)

    for name, each in space.items():
        if all(holds(parent, values) for parent, values in (each.when or {}).items()):
            active.append(name)
    return active
