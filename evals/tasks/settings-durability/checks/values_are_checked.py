"""A value that breaks the rule is refused, however deep it lies."""

import pytest


def test_values_are_checked(submission):
    """A number can overflow to infinity only on its way through a JSON text."""
    path = str(submission.scratch / "app.settings")
    longest = "x" * 1000
    submission.call("settings_service.api:set_setting", path, "motto", [longest])

    for function, *arguments in [
        ("set_setting", "motto", longest + "x"),
        ("update_settings", {"mottos": {"first": [longest + "x"]}}),
        ("import_settings", '{"zoom": {"steps": [1, 1e999]}}'),
    ]:
        with pytest.raises(submission.Raised) as caught:
            submission.call(f"settings_service.api:{function}", path, *arguments)
        assert caught.value.type == "InvalidSetting", (function, arguments)

    settings = submission.call("settings_service.api:list_settings", path)
    assert settings == {"motto": [longest]}
