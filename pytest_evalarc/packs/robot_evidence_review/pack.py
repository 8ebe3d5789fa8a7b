"""The pack robot-evidence-review: reports on recorded flights, each field held to the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from pytest_evalarc.files.text import printable
from pytest_evalarc.grading.pack import CandidateError, Case, CaseVerdict, Session
from pytest_evalarc.grading.session import canonical
from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.packs.controls import Controls, two_languages
from pytest_evalarc.packs.robot_evidence_review.cases import VIEWS, cases
from pytest_evalarc.packs.robot_evidence_review.faults import FAULTS
from pytest_evalarc.packs.robot_evidence_review.oracle import expected_report, judge
from pytest_evalarc.packs.robot_evidence_review.recordings import RECORDINGS

FOLDER = Path(__file__).parent
REQUEST_BYTES = 1 << 16
REPLY_SHOWN = 4000
"""Characters of a reply that a trace keeps; a right one has about 500."""

WEIGHTS = {
    "provenance": 0.10,
    "coordinates": 0.25,
    "clock": 0.15,
    "metrics": 0.25,
    "completeness": 0.15,
    "protocol": 0.10,
}

CONTROLS = Controls(
    folder=FOLDER / "candidates",
    faults=FAULTS,
)


class RobotEvidenceReview:
    """A review of a recorded flight: where, when, how far off, how high, what is missing, whose."""

    info = PackInfo(
        name="robot-evidence-review",
        version="0.1.0",
        domain="physical-ai-evidence",
        code=FOLDER,
        prompt=(FOLDER / "TASK.md").read_text("utf-8"),
        weights=WEIGHTS,
        cases={name: tuple(WEIGHTS) for name in VIEWS},
        mutants=[fault.mutant for fault in FAULTS],
        languages=two_languages(),
        request_bytes=REQUEST_BYTES,
    )

    def cases(self, seed: int) -> Sequence[Case]:
        """Return the cases of a seed, in declared order."""
        return cases(seed)

    def run(self, case: Case, open_session: Callable[[], Session]) -> CaseVerdict:
        """Ask for one review, end the process, and judge each dimension of the report by itself."""
        request = case.content["request"]
        session = open_session()
        try:
            reply = session.ask(request)
        except CandidateError as error:
            return _unjudged(error, {"request": canonical(request)})
        # A reply may nest too deep, or hold text too odd, to stand in a document as data.
        shown = printable(canonical(reply), limit=REPLY_SHOWN)
        exchange: JsonObject = {"request": canonical(request), "response": shown}
        report = _report(reply)
        if report is None:
            fault = CandidateError("protocol", 'its reply is not {"ok": true, "report": {…}}')
            return _unjudged(fault, exchange)
        fault_at_end = _end(session)
        judgement = judge(report, _expected(case))
        has_kept_protocol = judgement.verdicts["protocol"] and fault_at_end is None
        return CaseVerdict(
            verdicts={**judgement.verdicts, "protocol": has_kept_protocol},
            fault=fault_at_end,
            detail=judgement.detail,
            trace=(exchange,),
        )

    def control(self, name: str, language: str) -> Mapping[str, bytes]:
        """Return the files of a control; see `Controls.files`."""
        return CONTROLS.files(name, language)


def _unjudged(fault: CandidateError, exchange: JsonObject) -> CaseVerdict:
    return CaseVerdict(
        verdicts=dict.fromkeys(WEIGHTS, False),
        fault=fault,
        detail=fault.detail,
        trace=(exchange,),
    )


def _report(reply: JsonValue) -> JsonObject | None:
    """Return what a reply wraps, or None when it is wrapped in anything but what was agreed."""
    match reply:
        case {"ok": True, "report": dict(report), **others} if not others:
            # A pattern compares with `is` for True, so that 1 is no substitute.
            return report
    return None


def _end(session: Session) -> CandidateError | None:
    """Close the candidate's input; return what it did wrong then."""
    try:
        session.end("eof")
    except CandidateError as fault:
        return fault
    return None


def _expected(case: Case) -> JsonObject:
    return expected_report(
        RECORDINGS[cast("str", case.content["recording"])],
        query_frame=cast("int", case.content["query_frame"]),
        omitted_frames=cast("list[int]", case.content["omitted_frames"]),
    )
