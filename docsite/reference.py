"""Reference pages that the code tells: written anew for each build of the site, never by hand."""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_evalarc import hookspecs
from pytest_evalarc.cli.main import command_parsers
from pytest_evalarc.cli.schemas import DOCUMENTS, schema
from pytest_evalarc.plugin import fixtures
from pytest_evalarc.plugin.options import OPTIONS, Option

ROOT = Path(__file__).parent.parent
WIDTH = 96
"""Characters of a line of a command's help."""


class Page(NamedTuple):
    """One generated page."""

    title: str
    path: str
    write: Callable[[], str]
    """Returns its text."""


# Options.


def options() -> str:
    """Return the page on every option of pytest, with its ini twin."""
    lines = [
        "# Every option",
        "What the command line says wins over the ini file.",
        "",
        "| option | ini key | ini type | meaning |",
        "|---|---|---|---|",
        *(_row(_spelled(o), f"`{o.key}`", o.kind, _cell(o.help)) for o in OPTIONS),
    ]
    return _joined(lines)


def _spelled(option: Option) -> str:
    argument = option.metavar or " or ".join(option.choices or ())
    return f"`{option.flag} {argument}`" if argument else f"`{option.flag}`"


# Commands.


def commands() -> str:
    """Return the page on every console command, as its help tells it."""
    lines = ["# Every command"]
    for name, parser in command_parsers().items():
        parser.formatter_class = functools.partial(argparse.HelpFormatter, width=WIDTH)
        lines += ["", f"## {name}", "", "```text", parser.format_help().rstrip(), "```"]
    return _joined(lines)


# Hooks and fixtures.


def hooks() -> str:
    """Return the page on every hook: its signature and what it must answer."""
    lines = ["# Every hook", _text(hookspecs)]
    for name, hook in _own_functions(hookspecs, "pytest_evalarc_"):
        lines += ["", f"## {name}", "", *_signature(name, hook), "", _text(hook)]
    return _joined(lines)


def fixture_page() -> str:
    """Return the page on every fixture: its scope and what it gives."""
    scopes = _scopes(inspect.getsource(fixtures))
    lines = ["# Every fixture", "A conftest may override any of them."]
    for name, scope in scopes.items():
        fixture = getattr(fixtures, name)
        lines += ["", f"## {name}", "", f"Scope: `{scope}`.", "", _text(fixture)]
    return _joined(lines)


def _scopes(source: str) -> dict[str, str]:
    """Return the scope of each fixture of a module, by its name."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("evalarc_"):
            (call,) = node.decorator_list
            found[node.name] = re.findall(r"scope='(\w+)'", ast.unparse(call))[0]
    return found


def _own_functions(module: object, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if name.startswith(prefix) and inspect.isfunction(value):
            yield name, value


# Names to import.


def public_names() -> str:
    """Return the page on every name that may be imported, with its own words."""
    listed = (ROOT / "docs" / "public-api.md").read_text("utf-8")
    names = re.findall(r"^\| `(pytest_evalarc\.[\w.]+)` \|", listed, re.MULTILINE)
    lines = [
        "# Every public name",
        "How long they stay is told in [Public names](../public-api.md).",
    ]
    for name in names:
        module, _, attribute = name.rpartition(".")
        value = getattr(importlib.import_module(module), attribute)
        lines += ["", f"## {attribute}", "", f"From `{module}`.", ""]
        lines += [*_own_signature(attribute, value), "", _text(value)]
        lines += [line for method in _methods(value) for line in method]
    return _joined(lines)


def _own_signature(name: str, value: Any) -> list[str]:  # noqa: ANN401 - any public value
    return _signature(name, value) if inspect.isfunction(value) else []


def _methods(value: Any) -> Iterator[list[str]]:  # noqa: ANN401 - any public value
    """Yield heading, signature and words of each public method that a class defines itself."""
    if not inspect.isclass(value) or not value.__module__.startswith("pytest_evalarc"):
        return
    for name, method in vars(value).items():
        if not name.startswith("_") and inspect.isfunction(method):
            heading = f"### {value.__name__}.{name}"
            yield ["", heading, "", *_signature(name, method), "", _text(method)]


# Documents.


def documents() -> str:
    """Return the page on every document that is kept, with each of its keys."""
    lines = [
        "# Every document",
        "A document is JSON with these keys; the JSON Schemas lie in `docs/schemas`.",
    ]
    told: dict[str, Mapping[str, Any]] = {}
    for name, model in DOCUMENTS.items():
        found = schema(model)
        told |= found.get("$defs", {})  # type: ignore[arg-type]
        lines += ["", f"## {name}", "", *_object(found)]
    lines += ["", "## Parts of documents"]
    for part in sorted(told):
        lines += ["", f"### {part}", "", *_object(told[part])]
    return _joined(lines)


def _object(found: Mapping[str, Any]) -> list[str]:
    """Return what to say of one schema: its words, and a table of its keys or its values."""
    lines = [_safe(inspect.cleandoc(found.get("description", "")))]
    if "properties" in found:
        rows = [
            _row(f"`{key}`", kind(value), _cell(value.get("description", "")))
            for key, value in found["properties"].items()
        ]
        lines += ["", "| key | type | meaning |", "|---|---|---|", *rows]
    elif "enum" in found:
        lines += ["", "One of " + ", ".join(f"`{value}`" for value in found["enum"]) + "."]
    return lines


def kind(found: Mapping[str, Any]) -> str:
    """Return what a schema allows, in words; parts of documents are links to where they stand."""
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in found:
        return " or ".join(dict.fromkeys(kind(one) for one in found["anyOf"]))
    if "enum" in found or "const" in found:
        values = found.get("enum") or [found["const"]]
        return " or ".join(f"`{value}`" for value in values)
    if found.get("type") == "array":
        return f"list of {kind(found['items'])}" if "items" in found else "list"
    if found.get("type") == "object":
        values = found.get("additionalProperties")
        return f"table of {kind(values)}" if isinstance(values, dict) else "table"
    return str(found.get("type", "any value"))


# Words.


def _signature(name: str, function: Callable[..., Any]) -> list[str]:
    # A default that is a function shows where it lies in memory, which is news to nobody.
    words = re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", str(inspect.signature(function)))
    return ["```python", f"def {name}{words}", "```"]


def _text(value: object) -> str:
    return _safe(inspect.getdoc(value) or "")


def _safe(text: str) -> str:
    """Return a docstring as Markdown; its sections, which are indented, keep their lines."""
    sections = re.sub(r"^(\w+):\n((?:(?: .*)?\n?)+)", _section, text, flags=re.MULTILINE)
    return sections.replace("<", "&lt;")


def _section(found: re.Match[str]) -> str:
    items = re.split(r"\n(?=    \S)", found[2].rstrip())
    words = [re.sub(r"\s+", " ", item).strip() for item in items]
    return f"\n**{found[1]}:**\n\n" + "\n".join(f"- {item}" for item in words) + "\n\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", r"\|").replace("<", "&lt;")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _joined(lines: list[str]) -> str:
    head, *rest = lines
    return "\n".join([head, "", "<!-- Written by docsite/reference.py. -->", "", *rest]) + "\n"


PAGES = (
    Page("Every option", "reference/options.md", options),
    Page("Every command", "reference/commands.md", commands),
    Page("Every document", "reference/documents.md", documents),
    Page("Every hook", "reference/hooks.md", hooks),
    Page("Every fixture", "reference/fixtures.md", fixture_page),
    Page("Every public name", "reference/public-names.md", public_names),
)
