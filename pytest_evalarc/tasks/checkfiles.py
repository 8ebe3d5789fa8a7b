"""Hidden check files: how each toolchain names them, places them and counts their tests."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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


_BY_TOOLCHAIN = {
    "python": CheckFiles(suffix=".py", flaw=python_flaw),
    "rust": CheckFiles(suffix=".rs", places=("checks", "tests")),
    "node": CheckFiles(suffix=".test.mjs"),
}
