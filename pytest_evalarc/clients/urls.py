"""Base URLs of model APIs, as the tables of clients give them."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator


def host_of(url: str) -> str:
    """Return host and port of a URL, as `Needs.domains` takes them; the scheme's port is left out.

    Args:
        url: What `BaseUrl` accepts.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return shown if parts.port is None else f"{shown}:{parts.port}"


def _checked(value: str) -> str:
    parts = _parts(value)
    if parts is None or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("write a URL as https://gateway.example.com/v1, without user or query")
    return value


def _parts(value: str) -> SplitResult | None:
    try:
        parts = urlsplit(value)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return None
    is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and has_port
    return parts if is_url and value.isascii() and value.isprintable() else None


BaseUrl = Annotated[str, AfterValidator(_checked)]
"""An absolute URL of HTTP or HTTPS, without user, query and fragment."""
