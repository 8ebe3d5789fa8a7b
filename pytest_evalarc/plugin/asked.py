"""What the options ask for, as a request: every wrong value told in one sentence."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.controls import AuditMode
from pytest_evalarc.model.plain import NAME_PATTERN
from pytest_evalarc.model.planned import Shard
from pytest_evalarc.plugin.options import Options
from pytest_evalarc.registry.registry import Registry
from pytest_evalarc.runs.folders import default_eval_root, gradings_folder
from pytest_evalarc.runs.parallel import MaxParallel, max_parallel
from pytest_evalarc.runs.request import (
    AUDITS,
    CONFIGURATIONS,
    ClientLabel,
    ConfigurationChoice,
    Request,
    client_label,
    setting,
)

if TYPE_CHECKING:
    from pytest_evalarc.clients.protocol import Client

MOST_SHARDS = 100_000


def as_request(
    config: pytest.Config, options: Options, registry: Registry, *, tasks: Path, batch: str
) -> Request:
    """Return what a session asks for.

    Raises:
        UsageError: An option is wrong, or names what is not there.
    """
    return Request(
        project=config.rootpath,
        tasks=tasks,
        batch=_batch_name(batch),
        eval_root=_real(options.path("root", default_eval_root())),
        results=_real(options.path("results", config.rootpath / "results")),
        clients=tuple(
            as_client(label, config, options, registry)
            for label in dict.fromkeys(options.texts("client"))
        ),
        trials=_whole_number("trials", options.text("trials") or "1"),
        configuration=_configuration(options.text("configuration") or "both"),
        treatment=_treatment(options.text("treatment"), registry),
        sandbox=_sandbox(options.text("sandbox") or "auto", registry),
        image=options.text("image"),
        deny_read=tuple(_real(path) for path in _denied(options)),
        keep=options.flag("keep"),
        exploratory=_exploratory(options),
        symposium=_program(options),
        trust_local=options.flag("trust-local"),
        audit=_audit(options.text("audit") or "full"),
        seeds=_seeds(options.texts("seeds")),
        max_tokens=_tokens(options.text("max-tokens")),
        max_cost_usd=_dollars(options.text("max-cost-usd")),
        shard=_shard(options.text("shard")),
        max_parallel=_max_parallel(options.text("max-parallel"), config.rootpath, registry),
        cache=_real(gradings_folder()) if options.flag("cache") else None,
        jobs=_jobs(),
    )


def as_client(
    label: str, config: pytest.Config, options: Options, registry: Registry
) -> ClientLabel:
    """Return the client behind a label, with the model and the settings that the options give.

    Raises:
        UsageError: There is no such label, its table is wrong, or a setting is.
    """
    found = client_label(
        label,
        _client_tables(config.rootpath),
        known=registry.clients.names,
        model=options.text("model"),
        settings=dict(setting(text) for text in options.texts("model-setting")),
    )
    # Asked for its mistakes alone: the client itself is made again from the plan.
    client = registry.clients.get(found.kind).configured(
        found.label,
        command=found.command,
        key_env=found.key_env,
        model=found.model,
        settings=found.settings,
    )
    _require_cost(client, label, options)
    return found


def _require_cost(client: Client, label: str, options: Options) -> None:
    """Refuse a budget of money for a client whose sessions never tell what they cost.

    One that a project has written down for its agents does not keep the embedded clients, which
    cost nothing, from being run.
    """
    is_typed = options.on_command_line("max-cost-usd") is not None
    if options.text("max-cost-usd") is None or client.needs.reports_cost:
        return
    if is_typed or not client.embedded:
        raise UsageError(
            "--evalarc-max-cost-usd",
            f"client {label} does not report what its sessions cost",
            "give --evalarc-max-tokens in its place, or name another client",
        )


def _client_tables(root: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return `[tool.evalarc.clients]` of the project's pyproject.toml."""
    path = root / "pyproject.toml"
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(str(path), f"is not TOML: {error}", "mend it") from error
    tables = data.get("tool", {}).get("evalarc", {}).get("clients", {})
    if not isinstance(tables, dict) or not all(
        isinstance(table, dict) for table in tables.values()
    ):
        raise UsageError(
            f"{path} [tool.evalarc.clients]",
            "holds something that is no table",
            "write [tool.evalarc.clients.<label>] with client = …",
        )
    return tables


def _batch_name(given: str) -> str:
    if not re.fullmatch(NAME_PATTERN, given) or len(given) > 100:
        raise UsageError(
            f"--evalarc-batch {given!r}",
            "is not a name",
            "use up to 100 letters, digits, '_', '+' and '-'",
        )
    return given


def _whole_number(name: str, given: str) -> int:
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= 100_000:
        raise UsageError(
            f"--evalarc-{name} {given!r}", "is not a number of trials", "give 1 to 100000"
        )
    return int(given)


def _tokens(given: str | None) -> int | None:
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", given) or int(given) == 0:
        raise UsageError(
            f"--evalarc-max-tokens {given!r}", "is no number of tokens", "give 2000000, say"
        )
    return int(given)


def _dollars(given: str | None) -> float | None:
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", given) or float(given) == 0:
        raise UsageError(
            f"--evalarc-max-cost-usd {given!r}", "is no amount of US dollars", "give 12.50, say"
        )
    return float(given)


def _shard(given: str | None) -> Shard | None:
    if given is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", given)
    shard = Shard(number=int(found[1]), of=int(found[2])) if found else None
    if shard is None or not 1 <= shard.number <= shard.of <= MOST_SHARDS:
        raise UsageError(
            f"--evalarc-shard {given!r}",
            "is no shard",
            f"give K/N as 2/4, with K from 1 to N and N at most {MOST_SHARDS}",
        )
    return shard


def _max_parallel(given: str | None, root: Path, registry: Registry) -> MaxParallel:
    if given is None:
        return MaxParallel()
    known = dict.fromkeys((*registry.clients.names, *_client_tables(root)))
    return max_parallel(given, known=tuple(known))


def _configuration(given: str) -> ConfigurationChoice:
    for choice in CONFIGURATIONS:
        if given == choice:
            return choice
    raise UsageError(
        f"--evalarc-configuration {given!r}", "is none", f"give one of {', '.join(CONFIGURATIONS)}"
    )


def _audit(given: str) -> AuditMode:
    for mode in AUDITS:
        if given == mode:
            return mode
    raise UsageError(f"--evalarc-audit {given!r}", "is none", f"give one of {', '.join(AUDITS)}")


def _seeds(given: Sequence[str]) -> tuple[int, ...]:
    """Return the seeds of an option that takes one or several at a time."""
    words = [word for text in given for word in text.replace(",", " ").split()]
    for word in words:
        if not re.fullmatch(r"-?[0-9]{1,18}", word):
            raise UsageError(f"--evalarc-seeds {word!r}", "is no whole number", "give 17, say")
    seeds = tuple(int(word) for word in words)
    for seed in seeds:
        if seeds.count(seed) > 1:
            raise UsageError(f"--evalarc-seeds {seed}", "is named twice", "name each once")
    return seeds


def _treatment(given: str | None, registry: Registry) -> str | None:
    if given is not None:
        registry.treatments.get(given)
    return given


def _sandbox(given: str, registry: Registry) -> str:
    if given == "exploratory":
        problem = "is the clients' own, and not one to choose"
        raise UsageError("--evalarc-sandbox exploratory", problem, "give --evalarc-exploratory")
    if given != "auto":
        registry.sandboxes.get(given)
    return given


def _exploratory(options: Options) -> bool:
    """Return whether clients run in their own sandboxes, which no other one may surround."""
    wanted = options.flag("exploratory")
    chosen = options.text("sandbox") or "auto"
    if wanted and chosen not in ("auto", "bwrap", "local"):
        raise UsageError(
            f"--evalarc-exploratory with --evalarc-sandbox {chosen}",
            "asks for two sandboxes around one client",
            "take one of them out",
        )
    return wanted


def _program(options: Options) -> Path | None:
    """Return the program under evaluation: a name on PATH, or a path."""
    given = options.text("symposium")
    if given is None:
        return None
    place = str(options.path("symposium", Path())) if os.sep in given else given
    found = shutil.which(place)
    if found is None:
        hint = "name a cargo-agents that can be run"
        raise UsageError(f"--evalarc-symposium {given}", "is no program", hint)
    return _real(Path(found))


def _denied(options: Options) -> Sequence[Path]:
    """Return what the options keep out of sight; kept results can lie outside the usual folder."""
    kept = [options.path("regrade", Path())] if options.was_given("regrade") else []
    return [*options.paths("deny-read"), *kept]


def _jobs() -> int:
    """Return how many checks run at once here: the cores, shared with other workers."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, cores // workers)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser()))
