"""Labels of tickets."""


def label(team: str, number: int) -> str:
    """Return the label of a ticket; the team of one that nobody has taken is empty."""
    owner = team or "desk"
    return f"{owner.upper()}/{number:05}"
