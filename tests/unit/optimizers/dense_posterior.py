"""The posterior of a Gaussian process by its definition: one dense solve in numpy, without code of belated.

Notation: X (n, d) rows, y (n,) targets, k the Matern-5/2 kernel, λ the noise variance, A = k(X, X) + λI;
mean k(z, X) A⁻¹y and covariance k(z, z) − k(z, X) A⁻¹ k(X, z) (Rasmussen and Williams 2006, eqs. 2.23 and 2.24).
"""

import numpy as np


class DensePosterior:
    def __init__(self, x, y, lengthscale, variance, noise):
        """`noise` is the noise variance: a single number, or a number for each row."""
        self.x, self.y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        self.lengthscale, self.variance = lengthscale, variance
        self.a = self.kernel(self.x, self.x) + np.diag(np.broadcast_to(noise, len(self.y)))

    def kernel(self, a, b):
        r = np.sqrt(5) * np.linalg.norm((a[:, None] - b[None]) / self.lengthscale, axis=2)
        return self.variance * (1 + r + r**2 / 3) * np.exp(-r)

    def mean(self, z):
        return self.kernel(z, self.x) @ np.linalg.solve(self.a, self.y)

    def covariance(self, a, b):
        return self.kernel(a, b) - self.kernel(a, self.x) @ np.linalg.solve(self.a, self.kernel(self.x, b))

    def variances(self, z):
        return np.maximum(np.diag(self.covariance(z, z)), 0)
