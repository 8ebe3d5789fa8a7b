"""Facts of the machine that figures depend on, and none that says whose it is."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

DISTRIBUTIONS = ("pytest-evalarc", "pytest", "pytest-xdist", "pydantic")


def machine_facts() -> dict[str, str]:
    """Return date, cores, kernel and versions, each by its name."""
    from pytest_evalarc.isolation.host import find_bwrap

    bwrap = find_bwrap()
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": str(len(os.sched_getaffinity(0))),
        "kernel": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    facts |= {name: version(name) for name in DISTRIBUTIONS}
    return facts | {"bubblewrap": bwrap.version if bwrap else "none"}


def load() -> str:
    """Return the load averages of one, five and fifteen minutes."""
    return ", ".join(f"{average:.1f}" for average in os.getloadavg())
