"""Run the submission's own tests, in a copy they may write to; run as a script.

What they report can be forged by the submission; the hidden checks are what cannot.
"""

import json
import os
import shutil
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel
from compiler import report
from program import run_tests


def problem(request, project: str) -> str:
    """Return the end of what the first program with a failing test said, or an empty string."""
    with open(request["programs"], encoding="ascii") as file:
        made = json.load(file)
    for program, package in made:
        folder = os.path.join(project, os.path.relpath(package, request["project"]))
        env = {"CARGO_MANIFEST_DIR": folder}
        status, said = run_tests(program, stdin=b"", env=env, cwd=folder)
        if status != 0:
            return said.strip() or f"the tests ended with status {status}"
    return ""


def main() -> None:
    """Run the tests of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    around = tempfile.mkdtemp(prefix="tests-")
    send("ready")
    project = shutil.copytree(request["project"], os.path.join(around, "project"))
    os.symlink(request["fixtures"], os.path.join(around, "fixtures"))
    report(send, "cargo_test_lib", problem(request, project))


main()
