"""Every option with its ini twin; this module is imported with the plugin, so it stays light."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

IniType = Literal["string", "bool", "linelist"]


class Option(NamedTuple):
    """One option: `--evalarc-<name>` on the command line, `evalarc_<name>` in an ini file."""

    name: str
    help: str
    kind: IniType = "string"
    metavar: str | None = None
    choices: tuple[str, ...] | None = None

    @property
    def flag(self) -> str:
        """The command line's spelling."""
        return f"--evalarc-{self.name}"

    @property
    def key(self) -> str:
        """The ini file's spelling, and the attribute of parsed options."""
        return "evalarc_" + self.name.replace("-", "_")


OPTIONS = (
    Option("tasks", "folder of tasks (default: evals/tasks)", metavar="DIR"),
    Option(
        "task", "a task to run: validation, audit and trials; globs allowed", "linelist", "NAME"
    ),
    Option("tag", "only tasks with this tag; globs allowed", "linelist", "TAG"),
    Option("check-tasks", "only validate the tasks", "bool"),
    Option("client", "run trials with this client (default: oracle)", "linelist", "LABEL"),
    Option("model", "model that the client is told to use", metavar="MODEL"),
    Option("model-setting", "setting of the client or its model", "linelist", "KEY=VALUE"),
    Option("trials", "run this many trials in each configuration (default: 1)", metavar="N"),
    Option(
        "configuration",
        "configurations to run (default: both)",
        choices=("both", "with", "without", "noise"),
    ),
    Option("treatment", "what the treated configuration gets (default: skills)", metavar="NAME"),
    Option("max-tokens", "start no further round once the batch has used so many", metavar="N"),
    Option(
        "max-cost-usd", "start no further round once the batch has cost so much", metavar="AMOUNT"
    ),
    Option(
        "max-parallel",
        "run at most so many trials of each client at once: 4, or claude=4,codex=2",
        metavar="N",
    ),
    Option("batch", "name of the batch (default: time and a random suffix)", metavar="NAME"),
    Option(
        "shard",
        "run only this part of the plan, as 2/4; other machines run the rest of the same batch",
        metavar="K/N",
    ),
    Option("root", "evaluation root, where trials run", metavar="DIR"),
    Option("results", "folder of results (default: results)", metavar="DIR"),
    Option("keep", "keep run folders and staged tools", "bool"),
    Option(
        "sandbox",
        "sandbox of clients, or of packs' candidates (default: auto)",
        metavar="NAME",
    ),
    Option("image", "image that podman or docker runs candidates of packs in", metavar="IMAGE"),
    Option(
        "submission", "grade this folder as a candidate of the one selected task", metavar="DIR"
    ),
    Option(
        "regrade",
        "grade kept submissions again: a batch's folder, or results with --evalarc-batch",
        metavar="RESULTS",
    ),
    Option("seeds", "seeds of packs in place of their tasks' own", "linelist", "N"),
    Option(
        "audit",
        "run every check of each mutant, or only those that decide detection (default: full)",
        choices=("full", "fast"),
    ),
    Option(
        "cache",
        "let a grading stand for later ones that could not differ from it; results say so",
        "bool",
    ),
    Option("deny-read", "a further path that no trial may read", "linelist", "PATH"),
    Option(
        "exploratory",
        "run clients in their own sandboxes; results say so and are never compared",
        "bool",
    ),
    Option("symposium", "cargo-agents under evaluation (default: on PATH)", metavar="PROGRAM"),
    Option("trust-local", "run submissions without a boundary; results say so", "bool"),
    Option(
        "gate",
        "what must hold of every task and client, as success_rate>=0.8; else the run fails",
        "linelist",
        "EXPR",
    ),
    Option("html", "write the results as one page for people", metavar="FILE"),
    Option("live", "show running trials on a terminal while they run", "bool"),
    Option("strict", "checks and expectations that an agent misses fail the run", "bool"),
)

DEFAULT_CLIENT = "oracle"
"""Needs no account, no network and no model."""
ASKS_FOR_TRIALS = ("task", "trials", "client")


def add_options(parser: pytest.Parser) -> None:
    """Register every option and its ini twin."""
    group = parser.getgroup("evalarc", "evaluating agents and auditing their checks")
    for option in OPTIONS:
        words: dict[str, Any] = {"dest": option.key, "default": None, "help": option.help}
        if option.kind == "bool":
            words |= {"action": "store_true"}
        else:
            words |= {"metavar": option.metavar}
            words |= {"choices": option.choices} if option.choices else {}
            words |= {"action": "append"} if option.kind == "linelist" else {}
        group.addoption(option.flag, **words)
        parser.addini(option.key, option.help, type=option.kind, default=None)


class Options:
    """What was asked for: the command line first, then the ini file."""

    def __init__(self, config: pytest.Config) -> None:
        """Read the options of a configured pytest.

        Raises:
            pytest.UsageError: An ini file holds what is no value of an option.
        """
        self._config = config
        self._written = {option.name: self._in_ini(option.key) for option in OPTIONS}

    def _in_ini(self, key: str) -> Any:
        try:
            return self._config.getini(key)
        except (TypeError, ValueError) as error:
            raise pytest.UsageError(f"{self._config.inipath} {key}: {error}") from error

    def on_command_line(self, name: str) -> Any:
        """Return an option's value on the command line; None when it is not there."""
        return self._config.getoption("evalarc_" + name.replace("-", "_"))

    def is_any_on_command_line(self) -> bool:
        """Return whether the command line has any of our options."""
        return any(self.on_command_line(option.name) is not None for option in OPTIONS)

    def are_trials_asked_for(self) -> bool:
        """Return whether the command line asks for trials.

        An ini file only says how they are run: a bare `pytest` must never start an agent.
        """
        return any(self.on_command_line(name) is not None for name in ASKS_FOR_TRIALS)

    def _value(self, name: str) -> Any:
        given = self.on_command_line(name)
        return self._written[name] if given is None else given

    def text(self, name: str) -> str | None:
        """Return a string option; None when it was not given or is empty."""
        return self._value(name) or None

    def texts(self, name: str) -> Sequence[str]:
        """Return an option that may be given several times."""
        return self._value(name) or ()

    def flag(self, name: str) -> bool:
        """Return whether a switch is on."""
        return bool(self._value(name))

    def path(self, name: str, default: Path) -> Path:
        """Return a path option, as a path that the user could have meant no other way."""
        given = self.text(name)
        return default if given is None else self._base(name) / given

    def paths(self, name: str) -> Sequence[Path]:
        """Return the paths of an option that may be given several times."""
        return [self._base(name) / given for given in self.texts(name)]

    def _base(self, name: str) -> Path:
        """Return what a relative path starts at: where pytest was started, or the root for ini."""
        is_typed = self.on_command_line(name) is not None
        return self._config.invocation_params.dir if is_typed else self._config.rootpath

    def argument_path(self, argument: str) -> Path:
        """Return the path of an argument of pytest, which may be a node id."""
        return Path(
            os.path.normpath(self._config.invocation_params.dir / argument.partition("::")[0])
        )

    def was_given(self, name: str) -> bool:
        """Return whether an option was given on the command line or in an ini file."""
        return bool(self._value(name))
