"""An agent that puts its key wherever it can: given to a session as its program."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

VARIABLE, KEPT_BYTES = sys.argv[1], int(sys.argv[2])
"""The key's variable, and how much of either end of its complaints is kept."""
KEY = os.environ[VARIABLE]
SPELLINGS = json.loads(Path(__file__).with_name("spellings.json").read_text())
LAST_WORDS = f"cannot go on with {KEY}\n".encode()


class Stream:
    """One of the two streams, whose bytes are counted."""

    def __init__(self, descriptor: int) -> None:
        self.file = os.fdopen(descriptor, "wb", buffering=0, closefd=False)
        self.bytes = 0

    def say(self, text: "str | bytes") -> None:
        data = text.encode() if isinstance(text, str) else text
        self.bytes += len(data)
        while data:
            data = data[self.file.write(data) :]


def main() -> None:
    stdout, stderr = Stream(1), Stream(2)
    for stream in (stdout, stderr):
        say_it(stream)
    leave_it()
    crash(stdout)
    flood(stderr)
    stderr.say(LAST_WORDS)
    sys.exit(3)


def say_it(stream: Stream) -> None:
    """Print it in one piece, in two chunks, and as an event."""
    for spelling in SPELLINGS:
        stream.say(f"{spelling}\n")
    stream.say(f"{KEY}\n{json.dumps({'type': 'text', 'text': f'my key is {KEY}'})}\n")
    for at in range(0, len(KEY), 3):
        stream.say(json.dumps({"type": "delta", "text": KEY[at : at + 3]}) + "\n")
    stream.say(KEY[:11])
    time.sleep(0.05)
    stream.say(f"{KEY[11:]}\n")


def leave_it() -> None:
    """Put it into files, names and links, in what is graded and beside it."""
    places = [Path("src"), Path("beside"), Path(os.environ["EVAL_EVIDENCE_DIR"])]
    for place in (*places, Path(os.environ["HOME"]), Path(os.environ["TMPDIR"])):
        place.mkdir(exist_ok=True)
        (place / "spellings").write_text("\n".join([KEY, *SPELLINGS]))
        for number, spelling in enumerate(SPELLINGS):
            # A name takes no slash, and not everything that is long.
            if "/" not in spelling:
                with contextlib.suppress(OSError):
                    (place / f"{number} {spelling}").write_text(KEY)
    Path("link").symlink_to(KEY)
    Path("src/greeting").write_text(f"hello {KEY}\n")


def crash(stream: Stream) -> None:
    """Die in a child that has it in its memory, and tell what such a death may leave."""
    script = "echo soft $(ulimit -Sc), hard $(ulimit -Hc); kill -SEGV $$"
    done = subprocess.run(["/bin/sh", "-c", script], check=False, stdout=subprocess.PIPE)
    left = sorted(name for name in os.listdir() if name.startswith("core"))
    stream.say(f"core dumps: {done.stdout.decode().strip()}, {done.returncode}, {left}\n")


def flood(stream: Stream) -> None:
    """Print so much that what is kept is cut twice, and each cut goes through the key."""
    stream.say("." * (KEPT_BYTES - stream.bytes - 20))
    stream.say(f"{KEY}{'-' * KEPT_BYTES}{KEY}")
    stream.say("." * (KEPT_BYTES - len(LAST_WORDS) - 20))


main()
