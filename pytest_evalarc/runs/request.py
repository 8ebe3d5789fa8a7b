"""What the user asked for, with every option resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.files.strict import loads
from pytest_evalarc.model.base import JsonObject

ConfigurationChoice = Literal["both", "with", "without", "noise"]
CONFIGURATIONS: tuple[ConfigurationChoice, ...] = ("both", "with", "without", "noise")
LABEL_KEYS = ("client", "model", "settings", "key_env", "command")


@dataclass(frozen=True, kw_only=True)
class ClientLabel:
    """A client as it is called in paths, ids and options."""

    label: str
    kind: str
    """The registered client behind the label."""
    model: str | None = None
    settings: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Request:
    """One session's wishes; the same in every process of it."""

    project: Path
    """The project root, which no trial may read."""
    tasks: Path
    batch: str
    eval_root: Path
    results: Path
    clients: tuple[ClientLabel, ...] = ()
    """Clients that trials are planned for."""
    trials: int = 1
    configuration: ConfigurationChoice = "both"
    treatment: str | None = None
    """None: `skills` for a task that names plugins."""
    sandbox: str = "auto"
    deny_read: tuple[Path, ...] = ()
    keep: bool = False
    trust_local: bool = False
    jobs: int = 1
    """How many checks of one submission run at once in this process."""


def client_label(
    label: str,
    tables: Mapping[str, Mapping[str, object]],
    *,
    known: tuple[str, ...],
    model: str | None,
    settings: Mapping[str, object],
) -> ClientLabel:
    """Return the client behind a label: a table of the project's, or a registered client.

    Args:
        label: What `--evalarc-client` named.
        tables: `[tool.evalarc.clients.<label>]` of pyproject.toml.
        known: Registered clients.
        model: `--evalarc-model`; overrides the table's.
        settings: `--evalarc-model-setting`; each overrides the table's.

    Raises:
        UsageError: There is no such label, or its table is wrong.
    """
    table = tables.get(label)
    if table is None and label not in known:
        hint = nearest(label, (*known, *tables))
        raise UsageError(f"--evalarc-client {label}", f"no client {label!r}", hint)
    where = f"pyproject.toml [tool.evalarc.clients.{label}]"
    table = {"client": label} if table is None else table
    for key in table:
        if key not in LABEL_KEYS:
            raise UsageError(f"{where} {key}", "unknown key", nearest(key, LABEL_KEYS))
    kind = table.get("client")
    if kind not in known:
        hint = nearest(str(kind), known)
        raise UsageError(f"{where} client", f"no client {kind!r}", hint)
    own = table.get("settings", {})
    if not isinstance(own, Mapping):
        raise UsageError(f"{where} settings", f"is {own!r}", "write a table of values")
    merged = cast("JsonObject", {**own, **settings})
    chosen = model if model is not None else table.get("model")
    return ClientLabel(
        label=label,
        kind=str(kind),
        model=None if chosen is None else str(chosen),
        settings=merged,
    )


def setting(text: str) -> tuple[str, object]:
    """Return key and value of one `--evalarc-model-setting KEY=VALUE`.

    The value is JSON where it is JSON, and text otherwise.

    Raises:
        UsageError: There is no `=`, or nothing before it.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(
            f"--evalarc-model-setting {text}", "is not KEY=VALUE", "write it as temperature=0.2"
        )
    try:
        return key, loads(value, where=key)
    except Exception:
        return key, value
