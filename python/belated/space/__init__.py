"""Search spaces, candidate sets and contexts, and the reading of arguments."""

from belated.space.dimensions import Categorical, Dimension, Integer, Real
from belated.space.space import Candidates, ContextSpace, Space

__all__ = ["Candidates", "Categorical", "ContextSpace", "Dimension", "Integer", "Real", "Space"]
