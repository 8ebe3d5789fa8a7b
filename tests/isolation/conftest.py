"""An engine with an image, made once for the whole test session."""

from __future__ import annotations

import pytest

from pytest_evalarc.isolation.engine import Engine
from tests.isolation.images import IMAGE, podman_environ

__all__ = ["podman", "podman_environ"]


@pytest.fixture
def podman(podman_environ: dict[str, str]) -> Engine:
    return Engine("podman", IMAGE, environ=podman_environ)
