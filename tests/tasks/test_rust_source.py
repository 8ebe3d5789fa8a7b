"""Rust check files: exactly one test that is sure to run, told without a compiler."""

from __future__ import annotations

import pytest

from pytest_evalarc.tasks import rust_source
from pytest_evalarc.tasks.checkfiles import rust_flaw

FN = "#[test]\nfn a() {}\n"


@pytest.mark.parametrize(
    "source",
    [
        FN,
        "#[test] pub fn a() -> Result<(), String> { Ok(()) }",
        "#[test]\npub(crate) fn a() {}",
        "/// Docs.\n#[ test ]\n#[allow(dead_code, unused)]\n// why\nfn a() {}",
        "#[allow(dead_code)]\n#[test]\nfn a() {}",
        "//! #[test]\n#![allow(unused)]\n/* #[test] /* nested */ fn b() {} */\n" + FN,
        'const S: &str = "#[test] fn b() {}\\"";\n' + FN,
        'const S: &str = r#"#[test] "fn b() {}"#;\n' + FN,
        'const S: &[u8] = br##"}"# #[test]"##;\n' + FN,
        "const C: [char; 4] = ['\"', '\\'', '{', '\\u{7b}'];\n" + FN,
        "fn longest<'a>(one: &'a str, _: &'_ str) -> &'a str { one }\n" + FN,
        "fn f() { 'outer: loop { break 'outer } }\n" + FN,
        "#[cfg(unix)]\nuse std::os::unix;\n#[derive(Debug)]\nstruct A { a: [u8; 2] }\n" + FN,
        "mod r#test { pub fn test() {} }\n" + FN,
        "#[test]\nfn r#match() {}",
        "#[doc = \"] #[test]\"]\nfn b() {}\n" + FN,
    ],
)  # fmt: skip
def test_one_test_at_the_top_level_is_a_check(source: str) -> None:
    """What only looks like a test, in a comment or a text, is none."""
    assert rust_flaw(source.encode()) is None


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        ("", None, "holds no test"),
        ("// #[test]\nfn a() {}", None, "holds no test"),
        ("#[cfg(test)]\nfn a() {}", None, "holds no test"),
        ("#![test]\nfn a() {}", None, "holds no test"),
        (FN + FN, 3, "holds 2 tests"),
        (FN + "mod b {\n    #[test]\n    fn b() {}\n}", 4, "holds 2 tests"),
        ("#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n}", 3, "stands inside something"),
        ("macro_rules! m {\n    () => { #[test] fn a() {} };\n}", 2, "stands inside something"),
        ("\n#[tokio::test]\nasync fn a() {}", 2, "its test is made by `#[tokio::test]`"),
        ("#[test]\nasync fn a() {}", 1, "its test is no plain function"),
        ("#[test]\nunsafe fn a() {}", 1, "its test is no plain function"),
        ("#[test]\nconst A: i32 = 1;", 1, "its test is no plain function"),
        ("#[test]", 1, "its test is no plain function"),
        ("#[test]\npub(", 2, "is not Rust: `(` is not closed"),
        ("#[test]\n#[ignore]\nfn a() {}", 1, "its test is `#[ignore]`, so it never runs"),
        ('#[ignore = "slow"]\n#[test]\nfn a() {}', 2, "its test is `#[ignore]`"),
        ("#[test]\n#[should_panic]\nfn a() {}", 1, "passes whatever it is that panics"),
        ('#[test]\n#[should_panic(expected = "b")]\nfn a() {}', 1, "`#[should_panic]`"),
        ("#[cfg(windows)]\n#[test]\nfn a() {}", 2, "its test is `#[cfg]`, so it may not be there"),
        ("#[test]\n#[cfg_attr(unix, ignore)]\nfn a() {}", 1, "its test is `#[cfg_attr]`"),
        ("#[test]\nfn a() {", 2, "is not Rust: `{` is not closed"),
        ("#[test]\nfn a() {)}", 2, "is not Rust: `)` closes nothing"),
        ("#[test", 1, "is not Rust: `[` is not closed"),
        ("}", 1, "is not Rust: `}` closes nothing"),
        ("/* /* */\n" + FN, 1, "is not Rust: a comment does not end"),
        ('\nconst A: &str = "a;\n', 2, "is not Rust: a string does not end"),
        ('\nconst A: &str = r#"a";\n', 2, "is not Rust: a string does not end"),
        ("\n'", 2, "is not Rust: a character does not end"),
    ],
)
def test_anything_but_one_sure_test_is_told_with_its_line(
    source: str, line: int | None, problem: str
) -> None:
    """A check that may not run, or passes by a panic, says nothing when it passes."""
    flaw = rust_flaw(source.encode())

    assert flaw is not None
    assert problem in flaw.problem
    assert line is None or flaw.line == line
    assert flaw.hint


def test_a_rust_check_is_utf_8() -> None:
    """The compiler reads nothing else."""
    flaw = rust_flaw("#[test]\nfn ä() {}".encode("latin-1"))

    assert flaw is not None
    assert flaw.problem == "is not UTF-8"


def test_a_test_is_found_where_it_stands() -> None:
    """Whoever calls it in another's place takes exactly its attribute away."""
    source = "// Ä\n#[allow(unused)]\n# [ test ]\npub fn a() {}\n"

    (test,) = rust_source.tests(source)

    assert source[test.attribute.start : test.attribute.end] == "# [ test ]"
    assert (test.name, test.others, test.depth) == ("a", ("allow",), 0)
