"""Results that are handed over together, for example once a week."""

import numpy as np

from belated.optimizers.log import Array

# Gaps inside a cluster are below this share of the gaps between clusters.
_INSIDE = 0.01

# Hand-overs are recognised if there are at least this number of clusters, and at least this mean number of results per
# cluster.
_MIN_CLUSTERS = 4
_MIN_RESULTS = 2

# The trials of a cluster count as started together if their starts differ by at most this share of the gap between
# clusters.
_TOGETHER = 0.1


def n_hand_overs(starts: Array, ends: Array) -> int:
    """Return the number of hand-overs, or 0 if results come one by one.

    Results are handed over if they come in clusters, but the trials of a cluster did not start together: trials that
    start together and run equally long also end together. If all starts are as far apart as the clusters, the clock
    shows only whole steps, and there are no hand-overs.
    """
    order = np.argsort(ends, kind="stable")
    starts, gaps = starts[order], np.diff(ends[order])
    ordered = np.sort(gaps)
    for n_inside in np.flatnonzero(ordered[:-1] < _INSIDE * ordered[1:])[::-1] + 1:
        width, n_clusters = ordered[n_inside], len(gaps) - n_inside + 1
        if n_clusters < _MIN_CLUSTERS or len(ends) < _MIN_RESULTS * n_clusters:
            continue
        clusters = np.split(starts, np.flatnonzero(gaps >= width) + 1)
        several = [np.ptp(cluster) > _TOGETHER * width for cluster in clusters if len(cluster) > 1]
        between = np.diff(np.sort(starts))
        between = between[between > _INSIDE * width]
        if np.mean(several) > 0.5 and (not between.size or between.min() < 0.5 * width):
            return int(n_clusters)
    return 0
