"""Every agent of the corpus does its harm where nothing protects the world, and none in a trial."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversarial.corpus import Attack, attacks
from tests.adversarial.world import BEGUN, World
from tests.needs import needs_bwrap, needs_mount

pytestmark = pytest.mark.slow


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return what is around a session."""
    with World.around(tmp_path / "world") as world:
        yield world


each = pytest.mark.parametrize(
    "attack",
    [
        pytest.param(one, id=one.name, marks=[needs_mount] if one.needs == "mount" else [])
        for one in attacks("session")
    ],
)


@each
def test_an_unprotected_world_is_harmed(attack: Attack, world: World) -> None:
    """An attack that never wins anywhere shows nothing about a defence."""
    if attack.needs == "root" and os.geteuid() != 0:
        pytest.skip("what only root can do harms nobody's world but root's")

    assert attack.effect in world.effects(world.unprotected(attack))


@needs_bwrap
@each
def test_a_trial_harms_nothing(attack: Attack, world: World) -> None:
    """Neither in the way it means to nor in any other; and it is counted, with what it was."""
    left = world.ours(attack)

    assert world.effects(left) == set()
    assert left.told == attack.seen
    # Of what is too deep to be taken in, nothing is kept.
    assert (left.kept / BEGUN).exists() or not left.kept.exists()
