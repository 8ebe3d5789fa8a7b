"""What is set is there for later processes."""


def test_set_persists(submission):
    """Every call runs in a process of its own, so only the file can carry a value."""
    path = str(submission.scratch / "app.settings")

    submission.call("settings_service.api:set_setting", path, "theme", "light")
    submission.call("settings_service.api:set_setting", path, "mail.port", 25)
    submission.call("settings_service.api:set_setting", path, "theme", "dark")

    settings = submission.call("settings_service.api:list_settings", path)
    assert settings == {"mail.port": 25, "theme": "dark"}
