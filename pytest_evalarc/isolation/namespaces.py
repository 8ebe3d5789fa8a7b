"""Switches of the kernel that keep a user from making namespaces, which sandboxes are made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SETTINGS = Path("/proc/sys")
KINDS = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
"""Of namespaces, as the kernel names their bounds."""


class Switch(NamedTuple):
    """A setting of the kernel as `sysctl` names it, the value that refuses, and one that allows."""

    name: str
    refuses: str
    allows: str


_FOR_ALL = tuple(Switch(f"user.max_{kind}_namespaces", "0", "15000") for kind in KINDS)
_FOR_THE_UNPRIVILEGED = (
    Switch("kernel.unprivileged_userns_clone", "0", "1"),
    Switch("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
)


def refusing(*, is_root: bool, settings: Path = SETTINGS) -> tuple[Switch, ...]:
    """Return the switches that refuse namespaces on this machine.

    A sandbox may be let through all the same, as by a profile of its own, so these explain why
    one does not start and do not foretell it.

    Args:
        is_root: Whether whoever starts it is root, whom some switches let through.
        settings: The folder that the kernel shows its settings in.
    """

    def refuse(switches: tuple[Switch, ...]) -> Iterator[Switch]:
        for switch in switches:
            try:
                value = settings.joinpath(*switch.name.split(".")).read_text("utf-8")
            except OSError:
                # Not every kernel has every switch.
                continue
            if value.strip() == switch.refuses:
                yield switch

    return tuple(refuse(_FOR_ALL if is_root else _FOR_ALL + _FOR_THE_UNPRIVILEGED))
