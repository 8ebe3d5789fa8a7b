"""Check with rustfmt that sources are formatted; run as a script.

Rustfmt starts from the roots of the package and follows its modules, as `cargo fmt` does, but only
files of the request count. What it cannot read is not formatted. So it first has to format nothing
by the very same settings, and whatever fails there is no file's fault.
"""

import json
import os
import sys
import tempfile

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__))]
from channel import Channel, leave
from compiler import complaint, has_error, report, require, run


class UnreadableError(Exception):
    """Cargo cannot make sense of the package."""


def roots(project: str):
    """Return the roots of all targets by edition.

    Raises:
        UnreadableError: Which files there are can be what is wrong, so it is nobody else's fault.
    """
    manifest = os.path.join(project, "Cargo.toml")
    home = {"CARGO_HOME": os.path.join(os.environ["TMPDIR"], "cargo-home")}
    words = ("--no-deps", "--offline", "--format-version", "1", "--manifest-path", manifest)
    done = run(["cargo", "metadata", *words], env={**os.environ, **home})
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise UnreadableError(complaint(done.stderr))
    found: dict[str, list[str]] = {}
    for package in json.loads(done.stdout)["packages"]:
        for target in package["targets"]:
            found.setdefault(target["edition"], []).append(target["src_path"])
    return found


def rustfmt(settings: str, *words: str):
    """Run rustfmt by these settings and no others."""
    return run(["rustfmt", "--check", "-l", "--config-path", settings, *words], input="")


def problem(request, settings: str) -> str:
    """Return what is not formatted, or an empty string."""
    try:
        found = roots(request["project"])
    except UnreadableError as error:
        return str(error)
    project = os.path.realpath(request["project"])
    judged = {os.path.join(project, path) for path in request["sources"]}
    for edition, paths in sorted(found.items()):
        done = rustfmt(settings, "--edition", edition, *paths)
        sys.stderr.write(done.stdout + done.stderr)
        bad = sorted(judged.intersection(map(os.path.realpath, done.stdout.splitlines())))
        if bad:
            shown = [os.path.relpath(path, project) for path in bad]
            return f"not formatted: {', '.join(shown)}"
        if has_error(done.stderr) or (done.returncode != 0 and not done.stdout):
            return complaint(done.stderr)
    return ""


def main() -> None:
    """Check the sources of the request."""
    channel = Channel()
    request, send = channel.request, channel.send
    require("cargo", "rustfmt")
    settings = request["settings"] or os.path.join(tempfile.mkdtemp(), "rustfmt.toml")
    if not request["settings"]:
        with open(settings, "w"):
            pass
    nothing = rustfmt(settings)
    if nothing.returncode != 0:
        sys.stderr.write(nothing.stderr)
        leave(1)
    send("ready")
    report(send, "cargo_fmt_check", problem(request, settings))


main()
