"""The treatment `skills`: plain Agent Skills folders, copied into the client's skill folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NoReturn

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import EvalArcError, SetupError, SubmissionError
from pytest_evalarc.files.folder import Folder
from pytest_evalarc.files.manifest import is_cache, read_manifest
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import copy_tree
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import Expected, Plugin, Task
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import (
    Decision,
    Expectations,
    SkillFacts,
    SyncFacts,
    TreatmentRef,
    Verdict,
)
from pytest_evalarc.tasks.plugins import skills_of
from pytest_evalarc.treatments.prelaunch import require_no_skills, require_untouched_home
from pytest_evalarc.treatments.protocol import Evidence, Staged, TreatmentBase
from pytest_evalarc.treatments.use import decide_not_used, decide_used, observe

_NOTHING_DECIDES = "under the treatment skills nothing decides what to install"
_NO_HOOKS = "the treatment skills registers no hooks"


@dataclass(frozen=True)
class Skills(TreatmentBase):
    """Offers the skills of a task's plugins as folders of the project; any client can read them.

    Skills are compared as the task's content hash counts them, so without the caches that
    running a skill's own scripts leaves behind.
    """

    name: str = "skills"

    def supports(self, needs: Needs, *, embedded: bool) -> str | None:  # noqa: ARG002
        """Return None: a folder with files reaches every client."""
        return None

    def prelaunch(
        self,
        layout: RunLayout,
        needs: Needs,
        *,
        treated: bool,  # noqa: ARG002
        env: Mapping[str, str],  # noqa: ARG002
    ) -> None:
        """Refuse a trial that already holds skills or client configuration, in both arms.

        Raises:
            SetupError: Something is already there; names it.
        """
        require_untouched_home(layout.home)
        require_no_skills(layout.project, needs.skill_folder)

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
        """Copy every skill of the task's plugins and of the noise into an empty skill folder.

        Raises:
            SetupError: Two plugins hold a skill of the same name, a skill has no proper name or
                cannot be read or copied, or the skill folder is not empty.
        """
        require_no_skills(layout.project, needs.skill_folder)
        sources = _sources((*task.plugins, *noise))
        skill_dir = layout.project / needs.skill_folder
        planned = {skill: _install(source, skill_dir / skill) for skill, source in sources.items()}
        return Staged(
            planned=planned,
            project=layout.project,
            skill_folder=needs.skill_folder,
            offers=Offered(skills=tuple(planned)),
        )

    def verify(self, staged: Staged) -> None:
        """Prove that the skill folder equals the planned set.

        Raises:
            SetupError: A skill is missing, differs from its plugin, or was not planned.
        """
        found = _installed(staged.project, staged.skill_folder)
        for skill in sorted(staged.planned.keys() | found.keys()):
            if staged.planned.get(skill) != found.get(skill):
                raise SetupError(
                    printable(str(staged.skill_dir / skill), limit=400),
                    "is not what the plugins planned",
                    "a skill holds regular files and folders alone, and nothing else writes there",
                )

    def collect(
        self,
        staged: Staged | None,
        layout: RunLayout,
        transcript: Transcript,
        *,
        config: tuple[str, ...] = (),
    ) -> Evidence:
        """Return the skills as the session left them, beside its transcript."""
        if staged is None:
            return Evidence(transcript=transcript, config=config)
        return Evidence(
            transcript=transcript,
            config=config,
            skill_folder=staged.skill_folder,
            planned=staged.planned,
            found=_installed(layout.project, staged.skill_folder),
        )

    def decide(self, expected: Expected, evidence: Evidence) -> Expectations:
        """Return each expectation's verdict, with what it rests on."""
        decisions = tuple(_decisions(expected, evidence))
        verdicts = {decision.name: decision.verdict for decision in decisions}
        named = (*expected.installed, *expected.not_installed, *expected.used, *expected.not_used)
        return Expectations(
            skills={
                skill: _facts(skill, evidence, verdicts)
                for skill in dict.fromkeys((*evidence.planned, *named))
            },
            hooks={hook: verdicts[f"hook-{hook}"] for hook in expected.hooks},
            # Staging refuses a folder that is not empty, so no session starts without this.
            sync=SyncFacts(skill_dir_empty_before="pass"),
            decisions=decisions,
        )

    def ref(self, staged: Staged) -> TreatmentRef:
        """Return how results name what was put in place."""
        return TreatmentRef(name=self.name, digest=staged.digest)


def _sources(plugins: Sequence[Plugin]) -> dict[str, Path]:
    """Return every skill's folder by its name, which must be a name and one plugin's alone."""
    sources: dict[str, Path] = {}
    holders: dict[str, tuple[str, str]] = {}
    for plugin in plugins:
        for skill, folder in sorted(skills_of(plugin).items()):
            if not is_name(skill):
                raise SetupError(
                    f"plugin {plugin.name}",
                    f"holds a skill whose folder is no name: {printable(skill, limit=100)}",
                    "letters, digits, `-`, `_` and `+` make a name",
                )
            # Names that differ in case alone are one folder on some file systems.
            other, holder = holders.setdefault(skill.casefold(), (skill, plugin.name))
            if (other, holder) != (skill, plugin.name):
                raise SetupError(
                    f"plugins {holder} and {plugin.name}",
                    f"hold skills that share one folder: {other} and {skill}",
                    "rename one of the skills",
                )
            sources[skill] = folder
    return sources


def _install(source: Path, dest: Path) -> str:
    """Copy one skill and return its content digest."""
    try:
        manifest = read_manifest(source, skip=is_cache)
        copy_tree(source, manifest, dest)
    except EvalArcError as error:
        _fail_setup(error)
    return manifest.sha256


def _fail_setup(error: EvalArcError) -> NoReturn:
    raise SetupError(error.where, error.problem, error.hint) from error


def _installed(project: Path, skill_folder: str) -> dict[str, str]:
    """Return the content digest of all that stands in the skill folder, no link followed."""
    try:
        with (
            Folder.at(project) as root,
            root.descend(PurePosixPath(skill_folder).parts) as folder,
        ):
            names = sorted(name for name, _ in folder.scan())
    except OSError:
        return {}
    skill_dir = project / skill_folder
    return {printable(name, limit=400): _digest(skill_dir / name) for name in names}


def _digest(skill: Path) -> str:
    try:
        return read_manifest(skill, skip=is_cache).sha256
    except SubmissionError:
        return ""


def _decisions(expected: Expected, evidence: Evidence) -> Iterator[Decision]:
    yield from (_decide_installed(skill, evidence) for skill in expected.installed)
    for skill in expected.not_installed:
        yield _not_judged(f"not_installed-{skill}", _NOTHING_DECIDES)
    yield from (decide_used(skill, evidence) for skill in expected.used)
    yield from (decide_not_used(skill, evidence) for skill in expected.not_used)
    yield from (_not_judged(f"hook-{hook}", _NO_HOOKS) for hook in expected.hooks)


def _not_judged(name: str, reason: str) -> Decision:
    return Decision(name=name, verdict=None, rests_on=(reason,))


def _decide_installed(skill: str, evidence: Evidence) -> Decision:
    verdict, seen = _presence(skill, evidence)
    where = f"{evidence.skill_folder}/{skill}"
    return Decision(name=f"installed-{skill}", verdict=verdict, rests_on=(f"{where} {seen}",))


def _presence(skill: str, evidence: Evidence) -> tuple[Verdict, str]:
    if skill not in evidence.planned:
        return "fail", "was never put there, as no plugin of the task holds it"
    if skill not in evidence.found:
        # It was there when the client started: the session removed it, not the treatment.
        return "inconclusive", "was removed during the session"
    if evidence.is_changed(skill):
        return "inconclusive", "was altered during the session"
    return "pass", "holds what the plugin holds, also after the session"


def _facts(skill: str, evidence: Evidence, verdicts: dict[str, Verdict | None]) -> SkillFacts:
    return SkillFacts(
        installed=verdicts.get(f"installed-{skill}"),
        not_installed=verdicts.get(f"not_installed-{skill}"),
        used=verdicts.get(f"used-{skill}"),
        not_used=verdicts.get(f"not_used-{skill}"),
        observed_load=observe(skill, evidence).load,
    )
