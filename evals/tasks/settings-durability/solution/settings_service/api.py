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

import json
from collections.abc import Iterator
from contextlib import contextmanager

from settings_service._store import SettingsStore, open_settings
from settings_service.rules import InvalidSetting, check_name, check_value


def get_setting(path: str, name: str, default: object = None) -> object:
    """Return the value of a setting, or `default` when there is no such setting.

    None, False, 0 and empty values are values like any other.

    Raises:
        InvalidSetting: The name breaks the naming rule.
    """
    check_name(name)
    with open_settings(path) as store:
        return store.get(name, default)


def list_settings(path: str, section: str = "") -> dict[str, object]:
    """Return the settings of a section as a dict, sorted by name.

    Raises:
        InvalidSetting: The section is not empty and breaks the naming rule.
    """
    if section:
        check_name(section)
    with open_settings(path) as store:
        settings = sorted(store.items())
    return {name: value for name, value in settings if _is_in(section, name)}


def set_setting(path: str, name: str, value: object) -> None:
    """Give one setting a value, whether or not it had one.

    Raises:
        InvalidSetting: The name or the value breaks its rule.
    """
    check_name(name)
    check_value(value)
    with _changes(path) as store:
        store.set(name, value)


def update_settings(path: str, changes: dict[str, object]) -> None:
    """Give several settings their values: all of them, or none.

    Args:
        path: The file.
        changes: New values by name; settings that it does not name stay.

    Raises:
        InvalidSetting: At least one name or value breaks its rule.
    """
    _apply(path, changes)


def delete_setting(path: str, name: str) -> bool:
    """Delete one setting, and return whether there was one to delete.

    Raises:
        InvalidSetting: The name breaks the naming rule.
    """
    check_name(name)
    with _changes(path) as store:
        try:
            store.delete(name)
        except KeyError:
            return False
    return True


def export_settings(path: str, section: str = "") -> str:
    """Return the settings of a section as the text of one JSON object.

    It holds what `list_settings` returns, in the same order.

    Raises:
        InvalidSetting: The section is not empty and breaks the naming rule.
    """
    return json.dumps(list_settings(path, section))


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
    settings = _parse(text)
    _apply(path, settings, replace=replace)
    return len(settings)


@contextmanager
def _changes(path: str) -> Iterator[SettingsStore]:
    """Open the store for changes that are kept together, or not at all on an error."""
    with open_settings(path) as store:
        yield store
        store.commit()


def _apply(path: str, settings: dict[str, object], *, replace: bool = False) -> None:
    for name, value in settings.items():
        check_name(name)
        check_value(value)
    with _changes(path) as store:
        if replace:
            for name in dict(store.items()):
                store.delete(name)
        for name, value in settings.items():
            store.set(name, value)


def _parse(text: str) -> dict[str, object]:
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise InvalidSetting(f"not a JSON text: {error}") from error
    if not isinstance(settings, dict):
        raise InvalidSetting("not a JSON object of settings")
    return settings


def _is_in(section: str, name: str) -> bool:
    return not section or name == section or name.startswith(f"{section}.")
