"""Search spaces in the form that Ray Tune's users write, and conversion to and from Tune's configs.

The name of a parameter in nested dicts is its keys joined by "/", the outermost key first, as in Tune's tables of
results.
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any

from ray.tune.search import sample

from belated._core import InvalidSetting, InvalidSpace
from belated.optimizers.optimizer import Optimizer
from belated.short_repr import short_repr
from belated.space.dimensions import Categorical, Dimension, Integer, Ordinal, Real
from belated.space.space import Space

_ABSENT = object()


class TuneSpace:
    """A space for an optimizer, and the conversion between its params and Tune's configs.

    Parameters
    ----------
    given : Space or mapping
        Parameter's name → dimension, a shorthand of `belated.Space`, a domain of Tune (``tune.uniform(…)``), or a dict
        of these.

    Attributes
    ----------
    space : Space
        The space that the optimizer searches.

    Raises
    ------
    InvalidSpace
        The argument is not a mapping, has a `Choice`, or has an entry that cannot be searched.

    Examples
    --------
    >>> from ray import tune
    >>> from belated.integrations.ray.space import TuneSpace
    >>> found = TuneSpace({"optim": {"lr": tune.loguniform(1e-4, 1e-1)}, "layers": tune.randint(1, 5)})
    >>> found.space
    Space({'optim/lr': Real(0.0001, 0.1, log=True), 'layers': Integer(1, 4)})
    >>> found.config({"optim/lr": 0.01, "layers": 2})
    {'optim': {'lr': 0.01}, 'layers': 2}
    """

    def __init__(self, given: Any) -> None:
        if not isinstance(given, Mapping):
            raise InvalidSpace(f"space={short_repr(given)} is not usable: pass a dict of parameter's name → dimension")
        self.space = Space({name: _read(name, value) for name, value in _leaves(given)})
        if self.space.nesting is not None:
            raise InvalidSpace(
                f"space has a bl.Choice, which Tune's configs do not have: write {short_repr(list(self.space))} with "
                "when= for conditions"
            )
        for name in self.space:
            inner = [other for other in self.space if other.startswith(f"{name}/")]
            if inner:
                raise InvalidSpace(f"{name!r} is a parameter, and a dict with {inner}: rename one of them")

    def config(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the nested config of params."""
        config: dict[str, Any] = {}
        for name, value in params.items():
            *path, last = name.split("/")
            inner = config
            for key in path:
                inner = inner.setdefault(key, {})
            inner[last] = value
        return config

    def params(self, *sources: Mapping[str, Any]) -> dict[str, Any]:
        """Read params from nested or flattened ("optim/lr") configs; take each value from the first config that has it.

        A tuple among the choices is recognised even if JSON has turned it into a list. Names that are missing from all
        configs are left out.
        """
        found: dict[str, Any] = {}
        for name, dimension in self.space.items():
            for source in sources:
                value = _look_up(source, name)
                if value is not _ABSENT and isinstance(dimension, (Categorical, Ordinal)):
                    value = _choice(dimension, value)
                if value is not _ABSENT:
                    found[name] = value
                    break
        return found


def searched_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the domains in Tune's ``param_space``, by name. Constants are left out, because Tune adds them to
    configs."""
    found: dict[str, Any] = {}
    for name, value in _leaves(config, refuse_slash=True):
        if isinstance(value, sample.Domain):
            found[name] = value
        else:
            _refuse_inner_domains(name, value)
    return found


def space_and_mode(optimizer: Optimizer, mode: str | None) -> tuple[TuneSpace, str]:
    """Return the space and the mode of an optimizer that the user passed. `mode` is the user's mode, if given."""
    if type(optimizer.domain) is not Space:
        raise InvalidSetting("optimizer has candidates, and Tune searches a space: give it a space")
    if optimizer.domain.nesting is not None:
        raise InvalidSetting(
            "optimizer has a nested space, and Tune's names are joined by '/': pass the space as space=, or give the "
            'optimizer names such as "model/C" with when= for conditions'
        )
    own = "max" if optimizer.direction == "maximize" else "min"
    if mode not in (None, own):
        raise InvalidSetting(f"mode={mode!r}, and optimizer has direction={optimizer.direction!r}: let them agree")
    return TuneSpace(optimizer.domain), own


def _choice(dimension: Categorical | Ordinal, value: Any) -> Any:
    """Return the choice that equals a value from a config, or _ABSENT."""
    with suppress(ValueError):
        return dimension.check(value)
    # Compare the JSON texts of values: a tuple and the list that JSON made of it have the same text. Other types of
    # choices cannot be written as JSON.
    with suppress(TypeError):
        wanted = json.dumps(value)
        for choice in dimension.options:
            with suppress(TypeError):
                if json.dumps(choice) == wanted:
                    return choice
    return _ABSENT


def _leaves(given: Mapping[Any, Any], path: str = "", refuse_slash: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for every value that is not a dict, at any depth."""
    for key, value in given.items():
        if not isinstance(key, str) or (refuse_slash and "/" in key):
            raise InvalidSpace(f"the name {path + str(key)!r} is not usable: keys are strings without '/'")
        name = path + key
        if isinstance(value, Mapping):
            if set(value) == {"grid_search"}:
                raise InvalidSpace(
                    f"{name!r} is a grid_search, which evaluates all values: write tune.choice, of which the optimizer "
                    "chooses, or use Tune without a search_alg"
                )
            yield from _leaves(value, f"{name}/", refuse_slash)
        else:
            yield name, value


def _read(name: str, value: Any) -> Any:
    """Return the optimizer's dimension for one entry."""
    if not isinstance(value, sample.Domain):
        _refuse_inner_domains(name, value)
        return value
    try:
        return _dimension(value)
    except InvalidSpace as error:
        raise InvalidSpace(f"space[{name!r}]: {error}") from None


def _refuse_inner_domains(name: str, value: Any) -> None:
    for i, each in enumerate(value if isinstance(value, (list, tuple)) else ()):
        for inner in _domains_in(each):
            raise InvalidSpace(
                f"{name!r} is a list with {short_repr(inner)} in it: give each parameter a name, as in "
                f"{{{name!r}: {{'{i}': …}}}}, and make the list in the trainable"
            )


def _domains_in(value: Any) -> Iterator[Any]:
    """Yield the domains of Tune in a value: the value itself, or entries of dicts and lists at any depth."""
    if isinstance(value, sample.Domain) or (isinstance(value, Mapping) and set(value) == {"grid_search"}):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _domains_in(each)


def _dimension(domain: Any) -> Dimension:
    """Return the dimension that has the same values as a domain of Tune."""
    sampler, q = domain.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        sampler, q = sampler.get_sampler(), sampler.q
    is_log = isinstance(sampler, sample.LogUniform)
    if isinstance(domain, sample.Categorical) and isinstance(sampler, sample.Uniform):
        inner = next(_domains_in(list(domain.categories)), None)
        if inner is not None:
            raise InvalidSpace(
                f"a choice has the domain {short_repr(inner)} among its values: give it a name, with when= if it "
                "depends on the choice, as in space={'kind': ['a', 'b'], 'lr': bl.Real(0.1, 1.0, when={'kind': 'a'})}"
            )
        return Categorical(list(domain.categories))
    if not isinstance(domain, (sample.Float, sample.Integer)) or not (is_log or isinstance(sampler, sample.Uniform)):
        raise InvalidSpace(
            f"{type(domain).__name__} drawn by {type(sampler).__name__.lstrip('_')} cannot be searched: write "
            "tune.uniform(low, high), another domain with two bounds, or tune.choice; compute numbers that "
            "depend on other parameters in the trainable"
        )
    if isinstance(domain, sample.Integer):
        if q is None or q == 1:
            # The upper bound of Tune's integers is excluded.
            first, last = int(domain.lower), int(domain.upper) - 1
            return Integer(first, last, log=is_log) if first < last else Categorical([first])
        first, last = math.ceil(domain.lower / q) * q, math.floor(domain.upper / q) * q
        return Integer(first, last, log=is_log, step=q) if first < last else Categorical([first])
    if q is None:
        return Real(domain.lower, domain.upper, log=is_log)
    # Tune has checked that the bounds are multiples of q. This holds exactly for the decimal numbers, but not always
    # for floats.
    exact = Fraction(repr(float(q)))
    low, high = (float(exact * round(bound / q)) for bound in (domain.lower, domain.upper))
    return Real(low, high, log=is_log, step=q) if low < high else Categorical([low])


def _look_up(source: Mapping[str, Any], name: str) -> Any:
    """Return the value of this name in a flattened or nested config, or _ABSENT."""
    if name in source:
        return source[name]
    inner: Any = source
    for key in name.split("/"):
        if not isinstance(inner, Mapping) or key not in inner:
            return _ABSENT
        inner = inner[key]
    return inner
