"""Fuzz led by coverage: what reaches a new line of a reader is kept and changed further.

```console
$ python tests/fuzz/guided.py gate --seconds 60
```

Needs atheris, which `nox -s guided` installs; it ends with another status than 0 when something
was found, and leaves that input in the working folder. `docs/fuzzing.md` tells what it is good for.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Target(NamedTuple):
    """One reader, and inputs to begin with."""

    run: Callable[[bytes], bool]
    """Whether the reader took it; fails unless a refusal is told as it should be."""
    seeds: Sequence[bytes]
    """The first is one that the reader takes."""


def channel(folder: Path) -> Target:
    """What checks report: only the whole run passes."""
    from tests.fuzz import test_channel as of

    whole = of.channel(of.WHOLE)

    def run(data: bytes) -> bool:
        passed = of.require_judged(data, of.EXIT) == "passed"
        assert not passed or data == whole
        return passed

    return Target(run, [whole, of.channel(of.WHOLE[:1])])


def document(folder: Path) -> Target:
    """Strict JSON of any bytes."""
    from pytest_evalarc.errors import DocumentError
    from pytest_evalarc.files.strict import loads
    from tests.fuzz.forms import refusing

    def run(data: bytes) -> bool:
        with refusing(DocumentError):
            json.dumps(loads(data, where="it"), allow_nan=False).encode()
            return True
        return False

    return Target(run, [b'{"a": [1, -2.5e3, "\\u00e9", null, true]}', b'"\\ud83d\\ude00"'])


def gate(folder: Path) -> Target:
    """Any text as a gate."""
    from pytest_evalarc.counting.gate import parse_gate
    from pytest_evalarc.errors import UsageError
    from tests.fuzz.forms import refusing

    def run(data: bytes) -> bool:
        with refusing(UsageError):
            parse_gate(data.decode("utf-8", "replace"))
            return True
        return False

    return Target(run, [b"delta.success_rate >= 0.1 and without.success_rate < 0.9"])


def listing(folder: Path) -> Target:
    """What a host says that it sends, before the bytes of its files."""
    import hashlib

    from pytest_evalarc.files.parcel import Closing, Opening
    from tests.fuzz.test_folders import EMPTY, receive

    rows = [("a", 0o755, 0, None), ("a/b", 0o644, 0, EMPTY)]

    def run(data: bytes) -> bool:
        closing = Closing(hashlib.sha256(data).hexdigest())
        with tempfile.TemporaryDirectory(dir=folder) as name:
            arrived = receive(Path(name, "staging"), Opening(len(data)), data, closing)
            assert {path.name for path in Path(name).iterdir()} <= {"staging"}
        return arrived

    return Target(run, [json.dumps(rows).encode(), b"[]"])


def stream(name: str) -> Callable[[Path], Target]:
    """What a client printed."""

    def target(folder: Path) -> Target:
        from tests.documents import write_trials
        from tests.fuzz import test_transcripts as of

        trials = write_trials(folder / "trials")

        def run(data: bytes) -> bool:
            found = of.read(name, folder, data)
            of.require_told(found, trials)
            return found.interpreted

        return Target(run, of.RECORDED.get(name, of.OWN))

    return target


def task(folder: Path) -> Target:
    """A task.toml, and all that it names."""
    from tests.evals import FILES, TASK
    from tests.fuzz import test_tasks as of

    for path, content in FILES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")

    return Target(lambda data: not of.load(folder, data), [TASK.encode(), *of.SHIPPED])


TARGETS: dict[str, Callable[[Path], Target]] = {
    "channel": channel,
    "claude": stream("claude"),
    "codex": stream("codex"),
    "document": document,
    "gate": gate,
    "listing": listing,
    "own": stream("own"),
    "task": task,
}


def options(folder: Path, seeds: Iterable[bytes], seconds: int) -> list[str]:
    """Return what libFuzzer is told, the seeds having been written down for it."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
    # An input of 64 KiB says all that one of more would, and a minute for one is a hang.
    limits = ["-max_len=65536", "-timeout=60", "-rss_limit_mb=2048", "-print_final_stats=1"]
    return [*limits, f"-max_total_time={seconds}", str(corpus)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Fuzz one target; libFuzzer ends the process."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz/guided.py")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    asked = parser.parse_args(arguments)
    import atheris

    sys.path.insert(0, str(ROOT))
    # Only what is imported within is led by coverage, so the targets import when they are made.
    with (
        tempfile.TemporaryDirectory() as name,
        atheris.instrument_imports(include=["pytest_evalarc"]),
    ):
        folder = Path(name).resolve()
        target = TARGETS[asked.target](folder)

        def one(data: bytes) -> None:
            # What it returned would be an order to libFuzzer.
            target.run(data)

        atheris.Setup([sys.argv[0], *options(folder, target.seeds, asked.seconds)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
