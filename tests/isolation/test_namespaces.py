"""Switches of the kernel that refuse namespaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evalarc.isolation.namespaces import Switch, refusing


def machine(folder: Path, settings: dict[str, str]) -> Path:
    """Lay out settings as a kernel shows them."""
    for name, value in settings.items():
        file = folder.joinpath(*name.split("."))
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")
    return folder


OPEN = {
    "user.max_user_namespaces": "96364",
    "kernel.unprivileged_userns_clone": "1",
    "kernel.apparmor_restrict_unprivileged_userns": "0",
}


@pytest.mark.parametrize("settings", [OPEN, {}])
@pytest.mark.parametrize("is_root", [True, False])
def test_an_open_kernel_and_one_without_switches_refuse_nothing(
    tmp_path: Path, settings: dict[str, str], *, is_root: bool
) -> None:
    """Most of these switches are one distribution's own."""
    assert refusing(is_root=is_root, settings=machine(tmp_path, settings)) == ()


@pytest.mark.parametrize(
    ("switch", "stops_root"),
    [
        (Switch("user.max_user_namespaces", "0", "15000"), True),
        (Switch("user.max_net_namespaces", "0", "15000"), True),
        (Switch("kernel.unprivileged_userns_clone", "0", "1"), False),
        (Switch("kernel.apparmor_restrict_unprivileged_userns", "1", "0"), False),
    ],
)
def test_each_switch_is_told_to_whom_it_stops(
    tmp_path: Path, switch: Switch, *, stops_root: bool
) -> None:
    """A switch that lets root through is not why root cannot start a sandbox."""
    settings = machine(tmp_path, {**OPEN, switch.name: switch.refuses})

    assert refusing(is_root=False, settings=settings) == (switch,)
    assert refusing(is_root=True, settings=settings) == ((switch,) if stops_root else ())
