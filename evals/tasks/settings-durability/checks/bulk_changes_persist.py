"""What is updated or imported is there for later processes."""


def test_bulk_changes_persist(submission):
    """Each way to change many settings has to reach the file on its own."""
    updated = str(submission.scratch / "updated.settings")
    imported = str(submission.scratch / "imported.settings")
    changes = {"mail.host": "localhost", "mail.port": 25}
    text = '{"theme": "dark", "zoom": 1.5}'

    submission.call("settings_service.api:update_settings", updated, changes)
    count = submission.call("settings_service.api:import_settings", imported, text)

    assert count == 2
    assert submission.call("settings_service.api:list_settings", updated) == changes
    assert submission.call("settings_service.api:list_settings", imported) == {
        "theme": "dark",
        "zoom": 1.5,
    }

    submission.call("settings_service.api:import_settings", updated, text, replace=True)

    assert submission.call("settings_service.api:list_settings", updated) == {
        "theme": "dark",
        "zoom": 1.5,
    }
