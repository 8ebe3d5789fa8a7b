"""Which tasks the command line selects, by name or by tag, before anything is collected."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_evalarc.plugin.options import Options


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
    """Return a task's tags; none of a file that is wrong, which its validation tells."""
    import tomllib

    try:
        tags = tomllib.loads(path.read_text("utf-8-sig")).get("tags", [])
    except (OSError, ValueError, RecursionError):
        return ()
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else ()


def most_trials(tasks: Path, options: Options) -> int | None:
    """Return a bound of the trials that are asked for, without looking into any task.

    None when the options are wrong, which is told elsewhere.
    """
    files = selected_tasks(tasks, options) or list(tasks.glob("*/task.toml"))
    trials = options.text("trials") or "1"
    if not trials.isascii() or not trials.isdigit():
        return None
    is_both = (options.text("configuration") or "both") == "both"
    clients = len(set(options.texts("client"))) or 1
    rounds = int(trials)
    _, slash, shards = (options.text("shard") or "").partition("/")
    if slash and shards.isascii() and shards.isdigit() and int(shards):
        rounds = math.ceil(rounds / int(shards))
    return len(files) * clients * rounds * (2 if is_both else 1)
