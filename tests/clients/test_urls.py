from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from pytest_evalarc.clients.urls import BaseUrl, host_of

URL = TypeAdapter(BaseUrl)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.example.com/v1", "api.example.com"),
        ("https://api.example.com", "api.example.com"),
        ("HTTPS://API.Example.COM:8443/", "api.example.com:8443"),
        ("http://127.0.0.1:8080/s/a/v1", "127.0.0.1:8080"),
        ("http://[::1]:8080", "[::1]:8080"),
    ],
)
def test_a_sandbox_is_told_the_host_of_a_url(url: str, host: str) -> None:
    """What is written once need not be said a second time as a domain."""
    assert host_of(URL.validate_python(url)) == host


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.com",
        "ftp://api.example.com",
        "https://",
        "https://user:key@api.example.com",
        "https://api.example.com?key=1",
        "https://api.example.com#x",
        "https://api.example.com:0",
        "https://api.example.com:99999",
        "https://api.example.com:x",
        "https://api.exämple.com",
        "https://api.example.com/\n",
        "https://[::1",
    ],
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    """A key in it would be stored, and a half of it would lead elsewhere."""
    with pytest.raises(ValidationError, match=r"write a URL as https://gateway\.example\.com/v1"):
        URL.validate_python(url)
