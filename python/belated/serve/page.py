"""The security policy of the page, which may only run its own script, apply its own style, and call this server."""

import re
from base64 import b64encode
from hashlib import sha256


def security_policy(page: str) -> str:
    """Return the content security policy of a page that contains all its scripts and styles."""

    def hashes(tag: str) -> str:
        found = re.findall(f"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in found)

    return (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
