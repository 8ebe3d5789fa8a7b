"""The controls that every audit has, by name, and how much of each is run."""

from __future__ import annotations

from typing import Literal

REFERENCE = "reference"
REFERENCE_REPEAT = "reference-repeat"
"""The reference graded once more: what differs is flaky."""
STARTER = "starter"

AuditMode = Literal["full", "fast"]
"""`fast` runs only the checks that decide whether a mutant is detected."""
