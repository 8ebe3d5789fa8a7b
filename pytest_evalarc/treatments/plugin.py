"""The treatment `plugin`: plugin folders that the client loads by an option of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin, Task
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import Decision, Expectations, TreatmentRef, Verdict
from pytest_evalarc.treatments import witness
from pytest_evalarc.treatments.hooks import decide_hook, first_touch
from pytest_evalarc.treatments.left import names_in
from pytest_evalarc.treatments.loads import Known
from pytest_evalarc.treatments.plugin_folder import PluginFolder, copy_plugin
from pytest_evalarc.treatments.prelaunch import require_no_skills
from pytest_evalarc.treatments.protocol import Evidence, Staged, TreatmentBase
from pytest_evalarc.treatments.records import read_records
from pytest_evalarc.treatments.skillset import Skill, digest_of, names_of, skills_among
from pytest_evalarc.treatments.use import Judges, decide, not_judged

_NOTHING_DECIDES = "under the treatment plugin nothing decides what to install"


@dataclass(frozen=True, kw_only=True)
class PluginFolders(TreatmentBase):
    """Loads the task's plugins as they are: skills, hooks, agents, servers and commands.

    The copies lie beside what the trial may write, so what the client loads stays the author's.
    """

    name: str = "plugin"

    def supports(self, needs: Needs, *, embedded: bool) -> str | None:
        """Return why a client cannot be treated; it must load plugin folders by itself."""
        if embedded:
            return "an embedded client loads no plugins and starts no hooks"
        return None if needs.takes_plugins else "it has no option that loads a plugin folder"

    def stage(
        self,
        task: Task,
        needs: Needs,
        layout: RunLayout,
        *,
        env: Mapping[str, str],  # noqa: ARG002
        tools: Path | None = None,  # noqa: ARG002
        noise: Sequence[Plugin] = (),
    ) -> Staged:
        """Copy every plugin, its hook commands wrapped, to where no trial can write.

        Raises:
            SetupError: A plugin cannot be read or copied, two share a name, or the project
                already offers skills.
        """
        require_no_skills(layout.project, needs.skill_folder)
        plugins = (*task.plugins, *noise)
        skills = skills_among(plugins)
        folder = layout.root / "plugins"
        write_tree(folder, {"witness.sh": witness.SCRIPT.encode()})
        copies = {
            plugin.name: copy_plugin(
                plugin,
                folder / plugin.name,
                folder / "witness.sh",
                [skill for skill in skills.values() if skill.plugin == plugin.name],
            )
            for plugin in plugins
        }
        _require_own_names(list(copies.values()))
        return Staged(
            planned={name: digest_of(skill.root) for name, skill in skills.items()},
            project=layout.project,
            skill_folder=needs.skill_folder,
            plugins=tuple(copy.root for copy in copies.values()),
            offers=_joined([copy.offers for copy in copies.values()]),
            known={
                name: _known(skill, skills, copies[skill.plugin], layout)
                for name, skill in skills.items()
            },
            hooks=_hooks(list(copies.values())),
            layout=layout,
        )

    def verify(self, staged: Staged) -> None:
        """Prove that every skill is copied as its author wrote it, and that there is no other.

        Raises:
            SetupError: A skill differs, or the project offers some.
        """
        require_no_skills(staged.project, staged.skill_folder)
        for skill, digest in _copied(staged).items():
            if digest != staged.planned[skill]:
                raise SetupError(
                    printable(staged.known[skill].folders[0], limit=400),
                    "is not what the plugin holds",
                    "nothing else writes to the run folder while a trial is prepared",
                )

    def collect(
        self,
        staged: Staged | None,
        layout: RunLayout,
        transcript: Transcript,
        *,
        config: tuple[str, ...] = (),
    ) -> Evidence:
        """Return the plugins' skills as they are now, and what their hooks recorded."""
        if staged is None:
            return Evidence(transcript=transcript, config=config)
        added = {
            printable(name, limit=400): digest_of(staged.skill_dir / name)
            for name in names_in(layout.project, staged.skill_folder)
        }
        return Evidence(
            transcript=transcript,
            config=config,
            skill_folder=staged.skill_folder,
            planned=staged.planned,
            found={**added, **_copied(staged)},
            known=staged.known,
            hooks=staged.hooks,
            records=read_records(
                layout.root, f"evidence/{witness.FILE}", lambda record: _as_run(record, staged)
            ),
            touched=first_touch(transcript, layout),
        )

    def decide(self, expected: Expected, evidence: Evidence) -> Expectations:
        """Return each expectation's verdict, with what it rests on."""
        judges = Judges(
            installed=_decide_installed,
            not_installed=not_judged("not_installed", _NOTHING_DECIDES),
            hook=_decide_hook,
        )
        return decide(expected, evidence, judges)

    def ref(self, staged: Staged) -> TreatmentRef:
        """Return how results name what was put in place."""
        return TreatmentRef(name=self.name, digest=staged.digest)


def _require_own_names(copies: Sequence[PluginFolder]) -> None:
    holders: dict[str, PluginFolder] = {}
    for copy in copies:
        other = holders.setdefault(copy.name.casefold(), copy)
        if other is not copy:
            raise SetupError(
                f"plugins {other.plugin} and {copy.plugin}",
                f"give themselves one name: {other.name} and {copy.name}",
                "rename one of them in its .claude-plugin/plugin.json",
            )


def _known(
    skill: Skill, among: Mapping[str, Skill], copy: PluginFolder, layout: RunLayout
) -> Known:
    return Known(
        skill=skill.name,
        names=names_of(skill, among, prefix=f"{copy.name}:"),
        folders=(str(copy.root / skill.place),),
        project=str(layout.project),
    )


def _joined(offers: Sequence[Offered]) -> Offered:
    return Offered(
        **{
            kind: tuple(name for offered in offers for name in getattr(offered, kind))
            for kind in Offered.model_fields
        }
    )


def _hooks(copies: Sequence[PluginFolder]) -> dict[str, int]:
    hooks: dict[str, int] = {}
    for copy in copies:
        for event, commands in copy.hooks.items():
            hooks[event] = hooks.get(event, 0) + commands
    return hooks


def _copied(staged: Staged) -> dict[str, str]:
    return {skill: digest_of(Path(known.folders[0])) for skill, known in staged.known.items()}


def _as_run(record: dict[str, JsonValue], staged: Staged) -> tuple[str, bool]:
    event, number, status = record["event"], record["command"], record["status"]
    if record["plugin"] not in staged.offers.plugins or not isinstance(event, str):
        raise ValueError("a record of no plugin of this trial")
    if type(number) is not int or not 0 <= number < staged.hooks[event]:
        raise ValueError("a record of no hook of this trial")
    if type(status) is not int:
        raise ValueError("a record without a status")
    return event, status == 0


def _decide_installed(skill: str, evidence: Evidence) -> Decision:
    verdict, seen = _presence(skill, evidence)
    return Decision(name=f"installed-{skill}", verdict=verdict, rests_on=(seen,))


def _presence(skill: str, evidence: Evidence) -> tuple[Verdict, str]:
    if skill not in evidence.planned:
        return "fail", f"no plugin of this trial holds {skill}"
    known = evidence.known_as(skill)
    if evidence.is_changed(skill):
        return "inconclusive", f"{known.folders[0]} is not what the plugin holds any more"
    names = sorted(name for name in known.names if ":" in name)
    offered = evidence.transcript.offered
    if offered is None:
        return "inconclusive", "the client does not say what it offers"
    if listed := [name for name in names if name in offered.skills]:
        return "pass", f"the client lists {listed[0]} at its start"
    return "fail", f"the client does not list {' or '.join(names)} at its start"


def _decide_hook(hook: str, evidence: Evidence) -> Decision:
    name, commands = f"hook-{hook}", evidence.hooks.get(hook)
    if commands is None:
        seen = f"no plugin of this trial has a hook for {hook}"
        return Decision(name=name, verdict="fail", rests_on=(seen,))
    if not commands:
        seen = f"hooks for {hook} are no commands, so none of them records that it ran"
        return Decision(name=name, verdict="inconclusive", rests_on=(seen,))
    return decide_hook(name, hook, evidence)
