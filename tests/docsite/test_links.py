"""Links work in the repository and on the site, though files lie in other places there."""

from __future__ import annotations

import pytest

from docsite.links import relinked


@pytest.mark.parametrize(
    ("page", "written", "on_the_site"),
    [
        ("index.md", "[a](../README.md#options)", "[a](readme.md#options)"),
        ("index.md", "[a](../benchmarks/README.md)", "[a](benchmarks.md)"),
        ("reference/clients.md", "[a](../environment.md)", "[a](../environment.md)"),
        ("readme.md", "[a](docs/packs.md#their-audit)", "[a](packs.md#their-audit)"),
        ("readme.md", "[a](CHANGELOG.md)", "[a](changelog.md)"),
        ("benchmarks.md", "[a](../docs/scale.md)", "[a](scale.md)"),
        ("results.md", "[a](schemas)", "[a](reference/documents.md)"),
        ("packs.md", "[a](examples/own-pack/pack.py)", "[a](examples/own-pack/pack.py)"),
        ("readme.md", "see [the task](docs/examples/first-task).", "see the task."),
        ("security.md", "[`a.py::b`](../tests/a.py)", "`a.py::b`"),
        ("index.md", "[a](https://example.org/b)", "[a](https://example.org/b)"),
        ("index.md", "[a](#below)", "[a](#below)"),
        ("readme.md", "![shot](docs/pictures/report.png)", "![shot](pictures/report.png)"),
    ],
)
def test_a_link_leads_to_where_the_site_has_its_goal(
    page: str, written: str, on_the_site: str
) -> None:
    """What is right on one of the two would be dead on the other."""
    assert relinked(written, page) == on_the_site


def test_code_is_left_as_it_is() -> None:
    """Brackets in code are no links, and a reader copies every character."""
    text = "```toml\nx = [a](docs/b)\n```\n[a](docs/b.md)\n"

    assert relinked(text, "readme.md") == "```toml\nx = [a](docs/b)\n```\n[a](b.md)\n"
