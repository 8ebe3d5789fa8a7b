"""The treatment `skills`: plain Agent Skills folders, copied into the client's skill folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evalarc.clients.protocol import Needs
from pytest_evalarc.errors import SetupError
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected, Plugin, Task
from pytest_evalarc.model.transcript import Offered, Transcript
from pytest_evalarc.model.trial import Decision, Expectations, TreatmentRef, Verdict
from pytest_evalarc.treatments.left import names_in
from pytest_evalarc.treatments.loads import Known
from pytest_evalarc.treatments.prelaunch import require_no_skills
from pytest_evalarc.treatments.protocol import Evidence, Staged, TreatmentBase
from pytest_evalarc.treatments.skillset import copied, digest_of, names_of, skills_among
from pytest_evalarc.treatments.use import Judges, decide, not_judged

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
        skills = skills_among((*task.plugins, *noise))
        skill_dir = layout.project / needs.skill_folder
        planned = {
            name: copied(skill.root, skill_dir / name).sha256 for name, skill in skills.items()
        }
        return Staged(
            planned=planned,
            project=layout.project,
            skill_folder=needs.skill_folder,
            offers=Offered(skills=tuple(planned)),
            known={
                name: Known(
                    skill=name,
                    names=names_of(skill, skills),
                    folders=(f"{needs.skill_folder}/{name}",),
                    project=str(layout.project),
                )
                for name, skill in skills.items()
            },
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
            known=staged.known,
            found=_installed(layout.project, staged.skill_folder),
        )

    def decide(self, expected: Expected, evidence: Evidence) -> Expectations:
        """Return each expectation's verdict, with what it rests on."""
        judges = Judges(
            installed=_decide_installed,
            not_installed=not_judged("not_installed", _NOTHING_DECIDES),
            hook=not_judged("hook", _NO_HOOKS),
        )
        return decide(expected, evidence, judges)

    def ref(self, staged: Staged) -> TreatmentRef:
        """Return how results name what was put in place."""
        return TreatmentRef(name=self.name, digest=staged.digest)


def _installed(project: Path, skill_folder: str) -> dict[str, str]:
    """Return the content digest of all that stands in the skill folder, no link followed."""
    names = names_in(project, skill_folder)
    return {printable(name, limit=400): digest_of(project / skill_folder / name) for name in names}


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
