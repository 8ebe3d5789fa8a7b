"""A client of one's own: any program that works in a folder can be the agent under evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_evalarc.clients.protocol import ClientBase, Needs
from pytest_evalarc.isolation.command import Command, Exit
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.task import TaskBrief
from pytest_evalarc.model.transcript import Completion, Transcript
from pytest_evalarc.model.trial import TrialResult


class Shell(ClientBase):
    """Runs the shell command of its setting `command`; `$1` in it is the prompt."""

    name = "shell"
    version = "1.0"
    needs = Needs()
    embedded = False

    def launch(
        self,
        brief: TaskBrief,
        layout: RunLayout,
        *,
        env: Mapping[str, str],
        settings: JsonObject,
        **_: object,
    ) -> Command:
        """Return what starts one session."""
        command = str(settings.get("command", "true"))
        argv = ("/bin/sh", "-c", command, "sh", brief.prompt)
        return Command(argv=argv, cwd=layout.project, env=env)

    def read(self, stdout: Path, exit: Exit, layout: RunLayout) -> Transcript:  # noqa: ARG002
        """Return what the session's output shows; a stored one is read again, without a status."""
        return Transcript(
            events=0,
            completion=Completion(is_error=exit.status not in (0, None)),
            # A shell reports no tool calls, so their absence would prove nothing.
            interpreted=False,
            response=stdout.read_text("utf-8", errors="replace"),
        )


def pytest_evalarc_clients() -> Mapping[str, Callable[[], Shell]]:
    """Offer the client under its name."""
    return {"shell": Shell}


def pytest_evalarc_trial_finished(result: TrialResult, folder: Path) -> None:
    """Keep a list of the trials that failed, with the reason."""
    if result.outcome == "failed" and result.cause is not None:
        with (folder.parent / "failed.txt").open("a", encoding="utf-8") as file:
            file.write(f"{folder.name}: {result.cause.detail}\n")
