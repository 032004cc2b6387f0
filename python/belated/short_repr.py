"""Shortened reprs of users' arguments, for messages."""

from reprlib import Repr


class _Short(Repr):
    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:
            # Python converts only integers of up to 4,300 digits; reprlib knows that from 3.12 on.
            return f"<an integer of {x.bit_length()} bits>"


#: As `reprlib.repr`, but also for integers of any size.
short_repr = _Short().repr
