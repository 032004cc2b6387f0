"""Shortened reprs of what users pass, for messages."""

from reprlib import Repr


class _Short(Repr):
    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:
            # Python converts integers of up to 4,300 digits only; from 3.12 on reprlib knows that.
            return f"<an integer of {x.bit_length()} bits>"


#: As `reprlib.repr`; integers of any size have one.
short_repr = _Short().repr
