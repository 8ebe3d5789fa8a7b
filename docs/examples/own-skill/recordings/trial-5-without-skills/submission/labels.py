"""Labels of tickets."""


def label(team: str, number: int) -> str:
    """Return the label of a ticket; the team of one that nobody has taken is empty."""
    return f"{team.upper()}-{number}"
