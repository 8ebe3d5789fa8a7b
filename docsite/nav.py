"""The groups of the site, read from the headings and links of docs/index.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from docsite.links import goal

Nav: TypeAlias = "list[dict[str, str | Nav]]"

HOME = "index.md"
REFERENCE = "Reference"


def groups(index: str, *, generated: Mapping[str, str]) -> Nav:
    """Return the navigation of the site.

    Args:
        index: The text of docs/index.md, whose second-level headings are the groups, and whose
            third-level headings are groups within them.
        generated: Pages that the code tells, path by title; they follow in the reference.

    Returns:
        One entry for the index itself and one for each group, in their order.
    """
    nav: Nav = [{"Home": HOME}]
    for heading, text in _sections(index, level=2):
        pages = _linked(text.partition("\n### ")[0])
        pages += [{inner: _linked(below)} for inner, below in _sections(text, level=3)]
        if heading == REFERENCE:
            pages += [{title: path} for title, path in generated.items()]
        if pages:
            nav.append({heading: pages})
    return nav


def _sections(text: str, *, level: int) -> list[tuple[str, str]]:
    """Return each heading of a level with what stands below it."""
    parts = re.split(rf"^{'#' * level} (.+)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _linked(text: str) -> Nav:
    """Return each page that a list item begins with; a link to a part of a page is none."""
    found = re.findall(r"^- \[([^\]]+)\]\(([^)#\s]+\.md)\)", text, re.MULTILINE)
    return [{title: goal(target, HOME) or target} for title, target in found]
