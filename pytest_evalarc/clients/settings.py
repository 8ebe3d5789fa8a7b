"""What the table of a client may say, read into the model that describes it."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar

from pydantic import StringConstraints, ValidationError

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.files.text import printable
from pytest_evalarc.model.base import JsonObject, Model

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"

Variable = Annotated[str, StringConstraints(pattern=_VARIABLE)]
"""The name of a variable of the environment."""

M = TypeVar("M", bound=Model)


def read_settings(model: type[M], settings: JsonObject, *, where: str) -> M:
    """Return the settings of a client.

    Args:
        model: Describes them; each key is one setting.
        settings: As the client's table, or an option, gives them.
        where: What a message calls the client, as `client my-agent`.

    Raises:
        UsageError: There is no such setting, or it cannot be that.
    """
    known = tuple(model.model_fields)
    for name in settings:
        if name not in known:
            raise UsageError(where, f"takes no setting {name!r}", nearest(name, known))
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        fault = error.errors()[0]
        name = str(fault["loc"][0])
        shown = printable(repr(settings[name]), limit=200)
        said = fault["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where}: setting {name}", f"is {shown}", said) from error


def require_variables(names: tuple[str, ...], *, where: str) -> tuple[str, ...]:
    """Return the names of variables that carry a client's credentials.

    Raises:
        UsageError: One cannot be the name of a variable.
    """
    for name in names:
        if not re.fullmatch(_VARIABLE, name):
            shown = printable(name, limit=100)
            raise UsageError(f"{where}: key_env", f"{shown!r} is no variable", "write its name")
    return names
