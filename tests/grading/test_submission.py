"""A submission as it was left: what is graded of it, what is listed, and what is refused."""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_evalarc.errors import DocumentError, InfrastructureError, SubmissionError
from pytest_evalarc.grading.grade import grade
from pytest_evalarc.grading.kept import kept_manifest, manifest_document
from pytest_evalarc.grading.submission import (
    edits_outside,
    is_editable,
    keep,
    make_copy,
    read_kept,
    read_submission,
    refuse_links,
    starter_manifest,
)
from pytest_evalarc.isolation.local import Local
from pytest_evalarc.model.task import Task
from tests.grading.small_task import RIGHT, WRONG, Bench, make_small_task, outcomes
from tests.needs import needs_bwrap


@pytest.fixture
def task(small_task) -> Task:
    return small_task.load()


@pytest.fixture
def project(bench, task) -> Path:
    """The starter, as an agent finds it."""
    return bench.submit(task, {}).root


def copied(task: Task, project: Path, tmp_path: Path) -> Path:
    """Return the project of a grading copy."""
    return make_copy(task, read_submission(project), tmp_path / "copy").project


def listed(task: Task, project: Path) -> tuple[str, ...]:
    return edits_outside(task, read_submission(project), starter_manifest(task))


def make_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


ODD = {"link": make_link, "fifo": make_fifo, "socket": make_socket}
each_odd = pytest.mark.parametrize("make", ODD.values(), ids=list(ODD))


def test_the_editable_paths_are_replaced_exactly(task, project, tmp_path):
    """What was deleted stays deleted, and a path may have become another kind of thing."""
    (project / "app" / "core.py").unlink()
    (project / "app" / "core.py").mkdir()
    (project / "app" / "core.py" / "part.py").write_text("x = 1\n")
    (project / "app" / "_fixtures.py").unlink()
    (project / "app" / "empty").mkdir()
    (project / "app" / "run.sh").write_text("true\n")
    (project / "app" / "run.sh").chmod(0o755)

    copy = copied(task, project, tmp_path)

    left = {str(path.relative_to(copy)) for path in (copy / "app").rglob("*")}
    assert left == {
        "app/__init__.py",
        "app/core.py",
        "app/core.py/part.py",
        "app/empty",
        "app/run.sh",
    }
    assert os.access(copy / "app" / "run.sh", os.X_OK)


def test_a_folder_can_become_a_file(task, project, tmp_path):
    """The copy must not fail over what the starter had there."""
    shutil.rmtree(project / "app")
    (project / "app").write_text("a file\n")

    assert (copied(task, project, tmp_path) / "app").read_text() == "a file\n"


def test_nothing_else_of_a_submission_is_copied(task, project, tmp_path):
    """The rest of the project is the starter's, whatever was done to it."""
    (project / "README.md").write_text("changed\n")
    (project / "conftest.py").write_text("raise SystemExit\n")
    (project / "App").mkdir()
    (project / "App" / "core.py").write_text("")
    (project / "pyproject.toml").unlink()
    make_link(project / "link")

    copy = copied(task, project, tmp_path)

    names = {path.name for path in copy.iterdir()}
    assert names == {"README.md", "pyproject.toml", "app"}
    assert (copy / "README.md").read_text() == "Numbers.\n"
    assert (copy.parent / "fixtures" / "numbers" / "fixture_numbers").is_dir()


def test_compiled_forms_are_never_graded(task, project, tmp_path):
    """Byte code beside a clean source would run in its place."""
    for path in ("app/__pycache__/core.cpython-311.pyc", "app/core.pyc", "app/x/__pycache__/y.py"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(b"evil")

    copy = copied(task, project, tmp_path)

    assert not [path for path in copy.rglob("*") if "pyc" in path.name]


def test_edits_outside_of_editable_are_listed(task, project):
    """An agent that mends the README instead of the code should be seen doing it."""
    (project / "README.md").chmod(0o755)
    (project / "pyproject.toml").unlink()
    (project / "new.txt").write_text("x")
    (project / "application").mkdir()
    (project / "application" / "x.py").write_text("x")
    (project / "readme.md").write_text("x")
    (project / os.fsdecode(b"caf\xe9")).write_text("x")
    (project / "line\nbreak\x1b").write_text("x")
    make_link(project / "link")
    make_fifo(project / "fifo")

    assert listed(task, project) == (
        "README.md",
        "application/x.py",
        "caf\\xe9",
        "fifo",
        "line\nbreak\\x1b",
        "link",
        "new.txt",
        "pyproject.toml",
        "readme.md",
    )


def test_what_tools_and_the_treatment_leave_is_no_edit(task, project):
    """Every agent that runs the tests leaves caches, and skills are put there for it."""
    for path in (
        "__pycache__/x.pyc",
        ".pytest_cache/README.md",
        "target/debug/x",
        ".claude/skills/x/SKILL.md",
        ".agents/skills/x/SKILL.md",
        "app/new.py",
        "tests/test_new.py",
    ):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("x")
    (project / "empty").mkdir()
    (project / "README.md").chmod(0o600)

    assert listed(task, project) == ()


def test_a_fixed_list_decides_what_is_the_treatments(task, project):
    """A neighbour of the skill folder is the agent's own."""
    for path in (".claude/settings.json", ".agents/skills-mine/x"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("x")

    assert listed(task, project) == (".agents/skills-mine/x", ".claude/settings.json")


@pytest.mark.parametrize("path", ["app/x", "app/deep/x", "app", "tests/x"])
@each_odd
def test_only_files_and_folders_are_graded(task, project, path, make):
    """A link shows another file, a FIFO blocks whoever reads it, and neither is an answer."""
    shutil.rmtree(project / path, ignore_errors=True)
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    make(project / path)

    with pytest.raises(SubmissionError, match=f"{path}: is a "):
        refuse_links(task, read_submission(project))


def test_a_link_above_an_editable_path_is_refused(small_task, bench):
    """It would redirect all that lies below it."""
    small_task.write("starter/src/app/core.py", WRONG)
    small_task.write("solution/src/app/core.py", RIGHT)
    task = small_task.load(editable=["src/app", "app"])
    project = bench.submit(task, {}).root
    (project / "src").rename(project / "elsewhere")
    (project / "src").symlink_to("elsewhere")

    with pytest.raises(SubmissionError, match="src: is a symbolic link"):
        refuse_links(task, read_submission(project))


@each_odd
def test_links_and_special_files_elsewhere_do_no_harm(task, project, tmp_path, make):
    """They are listed and never copied; so are those in caches, as `node_modules` has them."""
    make(project / "odd")
    (project / "app" / "node_modules").mkdir()
    make(project / "app" / "node_modules" / "odd")

    refuse_links(task, read_submission(project))
    copy = copied(task, project, tmp_path)

    assert listed(task, project) == ("odd",)
    assert not list(copy.rglob("odd"))


@pytest.mark.parametrize(
    ("path", "claim"),
    [("app", True), ("app/x", True), ("application", False), ("ap", False), ("x/app", False)],
)
def test_editable_is_a_matter_of_whole_names(path, claim):
    """`app` does not open `application`."""
    assert is_editable(path, ("app",)) is claim


def test_a_starter_that_cannot_be_read_is_not_the_submissions_fault(task, project, tmp_path):
    """A task is ours: whoever grades with a broken one must be told so."""
    submission = read_submission(project)
    task.starter.rename(tmp_path / "gone")

    with pytest.raises(InfrastructureError):
        make_copy(task, submission, tmp_path / "copy")


def test_a_submission_that_changes_is_refused(task, project, tmp_path):
    """What is graded must be what was listed."""
    submission = read_submission(project)
    (project / "app" / "core.py").write_text("longer than it was listed" * 100)

    with pytest.raises(SubmissionError):
        make_copy(task, submission, tmp_path / "copy")


# Kept, and read back.


@pytest.fixture
def odd_project(project) -> Path:
    """A project with one of everything."""
    (project / "app" / "empty").mkdir()
    (project / "app" / "run.sh").write_text("true\n")
    (project / "app" / "run.sh").chmod(0o755)
    (project / os.fsdecode(b"caf\xe9")).write_bytes(b"\xe9")
    (project / "caf\\xe9").write_bytes(b"other")
    (project / "ünïcode").write_text("x")
    (project / os.fsdecode(b"to-caf\xe9")).symlink_to(os.fsdecode(b"caf\xe9"))
    (project / "link").symlink_to("/etc/passwd")
    make_fifo(project / "fifo")
    return project


def test_a_kept_submission_is_read_back_as_it_was(odd_project, tmp_path):
    """A re-grade judges the very same submission, links and special files included."""
    submission = read_submission(odd_project)

    kept = keep(submission, tmp_path / "kept")
    read = read_kept(tmp_path / "kept")

    assert read == kept
    assert read.manifest == submission.manifest
    assert read.root == tmp_path / "kept" / "submission"


def test_nothing_that_is_kept_leads_anywhere(odd_project, tmp_path):
    """Results are copied, opened and shared by people who trust them."""
    keep(read_submission(odd_project), tmp_path / "kept")

    stored = list((tmp_path / "kept" / "submission").rglob("*"))
    assert all(path.is_file() or path.is_dir() for path in stored)
    assert not any(path.is_symlink() for path in stored)


def test_the_manifest_of_a_kept_submission_is_text_that_everybody_can_read(odd_project):
    """Names that are not UTF-8 are spelled out, and their bytes stand beside."""
    document = manifest_document(read_submission(odd_project).manifest).decode("utf-8")

    assert '"path": "caf\\\\xe9",\n      "path_hex": "636166e9"' in document
    assert '"path": "caf\\\\xe9",\n      "path_hex": null' in document
    assert '"path": "ünïcode"' in document


@pytest.mark.parametrize("change", ["edit", "add", "delete", "chmod", "link", "folder"])
def test_a_changed_kept_submission_is_noticed(project, tmp_path, change):
    """A re-grade of something else would be told as one of the original."""
    keep(read_submission(project), tmp_path / "kept")
    stored = tmp_path / "kept" / "submission"
    core = stored / "app" / "core.py"
    if change == "edit":
        core.write_text(core.read_text().replace("1", "2"))
    elif change == "add":
        (stored / "new").write_text("x")
    elif change == "delete":
        core.unlink()
    elif change == "chmod":
        core.chmod(0o755)
    elif change == "link":
        (stored / "new").symlink_to("/etc/passwd")
    else:
        (stored / "new").mkdir()

    with pytest.raises(SubmissionError, match="not those that were kept"):
        read_kept(tmp_path / "kept")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('"mode": "0644"', '"mode": "0755"', SubmissionError),
        ('"path": "README.md"', '"path": "README.txt"', SubmissionError),
        ('"mode": "0644"', '"mode": "rw"', DocumentError),
        ('"type": "file"', '"type": "door"', DocumentError),
        ("{", "", DocumentError),
    ],
)
def test_a_changed_manifest_is_noticed(project, tmp_path, old, new, error):
    """The digest in it was taken over what it lists."""
    keep(read_submission(project), tmp_path)
    document = tmp_path / "submission.json"
    text = document.read_text("utf-8")
    assert old in text
    document.write_text(text.replace(old, new, 1), "utf-8")

    with pytest.raises(error):
        read_kept(tmp_path)


def test_a_submission_without_its_manifest_is_none(tmp_path):
    """A folder that was not finished being written is not graded."""
    with pytest.raises(DocumentError):
        kept_manifest(tmp_path / "submission.json")


# Graded: whatever a submission is, grading ends with a row.


@pytest.mark.slow
@needs_bwrap
def test_a_link_makes_a_failed_trial_and_no_exclusion(bench, task, project):
    """The harness could grade; it was the submission that could not be."""
    make_link(project / "app" / "link")

    grading = bench.grade(task, read_submission(project))

    assert (grading.status, grading.cause.kind) == ("graded", "invalid_submission")
    assert outcomes(grading) == {"child_form": "not_run", "in_process": "not_run"}
    assert not grading.code_passed


@pytest.mark.slow
@needs_bwrap
def test_a_regrade_of_a_link_fails_as_it_did(bench, task, project, tmp_path):
    """The link itself is not kept, and must count all the same."""
    make_link(project / "app" / "link")
    submission = read_submission(project)
    keep(submission, tmp_path / "kept")

    first = bench.grade(task, submission)
    again = bench.grade(task, read_kept(tmp_path / "kept"))

    assert (first.cause, first.submission_sha256) == (again.cause, again.submission_sha256)


@pytest.mark.slow
@needs_bwrap
def test_planted_byte_code_does_not_run(bench, task, project):
    """A clean source with a compiled form of another is graded by its source."""
    import importlib.util
    import py_compile

    good = project / "good.py"
    good.write_text(RIGHT)
    core = project / "app" / "core.py"
    cache = Path(importlib.util.cache_from_source(str(core)))
    py_compile.compile(
        str(good),
        cfile=str(cache),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    shutil.copy(cache, core.with_suffix(".pyc"))

    grading = bench.grade(task, read_submission(project))

    assert [row.status for row in grading.rows] == ["failed", "failed"]


names = st.sampled_from(
    ["a", "b.py", "conftest.py", "__init__.py", "core.py", "app", "tests", "ü", "A", "-x.py"]
) | st.binary(min_size=1, max_size=4).filter(
    lambda name: not {b"/"[0], 0} & set(name) and name not in (b".", b"..")
).map(os.fsdecode)
contents = st.sampled_from([WRONG, RIGHT, "", "\0", "x = (", "import os; os._exit(0)"]).map(
    str.encode
) | st.binary(max_size=20)
leaves = st.one_of(
    contents.map(lambda content: ("file", content)),
    names.map(lambda target: ("link", target)),
    st.just(("fifo", None)),
)
trees = st.dictionaries(
    names, st.recursive(leaves, lambda inner: st.dictionaries(names, inner, max_size=3)), max_size=4
)


def build(folder: Path, tree: dict) -> None:
    folder.mkdir()
    for name, entry in tree.items():
        path = folder / name
        if isinstance(entry, dict):
            build(path, entry)
        elif entry[0] == "file":
            path.write_bytes(entry[1])
        elif entry[0] == "link":
            path.symlink_to(entry[1])
        else:
            make_fifo(path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory, staged) -> tuple[Bench, Task]:
    small_task = make_small_task(tmp_path_factory.mktemp("project"))
    small_task.only_check("def test_it():\n    import app.core\n")
    task = replace_fmt(small_task.load(editable=["app", "tests", "a", "conftest.py"]))
    bench = Bench(root=tmp_path_factory.mktemp("bench"), tools=staged, task=small_task)
    return bench, task


def replace_fmt(task: Task) -> Task:
    return replace(task, fmt_check=False)


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
@given(app=trees, rest=trees)
def test_grading_never_breaks_over_what_was_submitted(shared, app, rest):
    """Whatever an agent leaves is an outcome of its own, kept and graded."""
    bench, task = shared
    root = bench.root / "any"
    build(root, {**rest, "app": app})
    try:
        submission = read_submission(root)
        keep(submission, bench.root / "kept")
        kept = read_kept(bench.root / "kept")
        grading = grade(task, kept, bench.lab(Local()))
    finally:
        shutil.rmtree(root)
        shutil.rmtree(bench.root / "kept", ignore_errors=True)

    assert kept.manifest == submission.manifest
    assert grading.status == "graded"
    assert [row.check for row in grading.rows] == ["only"]
    assert grading.model_validate_json(grading.model_dump_json()) == grading
