"""Whether a batch that is gone on with, or looked at again, is the one that is asked for."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from pytest_evalarc.errors import UsageError
from pytest_evalarc.model.base import Model


def require_same(
    kept: Model,
    wanted: Model,
    *,
    where: str = "--evalarc-batch",
    hint: str = "choose another name for the batch, or ask for the same again",
) -> None:
    """Refuse a batch that was planned otherwise.

    Args:
        kept: The plan of the batch.
        wanted: The plan that this session would make.
        where: The option that names the batch.
        hint: What the user can do.

    Raises:
        UsageError: Names the first field that differs.
    """
    field = difference(kept, wanted)
    if field is not None:
        raise UsageError(where, f"the batch was planned with another {field}", hint)


def difference(kept: object, wanted: object) -> str | None:
    """Return the first field in which two documents of a kind differ, as `task.content_hash`."""
    for name in _fields(wanted):
        before, now = getattr(kept, name), getattr(wanted, name)
        if type(before) is type(now) and _fields(now):
            inner = difference(before, now)
            if inner is not None:
                return f"{name}.{inner}"
        elif before != now:
            return name
    return None


def _fields(value: object) -> tuple[str, ...]:
    """Return the fields of a document or of a part of one; of all else there are none."""
    if isinstance(value, Model):
        return tuple(type(value).model_fields)
    return tuple(field.name for field in fields(value)) if is_dataclass(value) else ()
