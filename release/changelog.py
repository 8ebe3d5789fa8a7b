"""`python -m release.changelog VERSION DATE`: fragments become a section of CHANGELOG.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

KINDS = {
    "feature": "Added",
    "bugfix": "Fixed",
    "deprecation": "Deprecated",
    "removal": "Removed",
    "doc": "Documented",
}
"""Each kind of fragment with the heading that it is told under, in the order of a section."""

UNRELEASED = "## Unreleased\n\nSee [changelog/](changelog/README.md).\n"


class Fragment(NamedTuple):
    """One change in a user's words."""

    slug: str
    kind: str
    text: str


def fragments(folder: Path) -> list[Fragment]:
    """Return every fragment of a folder, by its slug.

    Raises:
        ValueError: A file is no fragment of a known kind.
    """
    found = []
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        slug, _, kind = path.stem.partition(".")
        if kind not in KINDS:
            raise ValueError(f"{path}: {kind!r} is no kind; it is one of {', '.join(KINDS)}")
        found.append(Fragment(slug, kind, path.read_text("utf-8").strip()))
    return found


def section(version: str, date: str, changes: Iterable[Fragment]) -> str:
    """Return a release's section: a heading for each kind, and below it each change."""
    changes = list(changes)
    parts = [f"## {version} ({date})"]
    for kind, heading in KINDS.items():
        texts = [change.text for change in changes if change.kind == kind]
        if texts:
            parts.append(f"### {heading}")
            parts += [_item(text) for text in texts]
    return "\n\n".join(parts) + "\n"


def _item(text: str) -> str:
    first, *rest = text.splitlines()
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in rest)])


def with_release(changelog: str, release: str) -> str:
    """Return a changelog with a section put right below what is unreleased.

    Raises:
        ValueError: The changelog has no such place.
    """
    before, found, after = changelog.partition(UNRELEASED)
    if not found:
        raise ValueError("CHANGELOG.md has lost its section on what is unreleased; put it back")
    return f"{before}{found}\n{release}{after}"


def release_section(changelog: str, version: str) -> str:
    """Return what stands in a changelog on a version, without its heading.

    Raises:
        ValueError: The version has no section.
    """
    _, found, rest = changelog.partition(f"\n## {version} (")
    if not found:
        raise ValueError(f"CHANGELOG.md tells nothing of {version}; collect its fragments first")
    _, _, body = rest.partition("\n")
    return body.partition("\n## ")[0].strip() + "\n"


def main(arguments: Sequence[str]) -> int:
    """Move every fragment into CHANGELOG.md, under a version and its date."""
    version, date = arguments
    changelog, folder = ROOT / "CHANGELOG.md", ROOT / "changelog"
    changes = fragments(folder)
    text = with_release(changelog.read_text("utf-8"), section(version, date, changes))
    changelog.write_text(text, "utf-8")
    for change in changes:
        (folder / f"{change.slug}.{change.kind}.md").unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
