"""The declared faults of support-routing, each as edits of the reference in every language."""

from __future__ import annotations

from pytest_evalarc.packs.controls import Fault

FAULTS = (
    Fault(
        name="claim-without-actions",
        target="routing",
        description="Says that the ticket is done, and calls no tool at all.",
        edits={
            "python": [("        handle(desk)\n", "        pass\n")],
            "javascript": [("    await handle(desk);\n", "")],
        },
    ),
    Fault(
        name="wrong-ticket",
        target="scope",
        description="Does all of the work on the ticket that was not named.",
        edits={
            "python": [
                (
                    'ticket_id = task["ticket_id"]',
                    'ticket_id = next(i for i in task["ticket_ids"] if i != task["ticket_id"])',
                )
            ],
            "javascript": [
                (
                    "const { ticket_id, routing_rules, note } = desk.task;",
                    "const { ticket_ids, routing_rules, note } = desk.task;\n"
                    "  const ticket_id = ticket_ids.find((id) => id !== desk.task.ticket_id);",
                )
            ],
        },
    ),
    Fault(
        name="wrong-queue",
        target="routing",
        description="Assigns a queue that the rules have for another category.",
        edits={
            "python": [
                (
                    'queue = task["routing_rules"][ticket["category"]]',
                    'rules = task["routing_rules"]\n'
                    '    queue = next(rules[name] for name in rules if name != ticket["category"])',
                )
            ],
            "javascript": [
                (
                    "const queue = routing_rules[ticket.category];",
                    "const others = Object.keys(routing_rules)"
                    ".filter((name) => name !== ticket.category);\n"
                    "  const queue = routing_rules[others[0]];",
                )
            ],
        },
    ),
    Fault(
        name="duplicate-note",
        target="notes",
        description="Adds the note twice, under two request ids, so that both are kept.",
        edits={
            "python": [
                (
                    '    request_id = f"note-{ticket_id}"\n'
                    '    desk.call("add_note", ticket_id=ticket_id, body=task["note"], '
                    "request_id=request_id)\n",
                    '    for request_id in (f"note-{ticket_id}", f"again-{ticket_id}"):\n'
                    '        desk.call("add_note", ticket_id=ticket_id, body=task["note"], '
                    "request_id=request_id)\n",
                )
            ],
            "javascript": [
                (
                    "  const request_id = `note-${ticket_id}`;\n"
                    '  await desk.call("add_note", { ticket_id, body: note, request_id });\n',
                    "  for (const request_id of [`note-${ticket_id}`, `again-${ticket_id}`]) {\n"
                    '    await desk.call("add_note", { ticket_id, body: note, request_id });\n'
                    "  }\n",
                )
            ],
        },
    ),
    Fault(
        name="close-unresolved",
        target="closure",
        description="Closes the ticket whether or not its problem is resolved.",
        edits={
            "python": [('    if ticket["resolved"]:\n', "    if True:\n")],
            "javascript": [("  if (ticket.resolved) {\n", "  if (true) {\n")],
        },
    ),
    Fault(
        name="skip-retry",
        target="notes",
        description="Gives the ticket up at an error that a second attempt would have got past.",
        edits={
            "python": [('if not error["retryable"]:', "if True:")],
            "javascript": [("if (!retryable) {", "if (true) {")],
        },
    ),
    Fault(
        name="new-key-on-retry",
        target="notes",
        description="Tries again under a new request id, so that a note kept already is doubled.",
        edits={
            "python": [
                (
                    """                raise ToolError(f"{tool}: {error['code']}")\n""",
                    """                raise ToolError(f"{tool}: {error['code']}")\n"""
                    '            if "request_id" in arguments:\n'
                    '                arguments["request_id"] += "-again"\n',
                )
            ],
            "javascript": [
                (
                    "        throw new ToolError(`${tool}: ${code}`);\n      }\n",
                    "        throw new ToolError(`${tool}: ${code}`);\n      }\n"
                    '      if ("request_id" in parameters) {\n'
                    '        parameters.request_id += "-again";\n'
                    "      }\n",
                )
            ],
        },
    ),
)
