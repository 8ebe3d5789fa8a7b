"""Words that options choose from, apart from what they choose: help must not wait for that."""

from __future__ import annotations

FAIL_ON = ("regressed", "less-reliable", "removed", "never")
"""Changes that give `compare` the status 1."""

FORMATS = ("csv", "long-json", "mutation-testing", "skill-creator")
"""What `export` writes."""
