"""Compile one hidden check against the library that was built; run as a script.

Its source arrives with the request and lies in a temporary folder that is gone with this process.
The program can be run by whoever runs it later, and read by nobody: it holds what the check knows,
and the system hides the memory of what runs from such a file.
"""

import json
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel, leave, short
from compiler import (
    complaint,
    report,
    require,
    run,
)


def main() -> None:
    """Compile the check of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    require("rustc", "cc")
    with open(request["command"], encoding="ascii") as file:
        recorded = json.load(file)
    path = os.path.join("checks", request["check"] + ".rs")
    os.mkdir("checks")
    with open(path, "w", encoding="utf-8") as file:
        file.write(request["source"])
    folder, name = os.path.split(request["program"])
    output = ("--crate-name", name, "--out-dir", folder, "--emit=link", "-C", "strip=debuginfo")
    send("ready")
    done = run([*recorded["command"], path, *output], env={**os.environ, **recorded["environ"]})
    sys.stderr.write(done.stderr)
    if done.returncode == 0:
        os.chmod(request["program"], 0o111)
        report(send, request["check"], "")
    text = short(complaint(done.stderr))
    send("outcome", id="", outcome="failed", when="collect", answered=False, text=text)
    send("end", ran=0, exitstatus=done.returncode)
    leave(0)


main()
