"""A section holds its own setting and those below it, sorted by name."""


def test_sections_are_listed(submission):
    """Names that only begin alike belong to different sections."""
    path = str(submission.scratch / "app.settings")
    changes = {
        "mailbox": 1,
        "mail.port": 25,
        "mail_all": 2,
        "mail.host": "a",
        "mail": 3,
    }
    submission.call("settings_service.api:update_settings", path, changes)

    mail = submission.call("settings_service.api:list_settings", path, "mail")
    port = submission.call("settings_service.api:list_settings", path, "mail.port")
    everything = submission.call("settings_service.api:list_settings", path)

    assert list(mail.items()) == [("mail", 3), ("mail.host", "a"), ("mail.port", 25)]
    assert port == {"mail.port": 25}
    assert list(everything) == sorted(changes)
