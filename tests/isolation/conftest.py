"""An engine with an image, made once for the whole test session."""

from __future__ import annotations

import os

import pytest

from pytest_evalarc.isolation.engine import Engine
from tests.isolation.images import IMAGE, shared_engine


@pytest.fixture(scope="session")
def podman_environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of a podman that has the image and nothing of the machine's."""
    base = tmp_path_factory.getbasetemp()
    # Workers have a folder each, beside each other.
    return shared_engine(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@pytest.fixture
def podman(podman_environ: dict[str, str]) -> Engine:
    return Engine("podman", IMAGE, environ=podman_environ)
