"""Durations as people write them."""

import re

_DURATION = re.compile("(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?")


def seconds(text: str) -> int:
    """Return the seconds of a duration such as `1h30m`, `45s` or `2h`.

    A duration has hours, minutes and seconds, in this order. Each is a whole number in the digits
    0 to 9 with its unit, each may be left out, and at least one of them is there.

    Raises:
        ValueError: The text is no duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        raise ValueError(f"no duration: {text!r}")
    hours, minutes, rest = (int(number or 0) for number in found.groups())
    return hours * 3600 + minutes * 60 + rest
