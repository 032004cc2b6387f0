"""The tokens that requests must show: their file, and the roles and names of their users."""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from belated._core import InvalidSetting
from belated.serve.roles import ROLES, User
from belated.serve.watched import Watched
from belated.study.study import LONGEST_AUTHOR

MAKE = (
    "umask 077; python -c 'import secrets; print(secrets.token_urlsafe())' > token.txt, and pass "
    "--token-file token.txt or BELATED_TOKEN"
)


class Tokens:
    """The users of a server by the hashes of their tokens. `users` returns them at each request."""

    def __init__(self, users: Callable[[], Mapping[bytes, User]]) -> None:
        self._users = users

    def user(self, token: bytes) -> User | None:
        """Return the user of a token, or None."""
        # The search by a hash does not reveal the token by its duration.
        return self._users().get(sha256(token).digest())


def one_token(token: str) -> Tokens:
    """Return the tokens of a server with a single token, which has the role "all" and no name."""
    users = {sha256(token.encode()).digest(): User("all")}
    return Tokens(lambda: users)


def read_tokens(file: Path | None) -> Tokens:
    """Return the tokens from a file, which is read again after it has changed, or from the environment.

    Raises
    ------
    InvalidSetting
        A token is missing or too short to be secret, or a line of the file is not usable. The message does not show
        tokens.
    """
    if file is None:
        token = os.environ.get("BELATED_TOKEN", "").strip()
        if not token:
            raise InvalidSetting(_NONE)
        _check_token(token, "the token in BELATED_TOKEN")
        return one_token(token)
    users = Watched(lambda: _users_of(file), [file], "tokens stay")
    _warn_if_others_can_read(file)
    return Tokens(users.get)


_NONE = f"every request needs a token, and none is given: make one with {MAKE}"


def _users_of(file: Path) -> dict[bytes, User]:
    """Return the users of a file: one token, or lines of ROLE NAME TOKEN."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidSetting(f"the token in {file} is not text: write it with {MAKE}") from None
    lines = {number: line.split() for number, line in enumerate(text.split("\n"), 1)}
    lines = {number: words for number, words in lines.items() if words and not words[0].startswith("#")}
    if not lines:
        raise InvalidSetting(_NONE)
    if len(lines) == 1 and [len(words) for words in lines.values()] == [1]:
        [[token]] = lines.values()
        _check_token(token, f"the token in {file}")
        return {sha256(token.encode()).digest(): User("all")}
    users: dict[bytes, User] = {}
    tokens: dict[bytes, int] = {}
    names: dict[str, int] = {}
    for number, words in lines.items():
        where = f"line {number} of {file}"
        if len(words) != 3:
            raise InvalidSetting(
                f"{where} has {len(words)} words: write ROLE NAME TOKEN, or one token in the whole file"
            )
        role, name, token = words
        # Messages do not contain words of the line, because a word may be a token at the wrong place.
        if role not in ROLES:
            raise InvalidSetting(f"the first word of {where} is not a role: write one of {', '.join(ROLES)}")
        if not name.isprintable() or len(name) > LONGEST_AUTHOR:
            raise InvalidSetting(f"the name in {where} is not printable, or longer than {LONGEST_AUTHOR} characters")
        _check_token(token, f"the token in {where}")
        digest, alike = sha256(token.encode()).digest(), unicodedata.normalize("NFKC", name).casefold()
        for what, earlier in (("token", tokens.setdefault(digest, number)), ("name", names.setdefault(alike, number))):
            if earlier != number:
                raise InvalidSetting(f"the {what} in {where} is also in line {earlier}: each user needs another one")
        users[digest] = User(role, name)
    return users


def _check_token(token: str, where: str) -> None:
    if not re.fullmatch(r"[!-~]{16,1000}", token):
        raise InvalidSetting(f"{where} is not usable: take 16 to 1000 ASCII characters without spaces, as from {MAKE}")


def _warn_if_others_can_read(file: Path) -> None:
    # Give a warning and not an error: hosts of containers often provide tokens in files with such a mode, and control
    # access in other ways.
    if os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        print(f"belated: other users can read the token in {file}: chmod 600 {file}", file=sys.stderr, flush=True)
