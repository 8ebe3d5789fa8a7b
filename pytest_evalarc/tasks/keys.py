"""The keys of task.toml: what may stand at each, and what it means.

The loader refuses every key that is not here, and the JSON Schema for editors is made of the same
tables, so an editor marks what the loader would tell.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple, TypeAlias

from pytest_evalarc.model.plain import MOST_CHARACTERS, NAME_PATTERN
from pytest_evalarc.model.task import Deadlines, Limits, PackRef

Shape: TypeAlias = Mapping[str, Any]
"""What a value must be, as JSON Schema; each is what one reader of `fields.Table` accepts."""

KINDS = ("capability", "regression")
OF_THE_PACK = ("toolchain", "editable", "fmt_check", "weights", "checks", "mutants")
"""What a pack brings, so that a task of its own may not say it."""

_ANY_TEXT: Shape = {"type": "string"}
_TEXT: Shape = {"type": "string", "pattern": r"\S"}
_NAME: Shape = {"type": "string", "pattern": NAME_PATTERN, "maxLength": MOST_CHARACTERS}
_FLAG: Shape = {"type": "boolean"}
_NUMBER: Shape = {"type": "number", "exclusiveMinimum": 0, "maximum": sys.float_info.max}
_WHOLE: Shape = {"type": "integer", "exclusiveMinimum": 0, "maximum": 2**63 - 1}
_SEED: Shape = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
_SEEDS: Shape = {"type": "array", "items": _SEED, "minItems": 1, "uniqueItems": True}
_TEXTS: Shape = {"type": "array", "items": _TEXT, "uniqueItems": True}
_NAMES: Shape = {"type": "array", "items": _NAME, "uniqueItems": True}


class Key(NamedTuple):
    """One key of a table."""

    shape: Shape
    meaning: str
    """A sentence for people, which an editor shows."""
    default: object = None
    """What holds without the key; None where that is no value."""


Keys: TypeAlias = Mapping[str, Key]


def _table(keys: Keys, *required: str, **rules: object) -> Shape:
    """Return the shape of a table that has no other keys than these."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {name: _property(key) for name, key in keys.items()},
        **rules,
    }


def _property(key: Key) -> Shape:
    told: dict[str, Any] = {**key.shape, "description": key.meaning}
    return told if key.default is None else {**told, "default": key.default}


def _bounds(defaults: Mapping[str, float], meanings: Mapping[str, str]) -> Keys:
    """Return the keys of a table of bounds, which are those of its dataclass."""
    return {
        name: Key(_WHOLE if type(usual) is int else _NUMBER, meanings[name], usual)
        for name, usual in defaults.items()
    }


def _one_of(first: str, second: str) -> dict[str, Any]:
    return {"oneOf": [{"required": [first]}, {"required": [second]}]}


DEADLINES: Final = _bounds(
    asdict(Deadlines()),
    {
        "setup": "Seconds for preparing a trial.",
        "agent": "Seconds of the client's session.",
        "grading": "Seconds of all grading steps and checks together.",
        "check": "Seconds of each hidden check that names none of its own.",
    },
)
LIMITS: Final = _bounds(
    asdict(Limits()),
    {
        "memory_mib": "Memory of the whole process tree, in MiB.",
        "processes": "Processes and threads at once.",
        "cpus": "CPU time per second of wall time.",
        "tmp_mib": "Size of each temporary folder, in MiB.",
        "output_mib": "Both output streams of a graded process together, in MiB.",
        "disk_mib": "Size of each file that is written, in MiB.",
    },
)
EXPECTED: Final[Keys] = {
    "installed": Key(_NAMES, "Skills that are there, also after the session."),
    "not_installed": Key(_NAMES, "Skills that are not there."),
    "used": Key(_NAMES, "Skills that the transcript shows to be loaded."),
    "not_used": Key(_NAMES, "Skills that the transcript shows not to be loaded."),
    "hooks": Key(_NAMES, "Hooks that ran."),
}
CHECK: Final[Keys] = {
    "dimension": Key(_NAME, "What the check is a verdict about; by default its id."),
    "deadline": Key(_NUMBER, "Seconds for this check; by default `deadlines.check`."),
    "description": Key(_ANY_TEXT, "For people."),
}
EDIT: Final[Keys] = {
    "file": Key(_TEXT, "The file that is changed, as a path in the project."),
    "find": Key({"type": "string", "minLength": 1}, "A text that occurs exactly once in it."),
    "replace": Key(_ANY_TEXT, "What stands there instead; may be empty."),
}
MUTANT: Final[Keys] = {
    "name": Key(_NAME, "The fault's name."),
    "target": Key(_NAME, "The dimension in which a check must notice it."),
    "description": Key(_ANY_TEXT, "For people."),
    "edits": Key(
        {"type": "array", "minItems": 1, "items": _table(EDIT, *EDIT)},
        "Replacements in files of the reference; stands in place of `overlay`.",
    ),
    "overlay": Key(_TEXT, "A folder of the task whose files are copied over the reference."),
}
PACK: Final[Keys] = {
    "name": Key(_NAME, "The pack."),
    "seeds": Key(_SEEDS, "Each seed runs every case once.", list(PackRef.seeds)),
    "language": Key(_NAME, "Of controls and of the starter; by default the pack's first."),
}
TASK: Final[Keys] = {
    "kind": Key(
        {"enum": list(KINDS)},
        "What a success says: that an agent can do this, or that it still can.",
    ),
    "version": Key(_TEXT, "Of the task; a part of its identity in reports.", "0.1.0"),
    "prompt": Key(_TEXT, "What the client is asked; never names what is measured."),
    "prompt_file": Key(_TEXT, "A text file of the task that holds the prompt."),
    "toolchain": Key(_TEXT, "How a submission is built and tested."),
    "editable": Key(_TEXTS, "Paths in the project that are taken from a submission."),
    "fixtures": Key(_NAMES, "Folders of evals/fixtures that are put beside the project."),
    "plugins": Key(_TEXTS, "What the treatment offers: names below evals/plugins, or paths."),
    "fmt_check": Key(_FLAG, "Whether the formatter must have nothing to change.", False),
    "tags": Key(_NAMES, "What --evalarc-tag selects by; also pytest markers."),
    "weights": Key(
        {"type": "object", "additionalProperties": _NUMBER},
        "Share of each dimension in the score; they sum to 1, and are equal by default.",
    ),
    "deadlines": Key(_table(DEADLINES), "Wall-clock seconds, finite and above 0."),
    "limits": Key(_table(LIMITS), "What each graded process may use."),
    "expected": Key(_table(EXPECTED), "What is expected with the treatment."),
    "checks": Key(
        {"type": "object", "additionalProperties": _table(CHECK)},
        "What a file of checks/ does not say itself, by the check's id.",
    ),
    "mutants": Key(
        {
            "type": "array",
            "items": _table(MUTANT, "name", "target", **_one_of("edits", "overlay")),
        },
        "Declared faults: each is the reference with one change.",
    ),
    "pack": Key(
        _table(PACK, "name"),
        f"A pack that brings {', '.join(OF_THE_PACK[:-1])} and {OF_THE_PACK[-1]}.",
    ),
}

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def task_schema(*, toolchains: Collection[str], packs: Collection[str]) -> dict[str, Any]:
    """Return the JSON Schema of task.toml, in the 2020-12 dialect.

    It accepts every valid task. What needs more than the file to be judged, as a path that leads
    nowhere, is left to validation.

    Args:
        toolchains: Names to offer as `toolchain`; a plugin of the project may bring others.
        packs: Names to offer as `pack.name`; likewise.
    """
    pack = {**PACK, "name": _offering(PACK["name"], packs)}
    keys = {
        **TASK,
        "toolchain": _offering(TASK["toolchain"], toolchains),
        "pack": TASK["pack"]._replace(shape=_table(pack, "name")),
    }
    with_pack = {
        "properties": dict.fromkeys(OF_THE_PACK, False),
        "not": {"required": ["prompt", "prompt_file"]},
    }
    without = {"required": ["toolchain"], **_one_of("prompt", "prompt_file")}
    rules = {"if": {"required": ["pack"]}, "then": with_pack, "else": without}
    return {"$schema": _DIALECT, "title": "task.toml", **_table(keys, "kind", **rules)}


def _offering(key: Key, names: Collection[str]) -> Key:
    """Return a key whose known values an editor completes, and that takes others too."""
    return key._replace(shape={"anyOf": [{"enum": list(names)}, key.shape]})
