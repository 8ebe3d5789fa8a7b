"""What is deleted stays deleted in later processes."""


def test_delete_persists(submission):
    """A deletion is a change too, and the other settings must outlive it."""
    path = str(submission.scratch / "app.settings")
    submission.call("settings_service.api:set_setting", path, "theme", "dark")
    submission.call("settings_service.api:set_setting", path, "mail.port", 25)

    first = submission.call("settings_service.api:delete_setting", path, "theme")
    second = submission.call("settings_service.api:delete_setting", path, "theme")

    assert (first, second) == (True, False)
    settings = submission.call("settings_service.api:list_settings", path)
    assert settings == {"mail.port": 25}
