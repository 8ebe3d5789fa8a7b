"""YAML of other programs, read by PyYAML where it is installed."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_evalarc.errors import DocumentError, UsageError
from pytest_evalarc.files.text import printable


def read_yaml(text: str, *, where: str) -> Mapping[str, object]:
    """Return the mapping that a YAML text holds; an empty one for a text without content.

    Args:
        text: Plain data; a tag that would make an object of it is refused.
        where: Its path, for a message.

    Raises:
        DocumentError: It is no YAML, or no mapping.
        UsageError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        problem = "is read with PyYAML, which is not installed"
        hint = "install it with `pip install 'pytest-evalarc[yaml]'`"
        raise UsageError(where, problem, hint) from error
    try:
        data = yaml.safe_load(text)
    # A date that is none is a ValueError, and brackets can be deeper than the stack.
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = f"is no YAML: {printable(' '.join(str(error).split()), limit=200)}"
        raise DocumentError(where, problem, "correct it") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise DocumentError(where, "is no YAML mapping", "write keys and values")
    return {str(key): value for key, value in data.items()}


def front_matter(text: str, *, where: str) -> tuple[Mapping[str, object], str]:
    """Return the YAML between two lines of `---` at the start of a text, and what follows.

    A text that only begins with such a line has no front matter.

    Raises:
        DocumentError: What stands between the lines is no YAML mapping.
        UsageError: PyYAML is not installed.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    ends = [number for number, line in enumerate(lines) if line.rstrip() == "---"]
    if not lines or len(ends) < 2 or ends[0] != 0:
        return {}, text
    facts = read_yaml("\n".join(lines[1 : ends[1]]), where=where)
    return facts, "\n".join(lines[ends[1] + 1 :]).strip() + "\n"
