"""Short reprs of users' arguments and printable texts, for messages."""

from reprlib import Repr


class _Short(Repr):
    def repr_int(self, x: int, level: int) -> str:
        try:
            return super().repr_int(x, level)
        except ValueError:
            # Python refuses to convert integers of more than 4,300 digits to text. From Python 3.12 on, reprlib handles
            # such integers.
            return f"<an integer of {x.bit_length()} bits>"


def printable(text: str) -> str:
    """Return a text in which characters that a terminal may execute or hide are escaped as in a repr.

    Line ends are escaped, too.
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


#: `reprlib.repr`, extended to integers of any size.
short_repr = _Short().repr
