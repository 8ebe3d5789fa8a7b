"""An exported section, imported into another file, gives the same settings."""

import json


def test_export_can_be_imported(submission):
    """This is how a user carries settings to another machine."""
    path = str(submission.scratch / "app.settings")
    copy = str(submission.scratch / "copy.settings")
    mail = {"mail": None, "mail.copies": 0, "mail.host": "größe.example"}
    changes = {**mail, "mailbox": "full"}
    submission.call("settings_service.api:update_settings", path, changes)

    text = submission.call("settings_service.api:export_settings", path, "mail")
    submission.call("settings_service.api:import_settings", copy, text)

    assert list(json.loads(text).items()) == list(mail.items())
    assert submission.call("settings_service.api:list_settings", copy) == mail
    copies = submission.call("settings_service.api:get_setting", copy, "mail.copies", 1)
    assert copies == 0
