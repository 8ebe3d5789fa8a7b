"""Compile the submission's own tests of its library; run as a script."""

import json
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel
from compiler import (
    cargo,
    complaint,
    report,
    require,
)

STEP = "cargo_test_lib"
NO_LIBRARY = "no library targets found"


def programs(messages: str):
    """Yield each program that cargo says it made, and the folder of its package."""
    for line in messages.splitlines():
        message = json.loads(line)
        if message.get("executable"):
            yield [message["executable"], os.path.dirname(message["manifest_path"])]


def main() -> None:
    """Compile the tests of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    require("cargo", "rustc", "cc")
    send("ready")
    done = cargo(
        request, "test", "--lib", "--no-run", "--message-format", "json-render-diagnostics"
    )
    if done.returncode != 0 and NO_LIBRARY not in done.stderr:
        report(send, STEP, complaint(done.stderr))
    made = list(programs(done.stdout)) if done.returncode == 0 else []
    with open(request["programs"], "w", encoding="ascii") as file:
        json.dump(made, file)
    report(send, STEP, "")


main()
