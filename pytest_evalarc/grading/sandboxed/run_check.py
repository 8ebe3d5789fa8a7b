"""Run one hidden check and report it over the record channel; run as a script.

The check's source arrives with the request and never lies in a mounted folder. It is written to a
private temporary file for pytest, and that file is gone before the first test function runs.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_here]
from channel import Channel, leave, short
from submission import Submission

channel = Channel()
sys.path[0] = channel.request["site"]
# Everything trusted is imported before the submission can be reached.
import builtins
import json
import tempfile

import pytest

TRUSTED = ("pytest", "_pytest", "pluggy")


class Reporter:
    """Plugin of the check's pytest: offers the submission, and reports what happens."""

    def __init__(self, send, request, path) -> None:
        """Report through `send` on the check at `path`."""
        self._send = send
        self._path = path
        self._submission = Submission(request["project"], os.path.join(_here, "call.py"))

    @pytest.fixture
    def submission(self):
        """The submission as a child process."""
        return self._submission

    def pytest_collectreport(self, report):
        """Say why the check could not be collected."""
        if report.outcome != "passed":
            self._send(
                "outcome",
                id="",
                outcome="failed",
                when="collect",
                answered=False,
                text=short(report.longrepr),
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session):
        """Say what will run, and take the check's source out of the submission's reach."""
        os.unlink(self._path)
        self._send("collected", ids=[item.name for item in session.items])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call):
        """Remember how the test itself ended."""
        if call.when == "call":
            self._error = call.excinfo.type if call.excinfo is not None else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        """Report the test, or whatever else did not pass."""
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            self._send(
                "outcome",
                id=report.nodeid.rpartition("::")[2],
                outcome="xfail" if hasattr(report, "wasxfail") else report.outcome,
                when=report.when,
                answered=self._answered(report),
                text=short(crash.message if crash is not None else report.longrepr or ""),
            )

    _error = None

    def _answered(self, report) -> bool:
        if self._submission.calls:
            return self._submission.answers > 0
        started = report.when == "call"
        return started and not (self._error and issubclass(self._error, (ImportError, SyntaxError)))

    def pytest_sessionfinish(self, session, exitstatus):
        """Say that the run came to its end."""
        self._send("end", ran=session.testscollected, exitstatus=int(exitstatus))


def fingerprint() -> dict[tuple[str, int, str], int]:
    """Return the identity of every trusted function and class, to notice a replaced one."""
    modules = [builtins, os, json]
    modules += [
        module for name, module in sorted(sys.modules.items()) if name.split(".")[0] in TRUSTED
    ]
    classes = [
        thing
        for module in modules
        for thing in list(vars(module).values())
        if isinstance(thing, type) and thing.__module__.split(".")[0] in TRUSTED
    ]
    return {
        (getattr(owner, "__name__", ""), id(owner), key): id(value)
        for owner in [*modules, *classes]
        for key, value in list(vars(owner).items())
        if key != "_" and callable(value)
    }


def main() -> None:
    """Run the check of the request."""
    request, send = channel.request, channel.send
    folder = tempfile.mkdtemp(prefix="check-")
    path = os.path.join(folder, request["check"] + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(request.pop("source"))
    reporter = Reporter(send, request, path)
    send("ready")
    before = fingerprint()
    sys.path.append(request["project"])
    status = pytest.main(
        [
            path,
            "-c",
            os.path.join(_here, "check.ini"),
            "--rootdir",
            folder,
            "--noconftest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:faulthandler",
            "--import-mode=importlib",
            "-q",
            "-s",
        ],
        plugins=[reporter],
    )
    after = fingerprint()
    changed = sorted(
        f"{key[0]}.{key[2]}" for key, value in before.items() if after.get(key) != value
    )
    send("integrity", changed=changed[:20])
    leave(int(status))


main()
