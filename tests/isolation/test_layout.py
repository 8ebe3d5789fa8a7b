from __future__ import annotations

from pathlib import Path

from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.isolation.layout import RunLayout


def test_the_folders_of_a_trial_make_a_policy() -> None:
    """What a client may write lies beside what it may only read, never around it."""
    layout = RunLayout(root=Path("/run-folder"))

    policy = Policy(read=(layout.root,), write=layout.writable)

    for folder in (layout.fixtures, layout.bin, layout.registry):
        assert not any(folder.is_relative_to(writable) for writable in policy.write)
