"""A text that is no duration is refused, also when it begins like one."""

import pytest


def test_nonsense_is_refused(submission):
    """A function that gives up on everything must not pass, so one good call comes first."""
    assert submission.call("durations:seconds", "5m") == 300

    for text in ["", "h", "90", "30m1h", "1h later", "-5m", "1.5h"]:
        with pytest.raises(submission.Raised) as caught:
            submission.call("durations:seconds", text)
        assert caught.value.type == "ValueError", text
