"""Hidden check files: how each toolchain names them, places them and counts their tests."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pytest_evalarc.tasks import rust_source
from pytest_evalarc.tasks.cargo import build_paths
from pytest_evalarc.tasks.javascript import CallOfTest, NotJavaScriptError, calls_of_tests

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Flaw(NamedTuple):
    """Why a file is no check: a line, what is wrong there, and what to do."""

    line: int | None
    problem: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class CheckFiles:
    """How one toolchain keeps its checks."""

    suffix: str = ""
    """What a check's file name ends with, after its id; empty allows any ending."""
    places: tuple[str, ...] = ("checks",)
    """Where checks are put below `project/`, which no editable path may cover."""
    flaw: Callable[[bytes], Flaw | None] = lambda _source: None
    """Says of a file's content why it is not exactly one test."""
    build_paths: Callable[[Path], Iterable[str]] = lambda _starter: ()
    """Returns the paths of a starter that decide what a build runs; none may be editable."""

    def id_of(self, file_name: str) -> str | None:
        """Return the id of a check's file, or None when its name does not end as it should."""
        if not self.suffix:
            return file_name.partition(".")[0]
        return file_name.removesuffix(self.suffix) if file_name.endswith(self.suffix) else None


def check_files(toolchain: str | None) -> CheckFiles:
    """Return how a toolchain keeps its checks; one that is not known may name them freely."""
    return _BY_TOOLCHAIN.get(toolchain or "", CheckFiles())


def python_flaw(source: bytes) -> Flaw | None:
    """Return why a Python file does not hold exactly one test that runs once, or None.

    A test is what pytest collects by default: a function `test*` of the module, or a method
    `test*` of a class `Test*` or of a unittest case. The file is parsed, never run.
    """
    try:
        with warnings.catch_warnings():
            # A doubtful escape is its author's matter, and no reason to end a strict session.
            warnings.simplefilter("ignore")
            module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "nested too deeply"
        return Flaw(line, f"is not Python: {reason}", "mend it")
    tests = list(_tests(module))
    if not tests:
        return Flaw(None, "holds no test", "write one function `test_…`")
    if len(tests) > 1:
        names = ", ".join(test.name for test in tests)
        hint = "move each into a file of its own"
        return Flaw(tests[1].lineno, f"holds {len(tests)} tests ({names}), not exactly one", hint)
    if isinstance(tests[0], ast.AsyncFunctionDef):
        return Flaw(tests[0].lineno, "its test is async, and nothing would await it", "use `def`")
    if (line := _multiplied(module)) is not None:
        hint = "write the one case out, or loop inside the test"
        return Flaw(line, "its test is parametrised, so it is not exactly one", hint)
    return None


def _tests(node: ast.AST) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            if child.name.startswith("test"):
                yield child
        elif isinstance(child, ast.ClassDef):
            if _is_collected(child):
                yield from _tests(child)
        elif isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _tests(child)


def _is_collected(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any(
        ast.unparse(base).endswith("TestCase") for base in node.bases
    )


def _multiplied(module: ast.Module) -> int | None:
    """Return the line of what makes one test function run more than once."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and node.attr == "parametrize":
            return node.lineno
        if isinstance(node, Function):
            if node.name == "pytest_generate_tests":
                return node.lineno
            if any(_has_params(decorator) for decorator in node.decorator_list):
                return node.lineno
    return None


def _has_params(decorator: ast.expr) -> bool:
    return (
        isinstance(decorator, ast.Call)
        and ast.unparse(decorator.func).endswith("fixture")
        and any(keyword.arg == "params" for keyword in decorator.keywords)
    )


def node_flaw(source: bytes) -> Flaw | None:
    """Return why a JavaScript file does not hold exactly one test that runs once, or None.

    A test is a call of `test` or `it`, by these names, at the top level of the file. Subtests are
    calls of a method, as `t.test`. The file is split into tokens, never run.
    """
    try:
        calls = tuple(calls_of_tests(source.decode("utf-8")))
    except UnicodeDecodeError:
        return Flaw(None, "is not UTF-8", "save it as UTF-8")
    except NotJavaScriptError as error:
        return Flaw(error.line, f"is not JavaScript: {error}", "mend it")
    if not calls:
        return Flaw(None, "holds no test", "write one `test(…)` at the top level")
    refused = (_refused(call) for call in calls)
    if (flaw := next((flaw for flaw in refused if flaw is not None), None)) is not None:
        return flaw
    if len(calls) > 1:
        hint = "move each into a file of its own"
        return Flaw(calls[1].line, f"holds {len(calls)} tests, not exactly one", hint)
    return None


def _refused(call: CallOfTest) -> Flaw | None:
    """Return why a call does not make one test that runs once."""
    hint = "write one `test(…)` at the top level of the file"
    if call.is_suite:
        return Flaw(call.line, f"groups tests with `{call.word}`", hint)
    if call.method:
        return Flaw(
            call.line, f"its test is `{call.word}.{call.method}`, which proves nothing", hint
        )
    if call.depth:
        return Flaw(call.line, "its test stands inside something, so it may not run once", hint)
    return None


def rust_flaw(source: bytes) -> Flaw | None:
    """Return why a Rust file does not hold exactly one test that runs once, or None.

    A test is a function with the attribute `#[test]` at the top level of the file. The file is
    split into tokens, never compiled, so a test that a macro makes is none.
    """
    try:
        tests = tuple(rust_source.tests(source.decode("utf-8")))
    except UnicodeDecodeError:
        return Flaw(None, "is not UTF-8", "save it as UTF-8")
    except rust_source.NotRustError as error:
        return Flaw(error.line, f"is not Rust: {error}", "mend it")
    if not tests:
        return Flaw(None, "holds no test", "write one `#[test] fn …` at the top level")
    if len(tests) > 1:
        hint = "move each into a file of its own"
        line = tests[1].attribute.line
        return Flaw(line, f"holds {len(tests)} tests, not exactly one", hint)
    return _rust_refused(tests[0])


_PROVES_NOTHING = {
    "ignore": "never runs",
    "should_panic": "passes whatever it is that panics",
    "cfg": "may not be there",
    "cfg_attr": "may be another",
}
"""What becomes of a test by a further attribute."""


def _rust_refused(test: rust_source.Test) -> Flaw | None:
    """Return why a test is not one that is sure to run, and to have passed when it returns."""
    path, line = test.attribute.path, test.attribute.line
    if path != "test":
        hint = "use `#[test]` itself, which needs nothing but the compiler"
        return Flaw(line, f"its test is made by `#[{path}]`", hint)
    if test.depth:
        hint = "write one `#[test] fn …` at the top level of the file"
        return Flaw(line, "its test stands inside something, so it may not run once", hint)
    if test.name is None:
        return Flaw(line, "its test is no plain function", "write `#[test] fn …`")
    if found := next((name for name in test.others if name in _PROVES_NOTHING), None):
        problem = f"its test is `#[{found}]`, so it {_PROVES_NOTHING[found]}"
        return Flaw(line, problem, "take the attribute away")
    return None


_BY_TOOLCHAIN = {
    "python": CheckFiles(suffix=".py", flaw=python_flaw),
    "rust": CheckFiles(
        suffix=".rs", places=("checks", "tests"), flaw=rust_flaw, build_paths=build_paths
    ),
    "node": CheckFiles(suffix=".test.mjs", flaw=node_flaw),
}
