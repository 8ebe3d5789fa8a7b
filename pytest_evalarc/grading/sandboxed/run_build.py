"""Byte-compile a submission and import its modules; run as a script."""

import importlib
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel, leave, short

# A module of the submission may have that name.
del sys.path[0], sys.modules["channel"]
channel = Channel()


def problem(request) -> str:
    """Return why the submission does not build, or an empty string."""
    for path in request["sources"]:
        try:
            with open(os.path.join(request["project"], path), "rb") as file:
                compile(file.read(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
            return f"{path}: {type(error).__name__}: {error}"
    sys.path += request["roots"]
    for module in request["modules"]:
        try:
            importlib.import_module(module)
        except BaseException as error:
            return f"import {module}: {type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Build the submission of the request."""
    send = channel.send
    send("ready")
    found = problem(channel.request)
    send(
        "outcome",
        id="build",
        outcome="failed" if found else "passed",
        when="call",
        answered=True,
        text=short(found),
    )
    send("end", ran=1, exitstatus=0)
    leave(0)


main()
