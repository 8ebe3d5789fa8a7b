"""What a setting may be called, and what it may hold."""

import re

MAX_NAME_LENGTH = 64
MAX_TEXT_LENGTH = 1000

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class InvalidSetting(ValueError):
    """A name, a value or an imported text breaks a rule of this service."""


def check_name(name: object) -> None:
    """Refuse a name that breaks the naming rule.

    A name is one or more words joined by dots, as `mail` or `mail.host`. A word is
    a lower-case letter, followed by lower-case letters, digits and underscores.
    The whole name has at most `MAX_NAME_LENGTH` characters.

    Raises:
        InvalidSetting: The name breaks this rule.
    """
    if (
        not isinstance(name, str)
        or len(name) > MAX_NAME_LENGTH
        or not _NAME.fullmatch(name)
    ):
        raise InvalidSetting(f"not a name for a setting: {name!r}")


def check_value(value: object) -> None:
    """Refuse a value that a setting may not hold.

    A value is what JSON can hold: None, a boolean, an integer, a finite float, a
    text, a list of values, or a dict from texts to values. A text that is a value,
    at any depth, has at most `MAX_TEXT_LENGTH` characters.

    Raises:
        InvalidSetting: The value, or a value inside it, is anything else.
    """
    raise NotImplementedError
