"""Optimizers, the life cycle of their trials, their names in the literature, and the values of their arguments."""
