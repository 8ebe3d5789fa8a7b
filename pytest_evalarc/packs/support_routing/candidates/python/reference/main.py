"""A support agent: an observation per line in, one action per line out, until it finishes."""

from __future__ import annotations

import json
import sys
from typing import Any

Json = dict[str, Any]


class ToolError(Exception):
    """A call did not succeed, and calling again is of no use or no longer possible."""


class Desk:
    """The tools of the service desk; every attempt at a call uses up one action."""

    def __init__(self) -> None:
        start = self._observed()
        self.task: Json = start["task"]
        self._remaining: int = start["remaining_actions"]

    def call(self, tool: str, **arguments: str) -> Json:
        """Call a tool, again and again while that may help, and return what it answered.

        Each attempt sends the same arguments. A failed call may have done its work all the same,
        and only an unchanged request id lets the service see that it is asked for it twice.
        """
        while self._remaining > 1:  # The last action is for finishing.
            result = self._attempt(tool, arguments)
            if result["ok"]:
                return result
            error = result["error"]
            if not error["retryable"]:
                raise ToolError(f"{tool}: {error['code']}")
        raise ToolError(f"{tool}: no action is left for it")

    def finish(self, message: str) -> None:
        """End the work; nothing may be said after this."""
        self._say({"finish": True, "message": message})

    def _attempt(self, tool: str, arguments: Json) -> Json:
        self._say({"tool": tool, "arguments": arguments})
        observation = self._observed()
        self._remaining = observation["remaining_actions"]
        result: Json = observation["result"]
        return result

    def _observed(self) -> Json:
        observation: Json = json.loads(sys.stdin.readline())
        return observation

    def _say(self, action: Json) -> None:
        print(json.dumps(action), flush=True)


def handle(desk: Desk) -> None:
    """Route the ticket, note that, and close it if its problem is resolved."""
    task = desk.task
    ticket_id = task["ticket_id"]
    ticket = desk.call("get_ticket", ticket_id=ticket_id)["ticket"]

    queue = task["routing_rules"][ticket["category"]]
    desk.call("assign_queue", ticket_id=ticket_id, queue=queue)

    request_id = f"note-{ticket_id}"
    desk.call("add_note", ticket_id=ticket_id, body=task["note"], request_id=request_id)

    if ticket["resolved"]:
        desk.call("close_ticket", ticket_id=ticket_id)


def main() -> None:
    """Work on the one ticket that the desk hands out, and say how it went."""
    desk = Desk()
    try:
        handle(desk)
    except ToolError as error:
        desk.finish(f"The ticket needs a person: {error}.")
    else:
        desk.finish("The ticket is done.")


if __name__ == "__main__":
    main()
