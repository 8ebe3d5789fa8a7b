"""Run the commands of a step or a check, and report whether each did what was wanted.

This runs inside the sandbox, where `channel` lies beside it. Only this process can report: what it
starts inherits neither the channel nor the key that signs each record.
"""

import subprocess
import sys
from pathlib import Path

# An isolated interpreter does not look beside the script by itself.
sys.path.insert(0, str(Path(__file__).parent))
from channel import Channel, leave, short

channel = Channel()


def problem(command: dict) -> str:
    """Return what a command did otherwise than was wanted, or an empty string."""
    done = subprocess.run(
        command["argv"],
        cwd=channel.request["project"],
        input=command.get("stdin", ""),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    wanted = (command["status"], command.get("stdout", done.stdout))
    if (done.returncode, done.stdout) == wanted:
        return ""
    return f"{command['argv']}: status {done.returncode}, {done.stdout!r}, {done.stderr!r}"


def main() -> None:
    """Report that the run began, how it came out, and that it came to its end."""
    channel.send("ready")
    problems = [found for found in map(problem, channel.request["commands"]) if found]
    channel.send(
        "outcome",
        id="commands",
        outcome="failed" if problems else "passed",
        when="call",
        answered=True,
        text=short("; ".join(problems)),
    )
    channel.send("end", ran=1)
    leave(0)


main()
