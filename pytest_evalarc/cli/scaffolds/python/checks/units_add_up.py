"""Hours, minutes and seconds are added up, whichever of them are there."""


def test_units_add_up(submission):
    """Each call runs in a process of its own, so the code under test shares nothing with this."""
    for text, seconds in [("1h30m", 5400), ("2h", 7200), ("45s", 45), ("1h1m1s", 3661)]:
        assert submission.call("durations:seconds", text) == seconds, text
