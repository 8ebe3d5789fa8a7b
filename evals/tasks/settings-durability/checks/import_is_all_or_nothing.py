"""An import with one bad value changes nothing, and replaces nothing."""

import json

import pytest


def test_import_is_all_or_nothing(submission):
    """An import that replaces must not lose the old settings to a refused text."""
    path = str(submission.scratch / "app.settings")
    submission.call("settings_service.api:set_setting", path, "theme", "light")
    text = json.dumps({"theme": "dark", "zoom": 2, "motto": "x" * 1001})

    for replace in (False, True):
        with pytest.raises(submission.Raised):
            submission.call(
                "settings_service.api:import_settings", path, text, replace=replace
            )

        settings = submission.call("settings_service.api:list_settings", path)
        assert settings == {"theme": "light"}
