"""Hooks of a plugin, each wrapped so that it records that it ran and how it ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.plain import is_name

FILE = "plugin-hooks.jsonl"
"""Where hooks record that they ran, in the folder of evidence."""

SCRIPT = f"""\
#!/bin/sh
# Runs a hook's own command as it stands, then records its end: PLUGIN EVENT NUMBER COMMAND...
plugin=$1 event=$2 number=$3
shift 3
"$@"
status=$?
printf '{{"plugin":"%s","event":"%s","command":%d,"status":%d}}\\n' \\
    "$plugin" "$event" "$number" "$status" >> "$EVAL_EVIDENCE_DIR/{FILE}"
exit "$status"
"""
"""Input, output and status of the command are those of the wrapper: the client sees no other."""

_SHELLS = (None, "bash", "sh")


@dataclass
class Wrapper:
    """Rewrites the hooks of one plugin, and counts the commands that record their runs."""

    plugin: str
    script: Path
    """The wrapper, as every process of the trial sees it."""
    commands: dict[str, int] = field(default_factory=dict)
    """By event; 0 for one whose hooks are no commands."""

    def wrapped(self, hooks: Any, *, where: str) -> dict[str, Any]:  # noqa: ANN401
        """Return the value of a key `hooks` with every command wrapped.

        Args:
            hooks: Groups of hooks by event, as read.
            where: What a message calls it.

        Raises:
            SetupError: It has another shape, or a hook runs in a shell that is not one of ours.
        """
        try:
            return {
                event: list(self._groups(event, groups, where)) for event, groups in hooks.items()
            }
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SetupError(where, "holds no hooks that can be read", "mend the plugin") from error

    def _groups(self, event: str, groups: object, where: str) -> Iterator[Any]:
        if not is_name(event):
            problem = f"names an event that is none: {printable(event, limit=100)}"
            raise SetupError(where, problem, "mend the plugin")
        if not isinstance(groups, list):
            raise TypeError("an event without a list of groups")
        self.commands.setdefault(event, 0)
        for group in groups:
            hooks = [self._hook(event, hook, f"{where}: {event}") for hook in group["hooks"]]
            yield {**group, "hooks": hooks}

    def _hook(self, event: str, hook: dict[str, Any], where: str) -> dict[str, Any]:
        if hook["type"] != "command":
            return hook
        if hook.get("shell") not in _SHELLS:
            problem = f"runs in {printable(str(hook['shell']), limit=100)}, where none is wrapped"
            raise SetupError(where, problem, "write it for sh or bash")
        number = self.commands[event]
        self.commands[event] += 1
        before = [str(self.script), self.plugin, event, str(number)]
        if "args" in hook:
            arguments = [*before, str(hook["command"]), *hook["args"]]
            return {**hook, "command": "/bin/sh", "args": arguments}
        # The shell that the client chose runs the command, whichever it is: only bash says so.
        own = f'"${{BASH:-/bin/sh}}" -c {shlex.quote(str(hook["command"]))}'
        return {**hook, "command": f"/bin/sh {shlex.join(before)} {own}"}
