"""The treatment `symposium`: its hooks fire in the session, and a sync installs the skills."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.clients.program import find_program, program_digest
from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.manifest import Manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.isolation.ask import ask
from pytest_evalarc.isolation.command import Command
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin, Task
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import Expectations, SymposiumRef, TreatmentRef
from pytest_evalarc.treatments import synced
from pytest_evalarc.treatments.hooks import first_touch
from pytest_evalarc.treatments.loads import Known
from pytest_evalarc.treatments.prelaunch import CARGO_AGENTS, require_no_skills
from pytest_evalarc.treatments.protocol import Evidence, Staged, TreatmentBase
from pytest_evalarc.treatments.records import read_records
from pytest_evalarc.treatments.registration import (
    HOOK_FILES,
    config_of,
    require_config,
    require_hooks,
)
from pytest_evalarc.treatments.skillset import (
    Skill,
    copied_whole,
    digest_of,
    is_mark,
    names_of,
    skills_among,
)

TRACE = "evidence/hook-trace.jsonl"
"""What `SYMPOSIUM_HOOK_TRACE` of a session names, below the run folder."""

SYMPOSIUM_LOGS = "home/.symposium/logs"
"""Where Symposium keeps its logs, below the run folder."""

_MANIFEST = "SYMPOSIUM.toml"


@dataclass(frozen=True, kw_only=True)
class Symposium(TreatmentBase):
    """Cargo-agents with the task's plugins as its registry; it needs a client with hooks.

    Nothing is installed before the session. Hooks are registered for the whole home folder, the
    client starts them, and the sync of the first one is what is to be observed.
    """

    name: str = "symposium"
    programs: tuple[str, ...] = (CARGO_AGENTS,)
    standing: tuple[str, ...] = synced.STANDING
    program: Path | None = None
    """The cargo-agents under evaluation; None is the one on the PATH of the harness."""
    revision: str | None = None
    """The revision that it was built from, where that is known."""

    @property
    def version(self) -> str | None:
        """What the program says of its version, and its digest; None when there is none to ask.

        Two builds may go by one version, and a batch runs on one of them.
        """
        return f"{self._said} {program_digest(self._found())}" if self._said else None

    def with_program(self, program: Path) -> Symposium:
        """Return this treatment with another cargo-agents."""
        return replace(self, program=program)

    def supports(self, needs: Needs, *, embedded: bool) -> str | None:
        """Return why a client cannot be treated; Symposium lives in its hooks."""
        if embedded:
            return "an embedded client starts no hooks, so Symposium would never run"
        if needs.agent not in HOOK_FILES:
            known = ", ".join(sorted(HOOK_FILES))
            return f"Symposium's hooks can be registered and checked for {known} alone"
        return None

    def missing(self) -> str | None:
        """Return why there is no cargo-agents that could be evaluated; None when there is."""
        try:
            found = self._found()
        except SetupError as error:
            return f"{error}, or name one with --evalarc-symposium"
        if self._said is None:
            return f"{printable(str(found), limit=400)} does not answer --version"
        return None

    def fill(self, folder: Path) -> None:
        """Copy the program, links followed: a sandbox matches paths as they are opened.

        Raises:
            SetupError: There is none, or it cannot be copied.
        """
        found = self._found()
        try:
            shutil.copy(found, folder / CARGO_AGENTS)
            (folder / CARGO_AGENTS).chmod(0o755)
        except OSError as error:
            problem = f"cannot be copied: {error.strerror or error}"
            raise SetupError(
                str(found), problem, "name another with --evalarc-symposium"
            ) from error

    def stage(
        self,
        task: Task,
        needs: Needs,
        layout: RunLayout,
        *,
        env: Mapping[str, str],
        tools: Path | None = None,
        noise: Sequence[Plugin] = (),
    ) -> Staged:
        """Make the registry and the configuration, and return what registers the hooks.

        Raises:
            SetupError: A plugin cannot be read or copied, two skills share a name, the skill
                folder is not empty, or the program was not staged.
        """
        if tools is None or needs.agent is None:
            raise SetupError(f"treatment {self.name}", "has no staged program or no known client")
        require_no_skills(layout.project, needs.skill_folder)
        plugins = (*task.plugins, *noise)
        skills = skills_among(plugins)
        copies = {
            plugin.name: copied_whole(plugin.root, layout.registry / plugin.name)
            for plugin in plugins
        }
        write_tree(layout.home / ".symposium", {"config.toml": config_of(layout)})
        program = tools / CARGO_AGENTS
        return Staged(
            planned={name: digest_of(skill.root, skip=is_mark) for name, skill in skills.items()},
            project=layout.project,
            skill_folder=needs.skill_folder,
            reads=(tools,),
            links={CARGO_AGENTS: program},
            init=(
                Command(
                    # Cargo puts `agents` before its arguments, the hooks do not, and it takes
                    # both: called by itself, it needs no cargo.
                    argv=(str(program), "init", "--add-agent", needs.agent),
                    cwd=layout.project,
                    env=dict(env),
                ),
            ),
            offers=Offered(
                skills=tuple(skill.title for skill in skills.values()),
                mcp_servers=tuple(_servers(layout.registry, copies)),
            ),
            symposium=SymposiumRef(
                version=self._said or "", sha256=program_digest(program), revision=self.revision
            ),
            known={name: _known(skill, skills, needs, layout) for name, skill in skills.items()},
            layout=layout,
            agent=needs.agent,
            keeps={"hook-trace.jsonl": TRACE, "symposium.log": SYMPOSIUM_LOGS},
        )

    def verify(self, staged: Staged) -> None:
        """Prove that hooks are registered for the client alone, and that nothing is installed.

        Raises:
            SetupError: A hook is missing or is not Symposium's, the configuration is not the one
                that was written, or a skill is there already.
        """
        if staged.layout is None or staged.agent is None:
            raise SetupError(f"treatment {self.name}", "was staged by another treatment")
        require_no_skills(staged.project, staged.skill_folder)
        require_config(staged.layout, staged.agent)
        require_hooks(staged.layout, staged.agent)

    def collect(
        self,
        staged: Staged | None,
        layout: RunLayout,
        transcript: Transcript,
        *,
        config: tuple[str, ...] = (),
    ) -> Evidence:
        """Return what hooks and syncs left, beside the transcript."""
        if staged is None:
            return Evidence(transcript=transcript, config=config)
        installs = synced.installs_of(staged)
        agent = staged.agent

        def as_run(record: dict[str, JsonValue]) -> tuple[str, bool]:
            event = record["event"]
            if record["agent"] != agent or not isinstance(event, str):
                raise ValueError("a record of another agent")
            # Only a hook that succeeded leaves a record.
            return event, True

        return Evidence(
            transcript=transcript,
            config=config,
            skill_folder=staged.skill_folder,
            planned=staged.planned,
            found=synced.found_in(staged, installs),
            known=synced.known_after(staged, installs),
            is_placed=False,
            installs=installs,
            records=read_records(layout.root, TRACE, as_run),
            sync=synced.sync_record(layout),
            touched=first_touch(transcript, layout),
        )

    def decide(self, expected: Expected, evidence: Evidence) -> Expectations:
        """Return each expectation's verdict, and those that every trial of Symposium is under."""
        return synced.decide(expected, evidence)

    def ref(self, staged: Staged) -> TreatmentRef:
        """Return how results name what was put in place."""
        return TreatmentRef(name=self.name, digest=staged.digest)

    @cached_property
    def _said(self) -> str | None:
        try:
            said = ask(str(self._found()), "--version")
        except SetupError:
            return None
        return printable(said.splitlines()[0], limit=100) if said else None

    def _found(self) -> Path:
        return find_program(str(self.program) if self.program else CARGO_AGENTS)


def _known(skill: Skill, among: Mapping[str, Skill], needs: Needs, layout: RunLayout) -> Known:
    return Known(
        skill=skill.name,
        names=names_of(skill, among),
        folders=(f"{needs.skill_folder}/{skill.title}",),
        project=str(layout.project),
    )


def _servers(registry: Path, copies: Mapping[str, Manifest]) -> Iterator[str]:
    """Yield the servers that a client may list: Symposium's own, and those of plugins."""
    yield "symposium"
    for plugin, manifest in copies.items():
        for entry in manifest.files:
            if entry.path.rpartition("/")[2] == _MANIFEST:
                yield from _declared(registry / plugin / entry.path)


def _declared(file: Path) -> Iterator[str]:
    try:
        declared = tomllib.loads(file.read_text("utf-8")).get("mcp_servers", ())
    except (OSError, ValueError) as error:
        raise SetupError(str(file), f"cannot be read: {error}", "mend the plugin") from error
    for server in declared if isinstance(declared, list) else ():
        if isinstance(server, dict) and isinstance(server.get("name"), str):
            yield server["name"]
