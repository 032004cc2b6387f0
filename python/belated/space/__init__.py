"""Search spaces, candidate sets, contexts and fidelities."""

from belated.space.candidates import Candidates, CandidatesLike, NamedCandidates, read_candidates
from belated.space.dimensions import Categorical, Dimension, Integer, Ordinal, Real
from belated.space.fidelity import Fidelity, PowerCost
from belated.space.linear import Cardinality, Linear, Mixture
from belated.space.nested import Choice
from belated.space.space import ContextSpace, Params, Place, Space

__all__ = [
    "Candidates",
    "CandidatesLike",
    "Cardinality",
    "Categorical",
    "Choice",
    "ContextSpace",
    "Dimension",
    "Fidelity",
    "Integer",
    "Linear",
    "Mixture",
    "NamedCandidates",
    "Ordinal",
    "Params",
    "Place",
    "PowerCost",
    "Real",
    "Space",
    "read_candidates",
]
