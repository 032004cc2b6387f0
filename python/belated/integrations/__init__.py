"""Integrations of belated with other packages. Each package has one module, which only users of this package import."""
