"""Every function that takes a name refuses a bad one."""

import pytest


def test_names_are_checked(submission):
    """The rule is one rule: no way in may be laxer than another."""
    path = str(submission.scratch / "app.settings")
    longest = "a" * 64
    submission.call("settings_service.api:set_setting", path, longest, 1)

    for function, *arguments in [
        ("set_setting", "Mail", 1),
        ("set_setting", "mail.host\n", 1),
        ("set_setting", longest + "a", 1),
        ("update_settings", {"mail..host": 1}),
        ("get_setting", ""),
        ("delete_setting", "mail host"),
        ("list_settings", "mail."),
    ]:
        with pytest.raises(submission.Raised) as caught:
            submission.call(f"settings_service.api:{function}", path, *arguments)
        assert caught.value.type == "InvalidSetting", (function, arguments)

    settings = submission.call("settings_service.api:list_settings", path)
    assert settings == {longest: 1}
