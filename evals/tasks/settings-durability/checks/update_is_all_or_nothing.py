"""An update with one bad value changes nothing."""

import pytest


def test_update_is_all_or_nothing(submission):
    """The bad value comes last, so the good ones before it had their chance."""
    path = str(submission.scratch / "app.settings")
    submission.call("settings_service.api:set_setting", path, "theme", "light")
    changes = {"theme": "dark", "zoom": 2, "motto": "x" * 1001}

    with pytest.raises(submission.Raised):
        submission.call("settings_service.api:update_settings", path, changes)

    settings = submission.call("settings_service.api:list_settings", path)
    assert settings == {"theme": "light"}
