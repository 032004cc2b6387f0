"""Plots with matplotlib: of results, studies and optimizers, and of mean curves with bands of one standard error."""

from belated.plotting.contour import plot_contour
from belated.plotting.convergence import plot_convergence
from belated.plotting.curves import plot_curves
from belated.plotting.delays import plot_delays
from belated.plotting.durations import plot_durations
from belated.plotting.figures import grid, save
from belated.plotting.importance import plot_importance
from belated.plotting.learning_curves import plot_learning_curves
from belated.plotting.parallel_coordinates import plot_parallel_coordinates
from belated.plotting.pareto import plot_pareto
from belated.plotting.predictions import plot_predictions
from belated.plotting.slices import plot_slice
from belated.plotting.trials import plot_trials
from belated.plotting.workers import plot_workers

__all__ = [
    "grid",
    "plot_contour",
    "plot_convergence",
    "plot_curves",
    "plot_delays",
    "plot_durations",
    "plot_importance",
    "plot_learning_curves",
    "plot_parallel_coordinates",
    "plot_pareto",
    "plot_predictions",
    "plot_slice",
    "plot_trials",
    "plot_workers",
    "save",
]
