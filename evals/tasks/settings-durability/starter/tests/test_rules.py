"""The naming rule."""

import pytest

from settings_service.rules import InvalidSetting, check_name


def test_dotted_words_are_a_name():
    check_name("mail.host_2")


@pytest.mark.parametrize("name", ["", "Mail", "mail..host", "mail host", 7])
def test_anything_else_is_refused(name):
    with pytest.raises(InvalidSetting):
        check_name(name)
