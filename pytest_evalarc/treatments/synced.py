"""What a sync left in a project, and the expectations that are decided from it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from pytest_evalarc.errors import EvalArcError, SubmissionError
from pytest_evalarc.files.strict import loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import Expected
from pytest_evalarc.model.trial import Decision, Expectations, SyncFacts, Verdict
from pytest_evalarc.treatments import use
from pytest_evalarc.treatments.hooks import decide_hook, doubts_of
from pytest_evalarc.treatments.left import kind_of, names_in, read_left
from pytest_evalarc.treatments.loads import Known, spells, told
from pytest_evalarc.treatments.protocol import Evidence, Install, Observed, Staged
from pytest_evalarc.treatments.skillset import digest_of, is_mark

EMPTY_BEFORE = "sync-skill_dir_empty_before"
SESSION_START = "sync-session_start"
RECORDED = "sync-sync_recorded"
STANDING = (EMPTY_BEFORE, SESSION_START, RECORDED)
"""What is expected of every trial of Symposium, whatever its task says."""

_WORKSPACES = "home/.symposium/cache/workspaces"
_SUFFIX = r"-[0-9a-f]{8}"
"""What a sync adds to a name that is taken."""
_MOST_BYTES = 1 << 20
_TAKES_AWAY = re.compile(r"(?<![\w-])(rm|rmdir|mv|unlink|clean|rmtree)(?![\w-])")


def installs_of(staged: Staged) -> dict[str, tuple[Install, ...]]:
    """Return where each skill was found after the session, under its own or a suffixed name."""
    names = names_in(staged.project, staged.skill_folder)
    titles = {skill: _title(known) for skill, known in staged.known.items()}
    return {
        skill: tuple(
            _install(staged, name)
            for name in names
            if name == title or (_is_suffixed(name, title) and name not in titles.values())
        )
        for skill, title in titles.items()
    }


def found_in(staged: Staged, installs: Mapping[str, tuple[Install, ...]]) -> dict[str, str]:
    """Return the content digest of each installed skill, and of all else that is there."""
    found = {
        skill: _best_digest(staged.planned[skill], there)
        for skill, there in installs.items()
        if there
    }
    skills = {install.folder for there in installs.values() for install in there}
    for name in names_in(staged.project, staged.skill_folder):
        # A sync keeps the folder that it makes out of version control.
        if f"{staged.skill_folder}/{name}" not in skills and name != ".gitignore":
            found[printable(name, limit=400)] = digest_of(staged.skill_dir / name)
    return found


def known_after(staged: Staged, installs: Mapping[str, tuple[Install, ...]]) -> dict[str, Known]:
    """Return all that a session may have called each skill, its suffixed names too."""
    return {
        skill: replace(
            known,
            names=known.names | {install.folder.rpartition("/")[2] for install in installs[skill]},
            folders=tuple(
                dict.fromkeys((*known.folders, *(each.folder for each in installs[skill])))
            ),
        )
        for skill, known in staged.known.items()
    }


def sync_record(layout: RunLayout) -> Observed:
    """Return whether Symposium recorded a sync of the project, which it does after a success."""
    root = os.path.realpath(layout.project)
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    file = f"{_WORKSPACES}/{Path(root).name}-{digest}/state.json"
    try:
        data = read_left(layout.root, file, limit=_MOST_BYTES)
        if data is None:
            return _without_record(layout, file)
        document = loads(data, where=file)
    except EvalArcError as error:
        return Observed(verdict="inconclusive", seen=printable(str(error), limit=400))
    if flaw := _flaw(document, root):
        return Observed(verdict="inconclusive", seen=f"{file}: {flaw}")
    return Observed(verdict="pass", seen=f"{file} records a sync of the project")


def decide(expected: Expected, evidence: Evidence) -> Expectations:
    """Return each expectation's verdict, and those that every trial of Symposium is under."""
    standing = tuple(_sync_decisions(evidence))
    empty, session_start, recorded = (decision.verdict for decision in standing)
    return use.decide(
        expected,
        evidence,
        use.Judges(
            installed=_decide_installed, not_installed=_decide_not_installed, hook=_decide_hook
        ),
        sync=SyncFacts(
            skill_dir_empty_before=empty, session_start=session_start, sync_recorded=recorded
        ),
        standing=standing,
    )


def _sync_decisions(evidence: Evidence) -> Iterator[Decision]:
    yield Decision(
        name=EMPTY_BEFORE,
        verdict="pass",
        # No session starts otherwise.
        rests_on=(f"{evidence.skill_folder} was empty when the client was started",),
    )
    yield decide_hook(SESSION_START, "SessionStart", evidence)
    sync = evidence.sync or Observed(verdict="inconclusive", seen="nobody looked for a record")
    doubts = doubts_of(evidence)
    verdict: Verdict = "inconclusive" if doubts else sync.verdict
    yield Decision(name=RECORDED, verdict=verdict, rests_on=(sync.seen, *doubts))


def _decide_installed(skill: str, evidence: Evidence) -> Decision:
    verdict, seen = _presence(skill, evidence)
    doubt = _edited(skill, evidence) if verdict == "pass" else _meddled(skill, evidence)
    if doubt and skill in evidence.planned:
        return Decision(name=f"installed-{skill}", verdict="inconclusive", rests_on=(seen, doubt))
    return Decision(name=f"installed-{skill}", verdict=verdict, rests_on=(seen,))


def _decide_not_installed(skill: str, evidence: Evidence) -> Decision:
    there = [install.folder for install in evidence.installs.get(skill, ())]
    plain = evidence.known_as(skill).folders[0]
    if not there and skill in evidence.found:
        there = [plain]
    seen = f"{', '.join(there)} is there" if there else f"{plain} is not there"
    verdict: Verdict = "fail" if there else "pass"
    doubt = _meddled(skill, evidence)
    return Decision(
        name=f"not_installed-{skill}",
        verdict="inconclusive" if doubt else verdict,
        rests_on=(seen, doubt) if doubt else (seen,),
    )


def _decide_hook(hook: str, evidence: Evidence) -> Decision:
    return decide_hook(f"hook-{hook}", hook, evidence)


def _presence(skill: str, evidence: Evidence) -> tuple[Verdict, str]:
    where = evidence.known_as(skill).folders[0]
    if skill not in evidence.planned:
        return "fail", f"no plugin of the registry holds {skill}"
    there = evidence.installs.get(skill, ())
    same = [install for install in there if install.digest == evidence.planned[skill]]
    for install in same:
        if install.is_marked:
            return "pass", f"{install.folder} bears the mark and holds what the plugin holds"
    if same:
        return "fail", f"{same[0].folder} holds what the plugin holds, without Symposium's mark"
    if there:
        return "fail", f"{there[0].folder} does not hold what the plugin holds"
    return "fail", f"{where} is not there"


def _edited(skill: str, evidence: Evidence) -> str:
    """Return the first edit of a skill's folder, as a sentence, or an empty string."""
    known = evidence.known_as(skill)
    for place, call in enumerate(evidence.transcript.tool_calls):
        if known.is_edited_by(call):
            return f"{told(place, call)} wrote there"
    return ""


def _meddled(skill: str, evidence: Evidence) -> str:
    """Return why the session and not a sync may have brought it about; empty: nothing says so."""
    if edited := _edited(skill, evidence):
        return edited
    if not evidence.transcript.interpreted:
        return "the transcript was not interpreted whole, so the session may have changed it"
    top = evidence.skill_folder.partition("/")[0]
    for place, call in enumerate(evidence.transcript.tool_calls):
        if call.kind not in ("command", "other") or top not in call.target:
            continue
        if _TAKES_AWAY.search(call.target) or spells(call.target, skill):
            return f"{told(place, call)} names it and may have changed it"
    return ""


def _install(staged: Staged, name: str) -> Install:
    folder = f"{staged.skill_folder}/{name}"
    try:
        is_marked = kind_of(staged.project, f"{folder}/.symposium") == stat.S_IFREG
    except SubmissionError:
        is_marked = False
    digest = digest_of(staged.project / folder, skip=is_mark)
    return Install(folder=folder, digest=digest, is_marked=is_marked)


def _best_digest(planned: str, there: tuple[Install, ...]) -> str:
    digests = [install.digest for install in there]
    return planned if planned in digests else digests[0]


def _title(known: Known) -> str:
    return known.folders[0].rpartition("/")[2]


def _is_suffixed(name: str, title: str) -> bool:
    return re.fullmatch(re.escape(title) + _SUFFIX, name) is not None


def _without_record(layout: RunLayout, file: str) -> Observed:
    """Tell a sync that never happened from a record that somebody took away."""
    if not names_in(layout.root, "home/.symposium"):
        seen = "home/.symposium, which was there before the session, cannot be looked into"
        return Observed(verdict="inconclusive", seen=seen)
    return Observed(verdict="fail", seen=f"{file} is not there: no sync of the project succeeded")


def _flaw(document: JsonValue, root: str) -> str:
    """Return what is wrong with a record of a sync, or an empty string."""
    if not isinstance(document, dict):
        return "is no record of a sync"
    if document.get("workspace-root") != root:
        return "is the record of another workspace"
    if "last-sync-lock-mtime" not in document:
        return "does not say when the sync was"
    at_s = document["last-sync-lock-mtime"]
    # It is null for a workspace without a Cargo.lock.
    if at_s is not None and (isinstance(at_s, bool) or not isinstance(at_s, int) or at_s < 0):
        return "does not say when the sync was"
    return ""
