"""Run one hidden check and report it over the record channel; run as a script.

The check's source arrives with the request and never lies in a mounted folder. It is written to a
private temporary file for pytest, and that file is gone before the first test function runs.
"""

import gc
import os
import sys

# What follows makes some hundred thousand objects that all stay.
gc.disable()
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_here]
from channel import Channel, leave, short
from submission import Submission

# A module of the submission may have either name.
del sys.path[0], sys.modules["channel"], sys.modules["submission"]
channel = Channel()
sys.path[:0] = [channel.request["site"]]
# Everything trusted is imported before the submission can be reached.
import ast
import builtins
import json
import tempfile

import pytest

TRUSTED = ("pytest", "_pytest", "pluggy")
NEVER_NEEDED = (
    "cacheprovider",
    "doctest",
    "faulthandler",
    "junitxml",
    "pastebin",
    "setuponly",
    "setupplan",
    "stepwise",
    "terminalprogress",
    "threadexception",
    "unraisableexception",
)
"""Plugins of pytest's own that do nothing for a single test; each costs time."""
NEEDED_FOR = {
    "capture": "cap",
    "debugging": "unittest",
    "legacypath": "tmpdir",
    "logging": "caplog",
    "recwarn": "warn",
    "subtests": "subtests",
    "unittest": "unittest",
    "warnings": "warn",
}
"""Further ones, each with what stands in the source of every check that needs it."""


class Reporter:
    """Plugin of the check's pytest: offers the submission, and reports what happens."""

    def __init__(self, send, request, path) -> None:
        """Report through `send` on the check at `path`."""
        self._send = send
        self._path = path
        self._roots = request["roots"]
        self._calls = takes_submission(request["source"].encode("latin-1"))
        self._submission = Submission(self._roots, os.path.join(_here, "call.py"))
        self._before: dict[tuple[str, int, str], int] = {}
        self.ran = 0

    @pytest.fixture
    def submission(self):
        """The submission as a child process."""
        return self._submission

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self):
        """Say that all of ours has gone well, and let the submission be found from here on."""
        self._before = fingerprint()
        self._send("ready")
        if not self._calls:
            sys.path += self._roots

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

    def pytest_sessionfinish(self, session):
        """Remember how many tests there were."""
        self.ran = session.testscollected

    def changed(self):
        """Return the names of trusted things that were replaced since the submission came in."""
        after = fingerprint()
        return sorted(
            f"{key[0]}.{key[2]}" for key, value in self._before.items() if after.get(key) != value
        )


def takes_submission(source: bytes) -> bool:
    """Whether a check asks for the submission as a process; it then cannot import it as well."""
    return any(
        isinstance(node, ast.arg) and node.arg == "submission"
        for node in ast.walk(ast.parse(source))
    )


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
        if key != "_" and (callable(value) or isinstance(value, (classmethod, property)))
    }


def options(source: str, folder: str) -> list[str]:
    """Return pytest's options for one check: nothing is read but ours, and little is loaded."""
    blocked = [*NEVER_NEEDED, *(name for name, word in NEEDED_FOR.items() if word not in source)]
    return [
        *("-c", os.path.join(_here, "check.ini"), "--rootdir", folder),
        *("--noconftest", "--import-mode=importlib", "-q"),
        *(["-s"] if "capture" not in blocked else []),
        *(word for name in blocked for word in ("-p", f"no:{name}")),
    ]


def main() -> None:
    """Run the check of the request."""
    request = channel.request
    folder = tempfile.mkdtemp(prefix="check-")
    path = os.path.join(folder, request["check"] + ".py")
    with open(path, "wb") as file:
        file.write(request["source"].encode("latin-1"))
    reporter = Reporter(channel.send, request, path)
    arguments = options(request.pop("source"), folder)
    # An entry point in the submission's folder would name a plugin.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    gc.enable()
    status = pytest.main([path, *arguments], plugins=[reporter])
    channel.send("end", ran=reporter.ran, exitstatus=int(status), changed=reporter.changed()[:20])
    leave(int(status))


main()
