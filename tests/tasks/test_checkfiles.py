"""A check file holds exactly one test."""

from __future__ import annotations

import pytest

from pytest_evalarc.tasks.checkfiles import check_files, python_flaw


@pytest.mark.parametrize(
    "source",
    [
        "def test_one(): ...",
        "def helper(): ...\ndef test_one(): helper()",
        "class TestOne:\n    def helper(self): ...\n    def test_one(self): ...",
        "import unittest\nclass Case(unittest.TestCase):\n    def test_one(self): ...",
        "if True:\n    def test_one(): ...",
        "class Helper:\n    def test_no(self): ...\ndef test_one(): ...",
        "def test_one():\n    def test_inner(): ...",
        "import pytest\n@pytest.fixture\ndef box(): ...\ndef test_one(box): ...",
        "def test_one():\n    assert re.match('\\d', '1')",
        "\ufeffdef test_one(): ...",
        "# coding: latin-1\ndef test_one(): ...",
    ],
)
def test_one_test_in_any_of_pytests_forms_is_a_check(source: str) -> None:
    """Authors write tests as they always do; helpers and fixtures are no tests."""
    assert python_flaw(source.encode()) is None


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        ("", None, "holds no test"),
        ("def check(): ...", None, "holds no test"),
        ("class Test:\n    def helper(self): ...", None, "holds no test"),
        ("def test_a(): ...\n\ndef test_b(): ...", 3, "holds 2 tests (test_a, test_b)"),
        ("def test_a(): ...\nclass TestB:\n    def test_b(self): ...", 3, "holds 2 tests"),
        ("class TestA:\n    class TestB:\n        def test_b(self): ...\n    def test_a(self): ...",
         4, "holds 2 tests"),
        ("try:\n    def test_a(): ...\nexcept E:\n    def test_b(): ...", 4, "holds 2 tests"),
        ("def test_a(): ...\ndef test_a(): ...", 2, "holds 2 tests"),
        ("async def test_a(): ...", 1, "its test is async"),
        ("@pytest.mark.parametrize('a', [1])\ndef test_a(a): ...", 1, "its test is parametrised"),
        ("pytestmark = pytest.mark.parametrize('a', [1])\ndef test_a(a): ...", 1, "parametrised"),
        ("def pytest_generate_tests(m): ...\ndef test_a(): ...", 1, "its test is parametrised"),
        ("@pytest.fixture(params=[1, 2])\ndef b(): ...\ndef test_a(b): ...", 2, "parametrised"),
        ("def test_a(:", 1, "is not Python"),
        ("def test_a(): ...\nx = '\0'", None, "is not Python"),
        ("x = " + "(" * 5000, 1, "is not Python"),
    ],
)  # fmt: skip
def test_anything_but_one_test_is_told_with_its_line(
    source: str, line: int | None, problem: str
) -> None:
    """A check with no test passes by absence, and one with two hides half of what failed."""
    flaw = python_flaw(source.encode())

    assert flaw is not None
    assert problem in flaw.problem
    assert line is None or flaw.line == line
    assert flaw.hint


@pytest.mark.parametrize(
    ("toolchain", "file", "name"),
    [
        ("python", "settings_persist.py", "settings_persist"),
        ("python", "settings_persist.rs", None),
        ("rust", "settings_persist.rs", "settings_persist"),
        ("node", "settings_persist.test.mjs", "settings_persist"),
        ("node", "settings_persist.mjs", None),
        ("zig", "settings_persist.test.zig", "settings_persist"),
    ],
)
def test_a_checks_id_is_its_files_stem(toolchain: str, file: str, name: str | None) -> None:
    """Items, results and `[checks.<id>]` all meet in this one name."""
    assert check_files(toolchain).id_of(file) == name
