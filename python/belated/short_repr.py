"""Short reprs of users' arguments, for messages."""

from reprlib import Repr


class _Short(Repr):
    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:
            # Python refuses to convert integers of more than 4,300 digits to text. From Python 3.12 on, reprlib handles
            # such integers.
            return f"<an integer of {x.bit_length()} bits>"


#: `reprlib.repr`, extended to integers of any size.
short_repr = _Short().repr
