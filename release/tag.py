"""`python -m release.tag TAG FILE`: is it the tag of the version at hand, and what is new?"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from release.changelog import ROOT, fragments, release_section


def version() -> str:
    """Return the version that the package tells, without importing it or what it needs."""
    text = (ROOT / "pytest_evalarc" / "__init__.py").read_text("utf-8")
    found: list[str] = re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    return found[0]


def notes(tag: str) -> str:
    """Return the changes of the version that a tag names.

    Raises:
        ValueError: It names another version than the package, or its changes are not collected.
    """
    if tag != f"v{version()}":
        raise ValueError(f"the tag {tag} is not that of version {version()}; set one of the two")
    left = fragments(ROOT / "changelog")
    if left:
        raise ValueError(f"changelog/ still holds {len(left)} fragments; collect them first")
    return release_section((ROOT / "CHANGELOG.md").read_text("utf-8"), version())


def main(arguments: Sequence[str]) -> int:
    """Write the changes of a tag into a file, or say why the tag is none to release."""
    tag, place = arguments
    try:
        text = notes(tag)
    except ValueError as error:
        print(f"release.tag: {error}", file=sys.stderr)
        return 1
    Path(place).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
