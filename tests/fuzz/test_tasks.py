"""Task folders: any task.toml is a task, or all of its problems in sentences with their lines."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evalarc.errors import SetupError, TaskProblems
from pytest_evalarc.model.pack import PackInfo
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.tasks.load import is_foreign, load_task, prompt_warnings
from pytest_evalarc.tasks.plugins import front_matter, plugins_in
from pytest_evalarc.treatments.skillset import skills_among
from tests.evals import FILES, TASK
from tests.fuzz.forms import CORPUS, altered, damaged, fuzzed, refusing

EVALS = Path(__file__).parents[2] / "evals"
SHIPPED = [path.read_bytes() for path in sorted(EVALS.glob("tasks/*/task.toml"))]
EVERY_KEY: dict[str, Any] = {
    **tomllib.loads(TASK),
    "version": "1.2.3",
    "tags": ["slow"],
    "fmt_check": True,
    "weights": {"sums": 0.5, "edges": 0.5},
    "pack": {"name": "durable-kv", "seeds": [17, 41]},
    "prompt_file": "PROMPT.md",
}
VALUES = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        (
            *(10**30, -1, 0, 2**63, 10**400, "../..", "/etc", "a/../b", "\x00", ".", "", " "),
            *("adds", "sums", "app", "app/", "guide", "use-numbers", "python", "rust", "A\u0301"),
            *(datetime.date(2026, 1, 1), datetime.time(1, 2), datetime.datetime(2026, 1, 1)),
        )
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a project with one valid task."""
    root = tmp_path_factory.mktemp("project")
    for path, content in FILES.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


def toml(value: Any) -> str:
    """Return a value as inline TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)} = {toml(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value).lower()


def _quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'


def load(project: Path, content: bytes) -> list[str]:
    """Load the task of a project under another task.toml, and return what is told of it."""
    folder = project / "evals/tasks/tiny"
    (folder / "task.toml").write_bytes(content)
    packs = {"durable-kv": _info}
    is_foreign(folder)
    try:
        task = load_task(folder, root=project, toolchains=("python", "rust", "node"), packs=packs)
    except TaskProblems as found:
        with refusing(TaskProblems):
            raise
        for problem in found.problems:
            assert re.match(r"evals/(tasks|fixtures|plugins)", problem.where), str(problem)
        return [str(problem) for problem in found.problems]
    assert all(is_name(name) for name in (task.name, *task.tags, *task.weights))
    assert all(is_name(check.id) for check in task.checks)
    prompt_warnings(task)
    return []


def _info() -> PackInfo:
    from pytest_evalarc.registry.builtin import pytest_evalarc_packs

    return pytest_evalarc_packs()["durable-kv"]().info


@pytest.mark.parametrize("path", sorted((CORPUS / "tasks").iterdir()), ids=lambda path: path.stem)
def test_what_failed_once_is_told(project: Path, path: Path) -> None:
    """Each of these files once ended validation with a traceback, or a sentence in two lines."""
    told = load(project, path.read_bytes())

    assert told
    assert len(told) == len(set(told))


@fuzzed(60)
@given(damaged([*SHIPPED, TASK.encode()]))
def test_a_damaged_task_is_loaded_or_told(project: Path, content: bytes) -> None:
    """Editors, merges and half-saved files; each problem names the file, line and key."""
    load(project, content)


@fuzzed(120)
@given(st.data())
def test_every_key_with_a_wrong_value_is_told(project: Path, data: st.DataObject) -> None:
    """TOML has types enough to give each key a value that nobody thought of."""
    found = dict(EVERY_KEY)
    for key in data.draw(st.lists(st.sampled_from(("pack", "prompt_file", "prompt")), max_size=3)):
        found.pop(key, None)
    for _ in range(data.draw(st.integers(0, 2))):
        found[data.draw(st.sampled_from(sorted(EVERY_KEY)))] = data.draw(VALUES)
    found = data.draw(st.just(found) | altered(found))
    lines = "\n".join(f"{_quoted(key)} = {toml(value)}" for key, value in _writable(found).items())
    load(project, lines.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("key", sorted(EVERY_KEY))
@pytest.mark.parametrize("value", [False, True, 0, -1, 1.5, "", "x", [], [[]], {}, {"x": 1}, [{}]])
def test_each_key_with_each_type_is_told(project: Path, key: str, value: object) -> None:
    """The types that every key can be confused with are too few to leave to chance."""
    found = {name: each for name, each in EVERY_KEY.items() if name not in ("pack", "prompt_file")}
    lines = "\n".join(f"{name} = {toml(each)}" for name, each in {**found, key: value}.items())
    load(project, lines.encode())


def _writable(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"it": value if value is not None else 0}


@fuzzed(60)
@given(
    damaged([FILES["evals/plugins/guide/skills/use-numbers/SKILL.md"].encode()])
    | st.binary(max_size=40).map(lambda data: b"---\n" + data + b"\n---\n")
)
def test_any_front_matter_is_read_or_is_none(project: Path, content: bytes) -> None:
    """A SKILL.md is written by whoever wrote the skill, and read before any trial starts."""
    file = project / "evals/plugins/guide/skills/use-numbers/SKILL.md"
    whole = file.read_bytes()
    try:
        file.write_bytes(content)
        matter = front_matter(file)
        assert matter is None or all("\n" not in value for value in matter.values())
        with refusing(SetupError):
            skills = skills_among(plugins_in(project / "evals/plugins"))
            assert skills["use-numbers"].title
    finally:
        file.write_bytes(whole)
