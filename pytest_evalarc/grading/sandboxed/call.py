"""Call one function of the submission in a process of its own; run as a script.

Reads `{"roots", "target", "args", "kwargs"}` from standard input. Writes one JSON line to what
was standard output: `{"value"}` or `{"raised": {"type", "message"}, "stage"}`, where the stage is
`import`, `call` or `encode`. Everything in this process belongs to the submission; the process that
started it believes only that one line.
"""

import importlib
import json
import operator
import os
import sys


def reply(request):
    """Return what the call gave, or what it raised and where."""
    stage = "import"
    try:
        module, _, name = request["target"].partition(":")
        function = operator.attrgetter(name)(importlib.import_module(module))
        stage = "call"
        value = function(*request["args"], **request["kwargs"])
        stage = "encode"
        json.dumps(value, allow_nan=False)
    except Exception as error:
        raised = {"type": type(error).__name__, "message": str(error)}
        return {"raised": raised, "stage": stage}
    return {"value": value}


def main() -> None:
    """Answer one request."""
    request = json.loads(sys.stdin.buffer.read())
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.path += request["roots"]
    line = json.dumps(reply(request), ensure_ascii=True, default=str)
    os.write(answers, line.encode("ascii") + b"\n")


main()
