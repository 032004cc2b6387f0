"""Settings that all tests share."""

from hypothesis import settings

# Deadlines measure the machine, not the code.
settings.register_profile("belated", deadline=None)
settings.load_profile("belated")
