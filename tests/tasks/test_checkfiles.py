"""A check file holds exactly one test."""

from __future__ import annotations

import pytest

from pytest_evalarc.tasks.checkfiles import check_files, node_flaw, python_flaw


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


@pytest.mark.parametrize(
    "source",
    [
        "test('a', () => {});",
        "it('a', () => {});",
        "#!/usr/bin/env node\nimport test from 'node:test';\ntest('a', () => {});",
        "import { it, test } from 'node:test';\nawait it ('a', async () => {});",
        "// test('b')\n/* it('c')\n test('d') */ test('a', () => {});",
        "const s = 'test(1)' + \"it(2)\" + `test(3) ${`it(${4})`} it(5)`;\ntest('a', () => {});",
        "const r = /[/'\"`]test(/;\nconst q = (1) / 2 / s;\ntest('a', () => {});",
        "test('a', (t) => {\n  t.test('sub', () => {});\n  if (/x/.test('x')) it\n});",
        "function test(name, f) {}\nconst o = { test: 1 };\ntest('a', () => {});",
        "const a = { b: [1] }\n/re'/.exec(a)\ntest('a', () => {});",
        "test(`a ${'}'}`, () => {});",
    ],
)
def test_one_call_of_test_at_the_top_level_is_a_check(source: str) -> None:
    """What only looks like a call, in a comment or a text, is none; subtests are methods."""
    assert node_flaw(source.encode()) is None


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        ("", None, "holds no test"),
        ("// test('a', () => {})", None, "holds no test"),
        ("t.test('a', () => {});", None, "holds no test"),
        ("test", None, "holds no test"),
        ("test.", None, "holds no test"),
        ("test('a', f);\n`\n`; it('b', f);", 3, "holds 2 tests"),
        ("test('a', () => {\n  test('b', f);\n});", 2, "stands inside something"),
        ("for (const c of cases) {\n  test(c, f);\n}", 2, "stands inside something"),
        ("`${test('a', f)}`;", 1, "stands inside something"),
        ("test.skip('a', f);", 1, "its test is `test.skip`"),
        ("\nit.todo('a');", 2, "its test is `it.todo`"),
        ("describe('a', () => { it('b', f); });", 1, "groups tests with `describe`"),
        ("test('a', () => f(", 1, "is not JavaScript: `(` is not closed"),
        ("test('a', () => {)", 1, "is not JavaScript: `)` closes nothing"),
        ("test('a\n', f);", 1, "is not JavaScript: a string does not end"),
        ("\n`${a", 2, "is not JavaScript: `${` is not closed"),
        ("\n`a", 2, "is not JavaScript: a template does not end"),
        ("/* test('a', f);", None, "is not JavaScript: a comment does not end"),
    ],
)
def test_anything_but_one_call_is_told_with_its_line(
    source: str, line: int | None, problem: str
) -> None:
    """A loop over tests, a skipped one and a group each count as something else than one."""
    flaw = node_flaw(source.encode())

    assert flaw is not None
    assert problem in flaw.problem
    assert line is None or flaw.line == line
    assert flaw.hint


def test_a_javascript_check_is_utf_8() -> None:
    """Node reads nothing else, and would quietly put marks where bytes were."""
    flaw = node_flaw("test('é', f)".encode("latin-1"))

    assert flaw is not None
    assert flaw.problem == "is not UTF-8"
