"""Run the submission's own tests with pytest, in a copy they may write to; run as a script.

These tests belong to the submission, so its configuration and conftest files hold. What they report
can be forged by it just as well; the hidden checks are what cannot.
"""

import os
import shutil
import sys
import tempfile

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [_here]
from channel import Channel, leave, short

# A module of the submission may have that name.
del sys.path[0], sys.modules["channel"]
channel = Channel()
sys.path[:0] = [channel.request["site"]]
import pytest

NO_TESTS = 5


class Counter:
    """Plugin that counts tests and remembers the first failure."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.ran = 0
        self.text = ""

    def pytest_runtest_logreport(self, report):
        """Count a test, keep the first failure."""
        self.ran += report.when == "call"
        if report.failed and not self.text:
            self.text = f"{report.nodeid}: {short(report.longrepr)}"

    def pytest_collectreport(self, report):
        """Keep a collection error."""
        if report.failed and not self.text:
            self.text = f"{report.nodeid}: {short(report.longrepr)}"


def main() -> None:
    """Run the tests of the request."""
    request, send = channel.request, channel.send
    send("ready")
    around = tempfile.mkdtemp(prefix="tests-")
    project = shutil.copytree(request["project"], os.path.join(around, "project"))
    os.symlink(request["fixtures"], os.path.join(around, "fixtures"))
    os.chdir(project)
    sys.path += [os.path.join(project, root) for root in request["roots"]]
    counter = Counter()
    status = int(
        pytest.main(
            ["-p", "no:cacheprovider", "-p", "no:faulthandler", "-q", "-s", "--rootdir", project],
            plugins=[counter],
        )
    )
    passed = status in (0, NO_TESTS)
    text = counter.text or ("" if passed else f"pytest ended with status {status}")
    send(
        "outcome",
        id="unit_tests",
        outcome="passed" if passed else "failed",
        when="call",
        answered=True,
        text=text,
    )
    send("end", ran=counter.ran, exitstatus=0)
    leave(0)


main()
