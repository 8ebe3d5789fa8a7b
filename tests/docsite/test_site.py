"""The site has every page in one of four groups, and builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docsite.links import OUTSIDE
from docsite.nav import Nav, groups
from docsite.reference import PAGES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {page.title: page.path for page in PAGES}


def test_groups_are_the_headings_of_the_index() -> None:
    """A page that is listed in the index stands on the site, and none is listed twice."""
    index = (
        "# P\n\n- [Not in a group](a.md)\n\n## Reference\n\n- [B](b.md): what it tells.\n"
        "- [A part](../README.md#part), which is no page.\n\n## Empty\n\nWords.\n\n"
        "## How-to\n\n- [D](d.md)\n\n### Write\n\n- [E](e.md)\n\n### Run\n\n- [F](f.md)\n\n"
        "## For contributors\n\n- [C](../CONTRIBUTING.md)\n"
    )

    assert groups(index, generated={"Every option": "reference/options.md"}) == [
        {"Home": "index.md"},
        {"Reference": [{"B": "b.md"}, {"Every option": "reference/options.md"}]},
        {"How-to": [{"D": "d.md"}, {"Write": [{"E": "e.md"}]}, {"Run": [{"F": "f.md"}]}]},
        {"For contributors": [{"C": "contributing.md"}]},
    ]


def test_every_page_stands_in_one_of_the_four_shelves() -> None:
    """A reader who wants to learn, to do, to look up or to understand goes to one of them."""
    nav = groups((DOCS / "index.md").read_text("utf-8"), generated=GENERATED)
    pages = list(_paths(nav))

    assert [name for entry in nav for name in entry][1:] == [
        "Tutorial",
        "How-to",
        "Reference",
        "Explanation",
        "For contributors",
    ]
    assert len(pages) == len(set(pages))
    examples = DOCS / "examples"
    written = {
        p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if examples not in p.parents
    }
    assert written | set(GENERATED.values()) <= set(pages)


def _paths(nav: Nav) -> Iterator[str]:
    for entry in nav:
        for found in entry.values():
            yield from [found] if isinstance(found, str) else _paths(found)


def build(site: Path, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    # Without `--quiet`: it hides warnings from `--strict` too, which then lets them pass.
    argv = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*argv, "--config-file", str(config), "--site-dir", str(site)],
        cwd=config.parent,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """A link or an anchor that leads nowhere is a warning, and so is a page nobody can read."""
    done = build(tmp_path)

    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert all((tmp_path / path).with_suffix("").is_dir() for path in GENERATED.values())
    assert all((tmp_path / path).with_suffix("").is_dir() for path in OUTSIDE.values())
    home = (tmp_path / "index.html").read_text("utf-8")
    assert not re.search(r'(?:src|rel="stylesheet" href)="https?://', home)


@pytest.mark.slow
def test_a_link_to_nowhere_fails_the_build(tmp_path: Path) -> None:
    """Without this the test above could be passing because nothing is looked at."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# P\n\n[gone](gone.md) and [part](#no-such-part)\n", "utf-8")
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    settings = settings.replace("hooks:\n  - docsite/hooks.py\n", "")
    (tmp_path / "mkdocs.yml").write_text(settings, "utf-8")

    done = build(tmp_path / "site", tmp_path / "mkdocs.yml")

    assert done.returncode == 1
    assert "'gone.md'" in done.stderr
    assert "'#no-such-part'" in done.stderr
