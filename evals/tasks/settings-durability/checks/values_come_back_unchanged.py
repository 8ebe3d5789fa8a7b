"""A value is read as it was given, and the default only when there is none."""

import json


def test_values_come_back_unchanged(submission):
    """Empty values, and values that Python takes for equal, are the ones to lose."""
    path = str(submission.scratch / "app.settings")
    submission.call("settings_service.api:set_setting", path, "beep", 1)
    changes = {
        "beep": True,
        "nothing": None,
        "zero": 0,
        "words": {"größe": ["", [], {}, False]},
    }

    submission.call("settings_service.api:update_settings", path, changes)

    settings = submission.call("settings_service.api:list_settings", path)
    # As texts, because True == 1 in Python.
    assert json.dumps(settings) == json.dumps(dict(sorted(changes.items())))
    for name, value in [("nothing", None), ("zero", 0), ("absent", "default")]:
        found = submission.call(
            "settings_service.api:get_setting", path, name, "default"
        )
        assert found == value, name
