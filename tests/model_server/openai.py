"""The Responses API of OpenAI, as Codex uses it: requests read, turns rendered."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from .conversation import Conversation
from .scripts import (
    Broken,
    Edit,
    Fail,
    Hang,
    Quota,
    Read,
    Refusal,
    Run,
    Say,
    Skill,
    Step,
    Think,
    Turn,
    Usage,
    Wait,
    Write,
)
from .wire import Answer, Event, pieces

SESSION_HEADER = "session-id"
LONGEST_COMMAND_MS = 30_000
"""After which the client hands a running command back, at the latest."""
LONGEST_WAIT_MS = 300_000
"""How long it waits for one that it has handed back."""

_FOLDER = re.compile(r"<cwd>(.+?)</cwd>")
_SKILL_ROOT = re.compile(r"^- `(\w+)` = `(.+)`$", re.MULTILINE)
_SKILL = re.compile(r"^- ([\w:.-]+?): .*\(file: (.+)\)$", re.MULTILINE)
_STILL_RUNS = re.compile(r"^Process running with session ID (\d+)$", re.MULTILINE)
_MODEL_ITEMS = ("function_call", "custom_tool_call", "reasoning")
_WAIT = "write_stdin"

_ERRORS = {
    400: ("invalid_request_error", None, "The request is not valid."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("permission_error", "model_not_allowed", "You are not allowed to use this model."),
    404: (
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", "server_error", "The server had an error."),
    503: ("server_error", "server_is_overloaded", "The server is overloaded."),
    529: ("server_error", "server_is_overloaded", "The server is overloaded."),
}
_NO_CREDIT = "You exceeded your current quota, please check your plan and billing details."


# A request.


def conversation(body: Mapping[str, Any]) -> Conversation:
    """Return what a request of the Responses API tells of its session."""
    items = body.get("input", [])
    runs = [(made, list(run)) for made, run in groupby(items, key=_is_of_model)]
    before = runs[0][1] if runs and not runs[0][0] else []
    opening = "\n".join((body.get("instructions") or "", *_texts(before)))
    folder = _FOLDER.search(opening)
    last_made, last_run = runs[-1] if runs else (False, [])
    return Conversation(
        opening=opening,
        folder=folder and folder[1],
        skills=dict(_skills(opening)),
        tools=frozenset(tool["name"] for tool in body.get("tools", ()) if "name" in tool),
        turn=sum(made and not _only_waits(run) for made, run in runs),
        results=tuple(_results(items)),
        unfinished=() if last_made else tuple(_unfinished(last_run)),
    )


def _is_of_model(item: Mapping[str, Any]) -> bool:
    return item["type"] in _MODEL_ITEMS or item.get("role") == "assistant"


def _only_waits(run: list[dict[str, Any]]) -> bool:
    return all(item.get("name") == _WAIT for item in run)


def _texts(items: list[dict[str, Any]]) -> Iterator[str]:
    for item in items:
        for part in item.get("content") or ():
            yield part.get("text", "")


def _skills(opening: str) -> Iterator[tuple[str, str]]:
    """Yield each offered skill by name, with the path of its file."""
    roots = dict(_SKILL_ROOT.findall(opening))
    for name, file in _SKILL.findall(opening):
        root, slash, rest = file.partition("/")
        yield name, f"{roots.get(root, root)}{slash}{rest}"


def _results(items: list[dict[str, Any]]) -> Iterator[str]:
    for item in items:
        if item["type"].endswith("_call_output"):
            output = item["output"]
            yield output if isinstance(output, str) else "".join(_texts([{"content": output}]))


def _unfinished(run: list[dict[str, Any]]) -> Iterator[int]:
    for result in _results(run):
        for number in _STILL_RUNS.findall(result):
            yield int(number)


# An answer.


def stream(
    turn: Turn, session: Conversation, *, model: str, stamp: str
) -> Iterator[Event | Broken | Hang]:
    """Yield the events of a turn; an interruption that is the connection's is yielded itself."""
    response = {"id": f"resp_{stamp}", "object": "response", "model": model, "output": []}
    yield Event("response.created", {"response": {**response, "status": "in_progress"}})
    output: list[dict[str, Any]] = []
    for step in turn.steps:
        if isinstance(step, Broken | Hang):
            yield step
            return
        if isinstance(step, Fail):
            error = {"code": "server_error", "message": step.message}
            failed = {**response, "status": "failed", "error": error}
            yield Event("response.failed", {"response": failed})
            return
        item = _item(step, session, name=f"{stamp}_{len(output)}")
        yield from _item_events(len(output), item)
        output.append(item)
    completed = {**response, "status": "completed", "output": output, "usage": _usage(turn.usage)}
    yield Event("response.completed", {"response": completed})


def whole(turn: Turn, session: Conversation, **_: str) -> Answer:
    """Refuse it: Codex takes streams alone."""
    raise ValueError(f"Codex asked for {turn} of {session.folder}, and not as a stream")


def refusal(step: Refusal, *, model: str, stamp: str) -> Answer:
    """Return what the API answers instead of a turn."""
    status, message = (429, _NO_CREDIT) if isinstance(step, Quota) else (step.status, step.message)
    kind, code, usual = _ERRORS.get(status, ("server_error", None, "The server had an error."))
    if isinstance(step, Quota):
        kind = code = "insufficient_quota"
    headers = {"x-request-id": f"req_{stamp}"}
    if status == 429:
        headers |= {"retry-after": "1", "x-ratelimit-remaining-requests": "0"}
    error = {
        "message": message or usual.format(model=model),
        "type": kind,
        "param": None,
        "code": code,
    }
    return Answer(status=status, body={"error": error}, headers=headers)


def _usage(usage: Usage) -> dict[str, Any]:
    """Return the usage as this API counts it: what came from a cache, or went there, is input."""
    cached, written = usage.cache_read_tokens, usage.cache_write_tokens
    given = usage.input_tokens + cached + written
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + usage.output_tokens,
    }


def _item(step: Step, session: Conversation, *, name: str) -> dict[str, Any]:
    """Return what the model says or does in a step, with a tool of Codex."""
    match step:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item = {"type": "message", "role": "assistant", "content": content}
            return {**item, "id": f"msg_{name}", "status": "completed"}
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            item = {"type": "reasoning", "summary": summary, "encrypted_content": f"of-{name}"}
            return {**item, "id": f"rs_{name}"}
        case Write(path, content):
            return _patch(f"Add File: {path}", _marked("+", content), session, name=name)
        case Edit(path, old, new):
            lines = ["@@", *_marked("-", old), *_marked("+", new)]
            return _patch(f"Update File: {path}", lines, session, name=name)
        case Wait(number):
            given = {"session_id": number, "chars": "", "yield_time_ms": LONGEST_WAIT_MS}
            return _function_call(_WAIT, given, name=name)
    given = {"cmd": _command(step, session), "yield_time_ms": LONGEST_COMMAND_MS}
    return _function_call("exec_command", given, name=name)


def _command(step: Step, session: Conversation) -> str:
    """Return the command for what Codex has no tool for but the shell."""
    match step:
        case Run(command):
            return command
        case Read(path):
            return f"cat {shlex.quote(path)}"
        case Skill(skill):
            # Where it is not offered, this is where a client would install it.
            file = session.skills.get(skill, f".agents/skills/{skill}/SKILL.md")
            return f"cat {shlex.quote(file)}"
    raise TypeError(f"{step} is no step of an answer")


def _marked(mark: str, text: str) -> list[str]:
    return [f"{mark}{line}" for line in text.split("\n")[:-1]]


def _patch(head: str, lines: list[str], session: Conversation, *, name: str) -> dict[str, Any]:
    if "apply_patch" not in session.tools:
        raise ValueError("Codex offers no apply_patch to a model that it does not know: name one")
    text = "\n".join(("*** Begin Patch", f"*** {head}", *lines, "*** End Patch", ""))
    item = {"type": "custom_tool_call", "name": "apply_patch", "input": text}
    return {**item, "id": f"ctc_{name}", "call_id": f"call_{name}", "status": "completed"}


def _function_call(tool: str, given: dict[str, Any], *, name: str) -> dict[str, Any]:
    item = {"type": "function_call", "name": tool, "arguments": json.dumps(given)}
    return {**item, "id": f"fc_{name}", "call_id": f"call_{name}", "status": "completed"}


def _item_events(index: int, item: dict[str, Any]) -> Iterator[Event]:
    """Yield an item as the API sends it: a message begins empty, and comes in pieces."""
    if item["type"] == "message":
        (content,) = item["content"]
        begun = {**item, "content": [], "status": "in_progress"}
        yield Event("response.output_item.added", {"output_index": index, "item": begun})
        place = {"output_index": index, "content_index": 0, "item_id": item["id"]}
        for piece in pieces(content["text"]):
            yield Event("response.output_text.delta", {**place, "delta": piece})
    yield Event("response.output_item.done", {"output_index": index, "item": item})
