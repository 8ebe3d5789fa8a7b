"""What the user asked for, with every option resolved."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from pytest_evalarc.errors import DocumentError, UsageError, nearest
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.controls import AuditMode
from pytest_evalarc.model.plain import NAME_PATTERN
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.runs.parallel import MaxParallel

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pytest_evalarc.model.base import JsonObject

AUDITS: tuple[AuditMode, ...] = ("full", "fast")
ConfigurationChoice = Literal["both", "with", "without", "noise"]
CONFIGURATIONS: tuple[ConfigurationChoice, ...] = ("both", "with", "without", "noise")
LABEL_KEYS = ("client", "model", "settings", "key_env", "command")
DEFAULT_SANDBOX = "srt" if sys.platform == "darwin" else "bwrap"
RESERVED_LABELS = ("audit", "submission", "validate")
"""What stands beside the clients of a task, in node ids and folders of results."""
MOST_CHARACTERS = 100
"""Of a name, as the documents have it."""


@dataclass(frozen=True, kw_only=True)
class ClientLabel:
    """A client as it is called in paths, ids and options."""

    label: str
    kind: str
    """The registered client behind the label."""
    model: str | None = None
    settings: JsonObject = field(default_factory=dict)
    key_env: tuple[str, ...] = ()
    """The environment variables that carry the client's credentials; empty is the client's own
    choice."""
    command: tuple[str, ...] = ()
    """What starts the client; empty is the client's own choice."""


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
    image: str | None = None
    """What candidates of packs run in, in a sandbox of images; None is the sandbox's own."""
    deny_read: tuple[Path, ...] = ()
    keep: bool = False
    exploratory: bool = False
    """Whether clients run in their own sandboxes."""
    symposium: Path | None = None
    """The cargo-agents under evaluation; None is the one on PATH."""
    trust_local: bool = False
    audit: AuditMode = "full"
    seeds: tuple[int, ...] = ()
    """Of packs; empty is what each task says."""
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    """What the batch may use up, over all its tasks and clients; None is without end."""
    shard: Shard | None = None
    """The part of the plan that is run here; None is all of it."""
    max_parallel: MaxParallel = field(default_factory=MaxParallel)
    cache: Path | None = None
    """Folder of gradings that may stand for later ones; None: each is made anew."""
    jobs: int = 1
    """How many checks of one submission run at once in this process."""


def sandbox_name(request: Request) -> str:
    """Return the sandbox of graded code and embedded clients.

    `srt` is for sessions: where there is another, what is graded needs no model host and half a
    second more for each check.

    Raises:
        UsageError: `local` without `--evalarc-trust-local`.
    """
    if request.sandbox in ("auto", "srt"):
        return "local" if request.trust_local else DEFAULT_SANDBOX
    if request.sandbox == "local" and not request.trust_local:
        raise UsageError(
            "--evalarc-sandbox local",
            "would run submissions without any boundary",
            "add --evalarc-trust-local if you trust them",
        )
    return request.sandbox


def session_sandbox_name(request: Request, *, needs_network: bool) -> str | None:
    """Return the sandbox of a client's sessions; None is the one of graded code."""
    if request.exploratory:
        return "exploratory"
    if request.sandbox == "srt" or (request.sandbox != "local" and needs_network):
        return "srt"
    return None


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
        UsageError: There is no such label, it is no name, or its table is wrong.
    """
    if label not in tables and label not in known:
        hint = nearest(label, (*known, *tables))
        raise UsageError(f"--evalarc-client {label}", f"no client {label!r}", hint)
    where = f"pyproject.toml [tool.evalarc.clients.{label}]"
    _require_name(label, (*known, *tables), where=where)
    table = tables.get(label, {"client": label})
    for key in table:
        if key not in LABEL_KEYS:
            raise UsageError(f"{where} {key}", "unknown key", nearest(key, LABEL_KEYS))
    kind = _text(table, "client", where)
    if kind not in known:
        problem = "is missing" if kind is None else f"no client {kind!r}"
        raise UsageError(f"{where} client", problem, nearest(str(kind or label), known))
    own = table.get("settings", {})
    if not isinstance(own, Mapping):
        raise UsageError(f"{where} settings", f"is {own!r}", "write a table of values")
    return ClientLabel(
        label=label,
        kind=kind,
        model=_written("--evalarc-model", model) or _text(table, "model", where),
        settings={
            **{key: _json(f"{where} settings {key}", value) for key, value in own.items()},
            **{key: _json(f"--evalarc-model-setting {key}", settings[key]) for key in settings},
        },
        key_env=_names(table, "key_env", where),
        command=_words(table, "command", where),
    )


def _require_name(label: str, labels: Iterable[str], *, where: str) -> None:
    """Refuse a label that cannot be a folder and a part of a node id beside all others."""
    if not re.fullmatch(NAME_PATTERN, label) or len(label) > MOST_CHARACTERS:
        raise UsageError(
            where,
            f"{printable(label, limit=200)!r} is not a name",
            f"use up to {MOST_CHARACTERS} letters, digits, '_', '+' and '-'",
        )
    if label.casefold() in RESERVED_LABELS:
        raise UsageError(where, f"{label!r} has a meaning in node ids", "use another label")
    twins = {other for other in labels if other.casefold() == label.casefold()} - {label}
    for twin in sorted(twins):
        raise UsageError(where, f"differs from client {twin!r} in case alone", "rename one")


def _text(table: Mapping[str, object], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise UsageError(f"{where} {key}", f"is {value!r}", "write a text")
    return _written(f"{where} {key}", value)


def _names(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    """Return one text or several."""
    name = table.get(key)
    if isinstance(name, list):
        return tuple(_written(f"{where} {key}", word) or "" for word in _words(table, key, where))
    return tuple(text for text in (_text(table, key, where),) if text is not None)


def _words(table: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{where} {key}", f"is {value!r}", "write a list of texts")
    return tuple(value)


def _written(where: str, text: str | None) -> str | None:
    """Return a text that documents can hold."""
    if text is not None:
        _json(where, text)
    return text


def _json(where: str, value: object) -> JsonValue:
    """Return a value that is the same in every document.

    Raises:
        UsageError: It is none of JSON's, as a date, an infinity, or text that is not UTF-8.
    """
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        shown = printable(repr(value), limit=200)
        raise UsageError(where, f"is {shown}, which is no JSON value", "write another") from error
    return cast("JsonValue", value)


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
    except DocumentError:
        return key, value
