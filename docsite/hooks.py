"""What mkdocs calls while it builds the site; everything that is decided lies beside this file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    # mkdocs imports this file by its path, and the modules beside it are not installed.
    sys.path.insert(0, str(ROOT))

from mkdocs.structure.files import File  # noqa: E402

from docsite.links import OUTSIDE, relinked  # noqa: E402
from docsite.nav import groups  # noqa: E402
from docsite.reference import PAGES  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the site the groups of the index, and what is generated beside them."""
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    config.nav = groups(index, generated={page.title: page.path for page in PAGES})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that the code tells, and those of the repository that the index links to."""
    for page in PAGES:
        files.append(File.generated(config, page.path, content=page.write()))
    for source, path in OUTSIDE.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs calls it by these names.
    """Let links that leave docs/ lead to where the site has their goals."""
    return relinked(markdown, page.file.src_uri)
