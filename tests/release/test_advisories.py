"""What an audit says where its service cannot be reached is no good news."""

from __future__ import annotations

import json

from release.advisories import Answer, Status, read_npm_audit, read_pip_audit, told

HOLE = {"name": "jinja2", "version": "3.1.0", "vulns": [{"id": "PYSEC-2024-1", "aliases": []}]}
CLEAN = {"name": "pluggy", "version": "1.6.0", "vulns": []}
UNKNOWN = {"name": "ruff", "skip_reason": "Dependency not found on PyPI: ruff (0.15.0)"}


def of_pip(*packages: object) -> Answer:
    return read_pip_audit(json.dumps({"dependencies": packages, "fixes": []}), "")


def test_packages_that_the_service_did_not_know_are_not_clean() -> None:
    """pip-audit gives status 0 for these, also when it reached nothing at all."""
    answer = of_pip(CLEAN, UNKNOWN)

    assert answer == Answer((), ("ruff",))
    assert answer.status is Status.NOT_ASKED
    assert told("run.txt", answer) == "run.txt: NOT ASKED, nothing is known of 1: ruff"


def test_a_hole_outweighs_what_was_not_asked() -> None:
    """Both are told, and the status is the one that stops a release."""
    answer = of_pip(HOLE, UNKNOWN)

    assert answer.status is Status.FOUND
    assert told("run.txt", answer).splitlines() == [
        "run.txt: jinja2 3.1.0: PYSEC-2024-1",
        "run.txt: NOT ASKED, nothing is known of 1: ruff",
    ]


def test_only_a_whole_answer_without_holes_is_clean() -> None:
    """It is the one sentence that a reader leans on."""
    answer = of_pip(CLEAN)

    assert answer.status is Status.CLEAN
    assert told("run.txt", answer) == "run.txt: no hole is known in what is pinned"


def test_an_audit_that_gave_up_asked_about_nothing() -> None:
    """A traceback in place of JSON must not be read as an empty list of holes."""
    pip = read_pip_audit("", "Traceback\nConnectionError: no route to host\n")
    npm = read_npm_audit(json.dumps({"message": "405 Method Not Allowed", "error": {}}), "")

    assert pip == Answer((), ("pip-audit gave up: ConnectionError: no route to host",))
    assert npm == Answer((), ("npm gave up: 405 Method Not Allowed",))
    assert {pip.status, npm.status} == {Status.NOT_ASKED}


def test_holes_of_npm_packages_are_told() -> None:
    """Npm keys its report by package."""
    report = {"vulnerabilities": {"zod": {"severity": "high", "via": []}}, "metadata": {}}

    assert read_npm_audit(json.dumps(report), "") == Answer(("zod: high",), ())
    assert read_npm_audit(json.dumps({"vulnerabilities": {}}), "").status is Status.CLEAN
