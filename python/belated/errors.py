"""The exceptions that belated raises. The base class `BelatedError` is in `belated`."""

from typing import Any

from belated._core import (
    AlreadyObserved,
    BelatedError,
    HorizonReached,
    InvalidContext,
    InvalidFidelity,
    InvalidPoint,
    InvalidSetting,
    InvalidSpace,
    InvalidValue,
    NumericalError,
    UnknownTrial,
)

__all__ = [
    "AlreadyObserved",
    "HorizonReached",
    "InvalidContext",
    "InvalidFidelity",
    "InvalidPoint",
    "InvalidSetting",
    "InvalidSpace",
    "InvalidValue",
    "NotFitted",
    "NumericalError",
    "ObjectivesError",
    "RunError",
    "StoreError",
    "TrialChanged",
    "UnknownArgument",
    "UnknownTrial",
]


class NotFitted(BelatedError, ValueError):
    """A call needs the model, but the model cannot be fitted before the first value is observed."""


class ObjectivesError(BelatedError, AttributeError):
    """A member is not defined for the number of objectives: `best_trial_` for several, or `pareto_` for one."""


class RunError(BelatedError, RuntimeError):
    """All trials of a run failed, the first trials failed in the same way, or the executor does not work.

    Attributes
    ----------
    result : Result
        The result so far.
    """

    result: Any


class StoreError(BelatedError):
    """A store cannot be read or written, or it contains data that belated cannot have written."""


class TrialChanged(InvalidSetting):
    """A trial of a study has changed since the caller has read it.

    Attributes
    ----------
    numbers : list of int
        The trials that have changed.
    """

    numbers: list[int]


class UnknownArgument(InvalidSetting, TypeError):
    """A function or class does not have an argument that was passed; the message names a replacement."""


# The core makes the other classes. Pickles and tracebacks name the module in which users find them.
for _name in __all__:
    globals()[_name].__module__ = __name__
