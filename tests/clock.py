"""A clock for tests."""


class Clock:
    """A clock that a test sets. It can be pickled."""

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now
