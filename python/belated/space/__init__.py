"""Search spaces, candidate sets and contexts, and the reading of arguments."""

from belated.space.candidates import Candidates
from belated.space.dimensions import Categorical, Dimension, Integer, Ordinal, Real
from belated.space.space import ContextSpace, Location, Params, Space

__all__ = [
    "Candidates",
    "Categorical",
    "ContextSpace",
    "Dimension",
    "Integer",
    "Location",
    "Ordinal",
    "Params",
    "Real",
    "Space",
]
