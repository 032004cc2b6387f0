"""Studies: optimizers whose log is kept in a store."""

from belated.study.study import Study

__all__ = ["Study"]
