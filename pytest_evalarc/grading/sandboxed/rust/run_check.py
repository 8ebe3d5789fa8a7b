"""Run one hidden check that was compiled, where nothing can be written; run as a script.

The check writes a receipt when it has returned. The key that belongs on it is taken from standard
input before the check calls the submission. A status of 0 and a perfect summary prove nothing.
"""

import json
import os
import re
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel, leave, short
from program import run_tests

NONE = "0 ignored; 0 measured; 0 filtered out"
SUMMARY = re.compile(rf"test result: (\w+)\. (\d+) passed; (\d+) failed; {NONE}(?:;.*)?")
PANIC = re.compile(
    r"^---- [^\n]* stdout ----\n(.*?)(?=^note: |^failures:$|\Z)", re.DOTALL | re.MULTILINE
)
SPEAKER = re.compile(r"^thread '.*?' (?:\(\d+\) )?panicked at ", re.MULTILINE)
"""What a panic begins with, beside the place and the message."""
PANICKED = 101


def outcome(status: int, said: str, receipt: str):
    """Return how the one test ended, or None when it did not come to its end."""
    lines = said.splitlines()
    found = [match.groups() for match in map(SUMMARY.fullmatch, lines) if match]
    if (status, found) == (0, [("ok", "1", "0")]) and lines.count(receipt) == 1:
        return "passed"
    return "failed" if (status, found) == (PANICKED, [("FAILED", "0", "1")]) else None


def main() -> None:
    """Run the check of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    with open(request["command"], encoding="ascii") as file:
        environ = json.load(file)["environ"]
    if not os.access(request["program"], os.X_OK):
        leave(1)
    send("ready")
    send("collected", ids=[request["test"]])
    key = os.urandom(16).hex()
    status, said = run_tests(
        request["program"], stdin=key.encode(), env=environ, cwd=request["project"]
    )
    ended = outcome(status, said, f"passed {key}")
    if ended is None:
        leave(status if status >= 0 else 128 - status)
    panic = PANIC.search(said) if ended == "failed" else None
    text = short(SPEAKER.sub("", panic.group(1)).strip() if panic else "")
    send("outcome", id=request["test"], outcome=ended, when="call", answered=True, text=text)
    send("end", ran=1, exitstatus=status)
    leave(0)


main()
