"""Read and change the settings that are kept in one file.

Every function takes the path of that file, which need not exist yet; its folder
does. When a function that changes settings has returned, every later call sees
the change, also one in another process. When it has raised an error, the
settings are what they were before the call.

Names and values follow `settings_service.rules`, in every function alike. A
*section* is a name too: `mail` stands for the setting `mail` itself and for all
settings below it, as `mail.host`, but not for `mailbox`. An empty section stands
for all settings.
"""

from settings_service._store import open_settings


def get_setting(path: str, name: str, default: object = None) -> object:
    """Return the value of a setting, or `default` when there is no such setting.

    None, False, 0 and empty values are values like any other.

    Raises:
        InvalidSetting: The name breaks the naming rule.
    """
    raise NotImplementedError


def list_settings(path: str, section: str = "") -> dict[str, object]:
    """Return the settings of a section as a dict, sorted by name.

    Raises:
        InvalidSetting: The section is not empty and breaks the naming rule.
    """
    if section:
        raise NotImplementedError
    with open_settings(path) as store:
        return dict(sorted(store.items()))


def set_setting(path: str, name: str, value: object) -> None:
    """Give one setting a value, whether or not it had one.

    Raises:
        InvalidSetting: The name or the value breaks its rule.
    """
    raise NotImplementedError


def update_settings(path: str, changes: dict[str, object]) -> None:
    """Give several settings their values: all of them, or none.

    Args:
        path: The file.
        changes: New values by name; settings that it does not name stay.

    Raises:
        InvalidSetting: At least one name or value breaks its rule.
    """
    raise NotImplementedError


def delete_setting(path: str, name: str) -> bool:
    """Delete one setting, and return whether there was one to delete.

    Raises:
        InvalidSetting: The name breaks the naming rule.
    """
    raise NotImplementedError


def export_settings(path: str, section: str = "") -> str:
    """Return the settings of a section as the text of one JSON object.

    It holds what `list_settings` returns, in the same order.

    Raises:
        InvalidSetting: The section is not empty and breaks the naming rule.
    """
    raise NotImplementedError


def import_settings(path: str, text: str, *, replace: bool = False) -> int:
    """Take over the settings of a JSON text: all of them, or none.

    Args:
        path: The file.
        text: One JSON object, values by name, as `export_settings` returns it.
        replace: Whether settings that the text does not name are deleted; else
            they stay.

    Returns:
        How many settings the text holds.

    Raises:
        InvalidSetting: The text is not JSON, or not an object, or at least one
            name or value in it breaks its rule.
    """
    raise NotImplementedError
