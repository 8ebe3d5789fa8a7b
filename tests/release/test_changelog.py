"""Fragments become a section that tells each change once, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.changelog import (
    KINDS,
    ROOT,
    UNRELEASED,
    Fragment,
    fragments,
    release_section,
    section,
    with_release,
)

CHANGES = [
    Fragment("a", "bugfix", "A torn line is told.\nIt was dropped."),
    Fragment("b", "feature", "Packs can be listed."),
]
SECTION = """\
## 0.2.0 (2026-12-01)

### Added

- Packs can be listed.

### Fixed

- A torn line is told.
  It was dropped.
"""


def test_a_section_tells_each_change_below_its_kind() -> None:
    """What is new is read first, and a text of several sentences stays one item."""
    assert section("0.2.0", "2026-12-01", CHANGES) == SECTION


def test_a_release_stands_above_older_ones_and_is_found_again() -> None:
    """The release's own page shows this section, and no other version's."""
    older = f"# Changelog\n\n{UNRELEASED}\n## 0.1.0 (2026-11-01)\n\nThe first.\n"

    told = with_release(older, SECTION)

    assert told.index("## Unreleased") < told.index("## 0.2.0") < told.index("## 0.1.0")
    assert release_section(told, "0.2.0") == SECTION.partition("\n\n")[2]
    assert release_section(told, "0.1.0") == "The first.\n"
    with pytest.raises(ValueError, match=r"tells nothing of 0\.3\.0"):
        release_section(told, "0.3.0")


def test_a_file_of_no_known_kind_stops_the_release(tmp_path: Path) -> None:
    """Left out in silence, a change would never be told."""
    (tmp_path / "README.md").write_text("How.", "utf-8")
    (tmp_path / "a.feature.md").write_text("One can.\n", "utf-8")
    assert fragments(tmp_path) == [Fragment("a", "feature", "One can.")]

    (tmp_path / "b.fix.md").write_text("No more.", "utf-8")
    with pytest.raises(ValueError, match=r"b\.fix\.md: 'fix' is no kind"):
        fragments(tmp_path)


def test_what_is_unreleased_now_can_be_released() -> None:
    """The day of a release is too late to learn that the place for it was edited away."""
    changes = fragments(ROOT / "changelog")
    told = with_release(
        (ROOT / "CHANGELOG.md").read_text("utf-8"), section("9.9.9", "2030-01-01", changes)
    )

    assert changes
    assert all(change.text.splitlines()[0] in release_section(told, "9.9.9") for change in changes)


def test_the_page_on_fragments_lists_every_kind() -> None:
    """Who writes one looks there."""
    text = (ROOT / "changelog" / "README.md").read_text("utf-8")

    assert [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")] == [*KINDS]
