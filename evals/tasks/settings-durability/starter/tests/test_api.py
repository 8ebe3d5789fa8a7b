"""What the service already does."""

from settings_service.api import list_settings


def test_a_file_that_does_not_exist_holds_no_settings(tmp_path):
    assert list_settings(str(tmp_path / "app.settings")) == {}
