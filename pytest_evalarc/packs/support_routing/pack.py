"""The pack support-routing: its cases, the desk they are worked at, its references and faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pytest_evalarc.grading.pack import CandidateError, Case, CaseVerdict, Session
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.packs.controls import Controls, two_languages
from pytest_evalarc.packs.support_routing.cases import CASES, Content, cases
from pytest_evalarc.packs.support_routing.episode import Episode
from pytest_evalarc.packs.support_routing.faults import FAULTS
from pytest_evalarc.packs.support_routing.verifier import problems

FOLDER = Path(__file__).parent

WEIGHTS: Mapping[str, float] = {
    "routing": 0.30,
    "notes": 0.25,
    "closure": 0.20,
    "scope": 0.15,
    "protocol": 0.10,
}

REQUEST_BYTES = 65536
"""Room for the longest ticket there can be: ten notes of 512 characters, each escaped to 12 bytes.

A smaller bound would let a candidate break the harness with its own notes.
"""

CONTROLS = Controls(
    folder=FOLDER / "candidates",
    faults=FAULTS,
)


class SupportRouting:
    """A ticket is to be routed, noted and closed through tools that fail once and want a retry.

    The tickets live on the host. Every case gives a verdict in all five dimensions, four of them
    from the state that was left, however the candidate ended.
    """

    info = PackInfo(
        name="support-routing",
        version="0.1.0",
        domain="business-tools",
        code=FOLDER,
        prompt=(FOLDER / "TASK.md").read_text("utf-8"),
        weights=WEIGHTS,
        cases=dict.fromkeys(CASES, tuple(WEIGHTS)),
        mutants=[fault.mutant for fault in FAULTS],
        languages=two_languages(),
        request_bytes=REQUEST_BYTES,
    )

    def cases(self, seed: int) -> Sequence[Case]:
        """Return the cases of a seed, in declared order."""
        return cases(seed)

    def run(self, case: Case, open_session: Callable[[], Session]) -> CaseVerdict:
        """Let the candidate work at the desk, then judge the tickets that it left."""
        content = cast("Content", case.content)
        episode = Episode(content)
        fault = None
        try:
            episode.play(open_session())
        except CandidateError as error:
            fault = error
        found = problems(content, episode.close(fault))
        return CaseVerdict(
            verdicts={
                **{dimension: not problem for dimension, problem in found.items()},
                "protocol": fault is None,
            },
            fault=fault,
            detail="; ".join(f"{name}: {problem}" for name, problem in found.items() if problem),
            trace=tuple(episode.trace),
        )

    def control(self, name: str, language: str) -> Mapping[str, bytes]:
        """Return the files of a control; see `Controls.files`."""
        return CONTROLS.files(name, language)
