"""A model server that plays scripts, so that real clients run offline and predictably."""

from __future__ import annotations

from .conversation import Conversation
from .scripts import (
    Broken,
    Edit,
    Error,
    Fail,
    Hang,
    Offers,
    Quota,
    Read,
    Run,
    Say,
    Says,
    Script,
    Skill,
    Think,
    Turn,
    Usage,
    Write,
    slow,
    turn,
)
from .server import KEY, ModelServer, Request

__all__ = [
    "KEY",
    "Broken",
    "Conversation",
    "Edit",
    "Error",
    "Fail",
    "Hang",
    "ModelServer",
    "Offers",
    "Quota",
    "Read",
    "Request",
    "Run",
    "Say",
    "Says",
    "Script",
    "Skill",
    "Think",
    "Turn",
    "Usage",
    "Write",
    "slow",
    "turn",
]
