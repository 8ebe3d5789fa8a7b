"""Serve scripts until interrupted: `python tests/model_server fix=fix.json kv=evals/tasks/kv`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

# Started as a folder, this is no part of a package yet.
sys.path[0] = str(Path(__file__).parent.parent)

from model_server import ModelServer, Script  # noqa: E402 - it is found only now.
from model_server.tasks import solve  # noqa: E402


def script(argument: str) -> tuple[str, Script]:
    """Return name and script of `NAME=PATH`: a JSON document, or a task that is to be solved."""
    name, _, path = argument.partition("=")
    if Path(path).is_dir():
        return name, solve(Path(path))
    return name, Script.from_json(json.loads(Path(path).read_text("utf-8")))


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="+", type=script, metavar="NAME=PATH")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    given = parser.parse_args()
    with ModelServer(dict(given.scripts), port=given.port) as server:
        for name, _ in given.scripts:
            print(server.url(name), flush=True)
        try:
            server.closing.wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
