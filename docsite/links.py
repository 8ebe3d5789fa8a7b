"""Links as they work in the repository, made to work on the site."""

from __future__ import annotations

import posixpath
import re

OUTSIDE = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "changelog/README.md": "changelog-fragments.md",
}
"""Pages of the repository that lie outside docs/, each with its place on the site."""

ELSEWHERE = {"docs/schemas": "reference/documents.md", "LICENSE": "readme.md"}
"""Folders and files that the site tells of in a page of another name."""

_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)#\s]+)(#[^)\s]*)?(\))")
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def goal(target: str, page: str) -> str | None:
    """Return where on the site a link leads.

    Args:
        target: The link's target without its anchor, as it works in the repository.
        page: The page that it stands on, as the site has it.

    Returns:
        A path from the root of the site; None for what is in the repository alone.
    """
    in_repository = {path: source for source, path in OUTSIDE.items()}
    source = in_repository.get(page, f"docs/{page}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    shown = OUTSIDE.get(path) or ELSEWHERE.get(path)
    if shown is None and path.startswith("docs/") and posixpath.splitext(path)[1]:
        return path.removeprefix("docs/")
    return shown


def relinked(markdown: str, page: str) -> str:
    """Return a page whose links lead to where the site has their goals.

    A link to a folder or to code, which the site does not show, becomes the words that it had.
    """
    folder = posixpath.dirname(page) or "."

    def changed(found: re.Match[str]) -> str:
        before, target, anchor, after = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = goal(target, page)
        if path is None:
            return before.removeprefix("[").removesuffix("](")
        return f"{before}{posixpath.relpath(path, folder)}{anchor or ''}{after}"

    parts = _FENCE.split(markdown)
    # Every other part is a block of code, where brackets are no links.
    return "".join(part if n % 2 else _LINK.sub(changed, part) for n, part in enumerate(parts))
