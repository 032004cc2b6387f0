"""Roles of tokens, and the role that each request needs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

#: The roles. Each has the rights of the roles before it.
ROLES = ("read", "report", "work", "all")

#: The role that a request needs, by the name of the function that answers it. Other requests are refused.
NEEDED = {
    "show_user": "read",
    "list_studies": "read",
    "show_study": "read",
    "show_definition": "read",
    "show_best": "read",
    "show_forecast": "read",
    "show_finals": "read",
    "show_importance": "read",
    "show_chart": "read",
    "list_trials": "read",
    "show_trial": "read",
    "show_history": "read",
    "check": "report",
    "observe": "report",
    "fail": "report",
    "abandon": "report",
    "abandon_all": "report",
    "report_step": "report",
    "note": "report",
    "confirm": "report",
    "suggest": "work",
    "add": "work",
    "table": "work",
    "withdraw": "work",
    "withdraw_all": "work",
    "create_study": "all",
    "stop": "all",
}

#: The role that a field of a request needs, unless its value is null or false.
NEEDED_BY_FIELD = {
    ("observe", "amend"): "work",
    ("observe", "replicate"): "work",
    ("observe", "params"): "work",
}


class User(NamedTuple):
    """The role of a token, and the name of its user; None for a token without a name."""

    role: str
    name: str | None = None

    def __str__(self) -> str:
        return "the token" if self.name is None else f"the token of {self.name!r}"


def refused(user: User, route: str, body: Mapping[str, Any]) -> str | None:
    """Return why a user must not make a request, or None."""
    if route not in NEEDED:
        return f"{route} is not open to any role"
    what, role = route, NEEDED[route]
    for (name, field), more in NEEDED_BY_FIELD.items():
        given = body.get(field)
        is_given = given is not None and given is not False  # the number of a candidate may be 0
        if name == route and is_given and ROLES.index(more) > ROLES.index(role):
            what, role = f"{route} with {field}", more
    if ROLES.index(user.role) >= ROLES.index(role):
        return None
    return f"{user} has the role {user.role!r}, and {what} needs {role!r}"
