"""What the trials of two configurations show, in one word."""

from __future__ import annotations

from enum import StrEnum


class Shown(StrEnum):
    """Whether a difference is more than chance makes of it."""

    HELPED = "helped"
    HARMED = "harmed"
    NO_DIFFERENCE = "no_difference_shown"
    """Which is not the same as no difference."""
    TOO_FEW = "too_few_trials_to_tell"
