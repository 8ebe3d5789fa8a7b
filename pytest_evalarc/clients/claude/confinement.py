"""The client's own sandbox, for sessions that no sandbox of ours surrounds."""

from __future__ import annotations

from pytest_evalarc.isolation.command import Policy
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.isolation.srt_policy import filesystem_of
from pytest_evalarc.model.base import JsonObject


def confined_env(layout: RunLayout) -> dict[str, str]:
    """Return the variables of a client that makes a sandbox itself.

    The sockets of its sandbox lie in its folder for temporary files, and the path of a socket
    must be short, as few trials' are. It keeps its own files in the trial's folder all the same;
    commands get one of its choice, which other sessions of the user share.

    Args:
        layout: The trial's folders.
    """
    return {"TMPDIR": "/tmp", "CLAUDE_CODE_TMPDIR": str(layout.tmp)}


def confined_settings(policy: Policy, layout: RunLayout) -> JsonObject:
    """Return the settings that let Claude Code keep to a policy, as far as it can.

    Its sandbox, which is made as srt is, surrounds the commands that the agent runs; its file
    tools are bound by its permissions. The client itself, its hooks and its servers are bound by
    neither.

    Args:
        policy: What the session may read and write.
        layout: The trial's folders.
    """
    filesystem = filesystem_of(policy).model_dump(mode="json", by_alias=True)
    return {
        "sandbox": {
            "enabled": True,
            "failIfUnavailable": True,
            "allowUnsandboxedCommands": False,
            # There is nobody to ask: without this every command would be refused.
            "autoAllowBashIfSandboxed": True,
            "filesystem": filesystem,
        },
        "permissions": {
            "blockReadsOutsideWorkingDirectories": True,
            # Beside the project, a task's fixtures are all that the agent works with.
            "additionalDirectories": [str(layout.fixtures)],
        },
    }
