"""What the scripts that compile share: the compiler's surroundings, and what a step reports."""

import os
import subprocess
import sys

from channel import leave, short

RECORDER = "recorder"
"""Below the build folder: what cargo starts in place of the compiler."""
SAID = 4
"""Lines of a complaint that are told: where it is, and the source."""


def require(*programs: str) -> None:
    """Leave without a record unless these programs start, for that is no submission's fault."""
    for program in programs:
        try:
            done = run([program, "--version"])
        except OSError as error:
            sys.stderr.write(f"{program}: {error}\n")
            leave(1)
        if done.returncode != 0:
            sys.stderr.write(f"{program}: {done.stderr}\n")
            leave(1)


def run(argv, **options):
    """Run a program to its end and return what it said."""
    return subprocess.run(
        argv, capture_output=True, encoding="utf-8", errors="replace", check=False, **options
    )


def project_of(request) -> str:
    """Return the folder of the project as it is compiled."""
    return os.path.join(request["build"], "crate", "project")


def cargo(request, *words: str):
    """Run cargo over the copied project: offline, by its lock file, by nobody's settings.

    Cargo looks for settings where it is started and in its home, never where the manifest is.
    """
    project = project_of(request)
    manifest = os.path.join(project, "Cargo.toml")
    locked = ["--locked"] if os.path.exists(os.path.join(project, "Cargo.lock")) else []
    done = run(
        ["cargo", *words, "--manifest-path", manifest, "--offline", *locked],
        env={**os.environ, **_settings(request["build"])},
    )
    sys.stderr.write(done.stderr)
    return done


def _settings(build):
    return {
        "CARGO_HOME": os.path.join(os.environ["TMPDIR"], "cargo-home"),
        "CARGO_TARGET_DIR": os.path.join(build, "target"),
        "CARGO_TERM_COLOR": "never",
        # Neither is of use where everything is built once and nobody debugs it.
        "CARGO_INCREMENTAL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "RUSTC_WRAPPER": os.path.join(build, RECORDER),
    }


def complaint(text: str) -> str:
    """Return the first error that a compiler names, or else all it said."""
    lines = text.strip().splitlines()
    at = next((at for at, line in enumerate(lines) if has_error(line)), 0)
    return "\n".join(lines[at : at + SAID]) if lines else "the compiler ended without a word"


def has_error(text: str) -> bool:
    """Whether a line of a text names an error; a warning is none."""
    return any(line.lower().startswith("error") for line in text.splitlines())


def report(send, name: str, problem: str) -> None:
    """Report how a step ended, and leave."""
    send(
        "outcome",
        id=name,
        outcome="failed" if problem else "passed",
        when="call",
        answered=True,
        text=short(problem),
    )
    send("end", ran=1, exitstatus=0)
    leave(0)
