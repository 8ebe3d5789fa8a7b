"""The Messages API of Anthropic, as Claude Code uses it: requests read, turns rendered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .conversation import Conversation
from .scripts import (
    Broken,
    Edit,
    Error,
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
    Tool,
    Turn,
    Write,
)
from .wire import Answer, Event, pieces

SESSION_HEADER = "x-claude-code-session-id"
LONGEST_COMMAND_MS = 600_000
"""What the client grants a command at most; two minutes unless asked."""

_FOLDER = re.compile(r"^\W*(?:Primary w|W)orking directory: (.+)$", re.MULTILINE)
_SKILLS = "available for use with the Skill tool"
_SKILL = re.compile(r"^- ([\w:.-]+?)(?:: .*)?$", re.MULTILINE)

_ERRORS = {
    400: ("invalid_request_error", "messages: the request is not valid"),
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your API key does not have permission to use this model."),
    404: ("not_found_error", "model: {model}"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}
_NO_CREDIT = "Your credit balance is too low to access the Anthropic API."


# A request.


def conversation(body: Mapping[str, Any]) -> Conversation:
    """Return what a request of the Messages API tells of its session."""
    messages = body.get("messages", [])
    roles = [message["role"] for message in messages]
    first = roles.index("assistant") if "assistant" in roles else len(messages)
    said = [*_texts(body.get("system", "")), *_all_texts(messages[:first])]
    opening = "\n".join(said)
    folder = _FOLDER.search(opening)
    return Conversation(
        opening=opening,
        folder=folder and folder[1].strip(),
        skills=dict(_skills(said)),
        tools=frozenset(tool["name"] for tool in body.get("tools", ())),
        turn=roles.count("assistant"),
        results=tuple(_results(messages)),
    )


def _all_texts(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield from _texts(message["content"])


def _texts(content: str | list[dict[str, Any]]) -> Iterator[str]:
    """Yield the texts of what is a text itself, or a list of blocks."""
    if isinstance(content, str):
        yield content
    else:
        yield from (block["text"] for block in content if block["type"] == "text")


def _skills(said: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each offered skill by its plain name; a plugin's is called by both their names."""
    for text in said:
        if _SKILLS in text:
            for name in _SKILL.findall(text):
                yield name.rpartition(":")[2], name


def _results(messages: list[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        for block in message["content"]:
            if isinstance(block, dict) and block["type"] == "tool_result":
                yield "\n".join(_texts(block.get("content", "")))


# An answer.


def stream(
    turn: Turn, session: Conversation, *, model: str, stamp: str
) -> Iterator[Event | Broken | Hang]:
    """Yield the events of a turn; an interruption that is the connection's is yielded itself."""
    start = {**_message(turn, session, model=model, stamp=stamp, steps=()), "stop_reason": None}
    # The count of the answer is not known when it begins: the real one sends this, too.
    start["usage"] = {**start["usage"], "output_tokens": 1}
    yield Event("message_start", {"message": start})
    for index, step in enumerate(turn.steps):
        if isinstance(step, Broken | Hang):
            yield step
            return
        if isinstance(step, Fail):
            yield Event("error", {"error": {"type": "api_error", "message": step.message}})
            return
        block = _block(step, session, call=f"toolu_{stamp}_{index}")
        yield from _block_events(index, block)
    delta = {"stop_reason": _stop_reason(turn), "stop_sequence": None}
    yield Event("message_delta", {"delta": delta, "usage": _usage(turn)})
    yield Event("message_stop", {})


def whole(turn: Turn, session: Conversation, *, model: str, stamp: str) -> Answer:
    """Return a turn that was not asked for as a stream."""
    for step in turn.steps:
        if isinstance(step, Fail):
            return refusal(Error(500, step.message), model=model, stamp=stamp)
    body = _message(turn, session, model=model, stamp=stamp, steps=turn.steps)
    return Answer(body=body, headers={"request-id": f"req_{stamp}"})


def refusal(step: Refusal, *, model: str, stamp: str) -> Answer:
    """Return what the API answers instead of a turn."""
    if isinstance(step, Quota):
        step = Error(400, _NO_CREDIT)
    kind, message = _ERRORS.get(step.status, ("api_error", "Internal server error"))
    headers = {"request-id": f"req_{stamp}"}
    if step.status == 429:
        headers |= {"retry-after": "1", "anthropic-ratelimit-requests-remaining": "0"}
    error = {"type": kind, "message": step.message or message.format(model=model)}
    body = {"type": "error", "error": error, "request_id": f"req_{stamp}"}
    return Answer(status=step.status, body=body, headers=headers)


def _message(
    turn: Turn, session: Conversation, *, model: str, stamp: str, steps: tuple[Step, ...]
) -> dict[str, Any]:
    blocks = [
        _block(step, session, call=f"toolu_{stamp}_{index}") for index, step in enumerate(steps)
    ]
    return {
        "id": f"msg_{stamp}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": _stop_reason(turn),
        "stop_sequence": None,
        "usage": _usage(turn),
    }


def _usage(turn: Turn) -> dict[str, int]:
    return {
        "input_tokens": turn.usage.input_tokens,
        "cache_creation_input_tokens": turn.usage.cache_write_tokens,
        "cache_read_input_tokens": turn.usage.cache_read_tokens,
        "output_tokens": turn.usage.output_tokens,
    }


def _stop_reason(turn: Turn) -> str:
    return "tool_use" if any(isinstance(step, Tool) for step in turn.steps) else "end_turn"


def _block(step: Step, session: Conversation, *, call: str) -> dict[str, Any]:
    if isinstance(step, Say):
        return {"type": "text", "text": step.text}
    if isinstance(step, Think):
        return {"type": "thinking", "thinking": step.text, "signature": f"signature-of-{call}"}
    name, given = _call(step, session)
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def _call(step: Step, session: Conversation) -> tuple[str, dict[str, Any]]:
    """Return a tool of Claude Code and what it is given."""
    match step:
        case Write(path, content):
            return "Write", {"file_path": session.path(path), "content": content}
        case Edit(path, old, new):
            path = session.path(path)
            return "Edit", {"file_path": path, "old_string": old, "new_string": new}
        case Read(path):
            return "Read", {"file_path": session.path(path)}
        case Run(command):
            return "Bash", {"command": command, "timeout": LONGEST_COMMAND_MS}
        case Skill(name):
            return "Skill", {"skill": session.skills.get(name, name)}
    raise TypeError(f"{step} is no call of a tool")


def _block_events(index: int, block: dict[str, Any]) -> Iterator[Event]:
    """Yield a block as the API sends it: empty first, then in pieces."""
    empty, deltas = _in_pieces(block)
    yield Event("content_block_start", {"index": index, "content_block": {**block, **empty}})
    for delta in deltas:
        yield Event("content_block_delta", {"index": index, "delta": delta})
    yield Event("content_block_stop", {"index": index})


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what of a block is empty at first, and what then fills it."""
    match block["type"]:
        case "text":
            texts = pieces(block["text"])
            return {"text": ""}, [{"type": "text_delta", "text": text} for text in texts]
        case "thinking":
            texts = pieces(block["thinking"])
            thoughts = [{"type": "thinking_delta", "thinking": text} for text in texts]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"thinking": "", "signature": ""}, [*thoughts, signed]
    texts = pieces(json.dumps(block["input"]))
    return {"input": {}}, [{"type": "input_json_delta", "partial_json": text} for text in texts]
