"""Integrations of belated with other packages. A module is imported only by users of the package that it integrates."""
