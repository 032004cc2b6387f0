"""The web page: one document that contains its scripts and style, and the security policy for it."""

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files


def read_file(name: str) -> str:
    """Return the text of a file of this package."""
    return files("belated.serve").joinpath(name).read_text(encoding="utf-8")


def live_page() -> str:
    """Return page.html, with the links to its scripts and its style replaced by their contents."""
    page = read_file("page.html")
    page = re.sub('<link rel="stylesheet" href="(.*?)">', lambda link: f"<style>{read_file(link[1])}</style>", page)
    return re.sub('<script src="(.*?)"></script>', lambda link: f"<script>{read_file(link[1])}</script>", page)


def security_policy(page: str) -> str:
    """Return the content security policy of a page that contains all its scripts and styles.

    The page may only run these scripts, apply these styles, and send requests to this server.
    """

    def hashes(tag: str) -> str:
        found = re.findall(f"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        sources = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in found]
        return " ".join(sources) or "'none'"

    return (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
