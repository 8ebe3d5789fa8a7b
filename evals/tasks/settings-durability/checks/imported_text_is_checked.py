"""A text that is not an object of good settings is refused."""

import pytest


def test_imported_text_is_checked(submission):
    """People edit exported files by hand, so anything may come back."""
    path = str(submission.scratch / "app.settings")

    for text in [
        '{"theme": "dark"',
        '["theme", "dark"]',
        '{"Theme": "dark"}',
        '{"zoom": NaN}',
        '{"zoom": -Infinity}',
    ]:
        with pytest.raises(submission.Raised) as caught:
            submission.call("settings_service.api:import_settings", path, text)
        assert caught.value.type == "InvalidSetting", text

    assert submission.call("settings_service.api:list_settings", path) == {}
