"""Build a submission as its hidden checks will use it, and keep how they compile; run as a script.

Cargo is asked for an empty integration test. What it would start for that is recorded instead of
started, after everything that such a test depends on was built. Hidden checks are compiled by that
command: then nothing of the submission is compiled any more where a hidden check can be read.
"""

import json
import os
import shlex
import shutil
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel
from compiler import (
    RECORDER,
    cargo,
    complaint,
    project_of,
    report,
    require,
)

PROBE = "evalarc_probe"
OF_THE_PROBE = ("--error-format", "--json", "--emit", "--diagnostic-width")
ITS_PLACE = ("extra-filename=", "incremental=")
KEPT = ("CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_")
"""Variables that a test can be compiled with, and read when it runs."""

SCRIPT = """\
#!/bin/sh
case " $* " in
*" --crate-name {probe} "*" --test "*)
    env -0 > {environ} && printf '%s\\0' "$@" > {arguments}
    exit 1 ;;
esac
exec "$@"
"""


def arrange(request) -> str:
    """Copy the project beside its fixtures, with the empty test; return what goes wrong."""
    project = project_of(request)
    try:
        shutil.copytree(request["project"], project)
        os.symlink(request["fixtures"], os.path.join(os.path.dirname(project), "fixtures"))
        os.makedirs(os.path.join(project, "tests"), exist_ok=True)
        with open(os.path.join(project, "tests", f"{PROBE}.rs"), "w"):
            pass
    except OSError as error:
        return f"the project cannot be copied: {error}"
    return ""


def write_recorder(recorder: str) -> None:
    """Write the program that cargo starts in place of the compiler."""
    script = SCRIPT.format(
        probe=PROBE,
        environ=shlex.quote(recorder + ".environ"),
        arguments=shlex.quote(recorder + ".arguments"),
    )
    with open(recorder, "w", encoding="utf-8") as file:
        file.write(script)
    os.chmod(recorder, 0o755)


def recorded(path):
    """Return the words that the recorder wrote, or nothing when it was never asked."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\0")[:-1]
    except FileNotFoundError:
        return []


def command(arguments):
    """Return a recorded command without what names the probe, its place and its output."""
    kept, words = [], iter(arguments)
    for word in words:
        if word in ("--crate-name", "--out-dir"):
            next(words)
        elif word == "-C":
            setting = next(words)
            kept += [] if setting.startswith(ITS_PLACE) else [word, setting]
        elif not word.startswith(OF_THE_PROBE) and not word.endswith(f"{PROBE}.rs"):
            kept.append(word)
    return kept


def main() -> None:
    """Build the submission of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    require("cargo", "rustc", "cc")
    recorder = os.path.join(request["build"], RECORDER)
    write_recorder(recorder)
    send("ready")
    if problem := arrange(request):
        report(send, "build", problem)
    done = cargo(request, "test", "--no-run", "--test", PROBE)
    arguments = recorded(recorder + ".arguments")
    if not arguments:
        report(send, "build", complaint(done.stderr))
    variables = (pair.partition("=") for pair in recorded(recorder + ".environ"))
    environ = {name: value for name, _, value in variables if name.startswith(KEPT)}
    with open(request["command"], "w", encoding="ascii") as file:
        json.dump({"command": command(arguments), "environ": environ}, file)
    report(send, "build", "")


main()
