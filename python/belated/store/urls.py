"""Functions that find the passwords in the URL of a store, and functions that remove the passwords."""

import re
from reprlib import Repr
from typing import Any

from belated._core import InvalidSetting

# user:password@hosts/database. All parts are optional. The part after "?" is separate. Hosts may be [::1] or h1:1,h2:2.
_LOCATION = re.compile(r"(?:(?P<user>[^:@/\[\]]*)(?::(?P<password>[^:@/\[\]]*))?@)?(?P<rest>[^@]*)")

_SECRET = r"\b((?:ssl)?password\s*=\s*)('[^']*'?|[^\s&]*)"
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80


def split_passwords(location: str) -> tuple[str, dict[str, str]]:
    """Return the location after ``scheme://`` without its passwords, and the decoded passwords by parameter name.

    Raises
    ------
    InvalidSetting
        The location does not have the form ``user:password@host:port/database?name=value``.
    """
    from urllib.parse import unquote

    place, question, query = location.partition("?")
    found = _LOCATION.fullmatch(place)
    if found is None:
        raise InvalidSetting(
            "store= holds a URL that cannot be read: write it as 'postgresql://user:password@host:port/database', with "
            "the characters :/@?#[]% of user, password and database percent-encoded, as urllib.parse.quote does"
        )
    secrets = {} if found["password"] is None else {"password": unquote(found["password"])}
    kept = []
    for entry in query.split("&"):
        name, _, value = entry.partition("=")
        if unquote(name) in ("password", "sslpassword"):
            secrets[unquote(name)] = unquote(value)
        else:
            kept.append(entry)
    user = "" if found["user"] is None else f"{found['user']}@"
    query = "&".join(kept)
    return f"{user}{found['rest']}{question if query else ''}{query}", secrets


def shown(store: Any) -> str:
    """Return a store argument for a message, shortened and with asterisks in place of passwords."""
    if not isinstance(store, str):
        return _SHORT.repr(store)
    scheme, separator, rest = store.rpartition("://")
    if "@" in rest:
        rest = f"***@{rest.rpartition('@')[2]}"
    return _SHORT.repr(re.sub(_SECRET, r"\1***", f"{scheme}{separator}{rest}"))
