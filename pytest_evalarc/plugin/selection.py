"""Which tasks the command line selects, by name or by tag, before anything is collected."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import UsageError
from pytest_evalarc.plugin.options import DEFAULT_CLIENT, Options
from pytest_evalarc.runs.parallel import max_parallel


def selected_tasks(tasks: Path, options: Options) -> Sequence[Path] | None:
    """Return the task files that `--evalarc-task` and `--evalarc-tag` select, by name.

    Args:
        tasks: The folder of tasks.
        options: Those of the session; an ini file filters what is collected, and selects nothing.

    Returns:
        None when neither option is on the command line.

    Raises:
        pytest.UsageError: A name or a tag selects nothing; names the nearest.
    """
    patterns = options.on_command_line("task") or ()
    tag_patterns = options.on_command_line("tag") or ()
    if not patterns and not tag_patterns:
        return None
    files = {path.parent.name: path for path in sorted(tasks.glob("*/task.toml"))}
    chosen = set(files)
    if patterns:
        chosen &= _matching("--evalarc-task", "task", patterns, {name: (name,) for name in files})
    if tag_patterns:
        tags = {name: _tags(path) for name, path in files.items()}
        chosen &= _matching("--evalarc-tag", "tag", tag_patterns, tags)
    return [files[name] for name in sorted(chosen)]


def _matching(
    flag: str, word: str, patterns: Sequence[str], words_of: Mapping[str, Collection[str]]
) -> set[str]:
    """Return the tasks that have a word which a pattern matches; every pattern must match."""
    found: set[str] = set()
    for pattern in patterns:
        matched = {task for task, words in words_of.items() if fnmatch.filter(words, pattern)}
        if not matched:
            from pytest_evalarc.errors import nearest

            known = {each for words in words_of.values() for each in words}
            hint = nearest(pattern, tuple(sorted(known)))
            problem = f"{flag} {pattern}: no such {word}"
            raise pytest.UsageError(f"{problem}; {hint}" if hint else problem)
        found |= matched
    return found


def _tags(path: Path) -> Sequence[str]:
    """Return a task's tags."""
    tags = _written(path).get("tags", [])
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()


def _written(path: Path) -> Mapping[str, Any]:
    """Return what a task file says; nothing of one that is wrong, which its validation tells."""
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}


def most_groups(config: pytest.Config, tasks: Path, options: Options) -> int | None:
    """Return a bound of the pieces of work that workers can be at: trials and controls.

    Args:
        config: Not configured yet; no task has been loaded.
        tasks: The folder of tasks.
        options: Those of the session.

    Returns:
        None where other tests may run as well, or where only loading the tasks would tell.

    Raises:
        pytest.UsageError: A name or a tag selects nothing.
    """
    if options.was_given("submission") or options.was_given("regrade"):
        return None
    files = _files_collected(config, tasks, options)
    if config.option.markexpr in ("evalarc_trial", "evalarc_audit"):
        files = list(tasks.glob("*/task.toml")) if files is None else files
        is_audit = config.option.markexpr == "evalarc_audit"
        return _most_controls(files) if is_audit else _most_trials(config, files, options)
    if files is None:
        return None
    if options.flag("check-tasks"):
        return len(files)
    controls, trials = _most_controls(files), _most_trials(config, files, options)
    return None if controls is None or trials is None else len(files) + controls + trials


def _files_collected(config: pytest.Config, tasks: Path, options: Options) -> Sequence[Path] | None:
    """Return the task files that are collected; None when anything else is as well."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        selected = selected_tasks(tasks, options)
        if selected is not None:
            return selected
    paths = [options.argument_path(argument) for argument in config.args]
    if not all(path == tasks or tasks in path.parents for path in paths):
        return None
    return [
        file
        for file in tasks.glob("*/task.toml")
        if any(path in (tasks, file.parent) or file.parent in path.parents for path in paths)
    ]


def _most_controls(files: Sequence[Path]) -> int | None:
    """Return a bound of the controls of tasks; None when a pack has some."""
    controls = 0
    for file in files:
        written = _written(file)
        if "pack" in written:
            return None
        mutants = written.get("mutants", [])
        controls += 2 + (len(mutants) if isinstance(mutants, list) else 0)
    return controls


def _most_trials(config: pytest.Config, files: Sequence[Path], options: Options) -> int | None:
    """Return a bound of the trials at once; None when the options are wrong, as told elsewhere."""
    node_ids = sum("::" in argument for argument in config.args)
    if not options.are_trials_asked_for() and not node_ids:
        return 0
    trials = options.text("trials") or "1"
    if not trials.isascii() or not trials.isdigit():
        return None
    is_both = (options.text("configuration") or "both") == "both"
    rounds = int(trials)
    _, slash, shards = (options.text("shard") or "").partition("/")
    if slash and shards.isascii() and shards.isdigit() and int(shards):
        rounds = math.ceil(rounds / int(shards))
    of_each = len(files) * rounds * (2 if is_both else 1)
    labels = set(options.texts("client")) or {DEFAULT_CLIENT}
    if node_ids:
        # Each may name a client of its own.
        return of_each * max(len(labels), node_ids)
    return sum(min(of_each, _at_once(label, options) or of_each) for label in labels)


def _at_once(label: str, options: Options) -> int | None:
    """Return how many trials of a client may run at once; None where that has no bound.

    What the option says of clients that are not there is told elsewhere.
    """
    text = options.text("max-parallel")
    if text is None:
        return None
    told_of = tuple(word.rpartition("=")[0].strip() for word in text.split(","))
    try:
        return max_parallel(text, known=told_of).of(label)
    except UsageError:
        return None
