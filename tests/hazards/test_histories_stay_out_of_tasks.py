"""The answer lies in the workspace: in a later commit, a tag, a reflog, or somebody's cache.

A fixture that is a repository holds the commit that solved the task, and an agent that runs
`git log --all` has read the solution without having found it. So no tree that a trial sees may hold
a history, whichever tool wrote it and whatever its folder is called: SWE-bench/SWE-bench#465.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import needs
from tests.tasks.project import Project

TASK = "evals/tasks/tiny"
TREES = (f"{TASK}/starter", f"{TASK}/starter/src", "evals/fixtures/store")
HISTORIES = {
    ".git/HEAD": ("ref: refs/heads/main\n", "git"),
    # A worktree and a submodule have a file in the folder's place.
    ".git": ("gitdir: ../../elsewhere\n", "git"),
    ".GIT/HEAD": ("ref: refs/heads/main\n", "git"),
    ".hg/store/00changelog.i": ("", "Mercurial"),
    ".svn/wc.db": ("", "Subversion"),
    ".jj/repo/store/type": ("git", "Jujutsu"),
    ".bzr/branch-format": ("", "Bazaar"),
    "_darcs/format": ("", "Darcs"),
    ".pijul/config": ("", "Pijul"),
}


def told(project: Project, place: str, kind: str) -> None:
    """Expect that the one thing that is wrong with the task is that history."""
    (sentence,) = project.problems()

    assert sentence == (
        f"{place}: is a {kind}, which no task may hold; remove it, as a history can hold the answer"
    )


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(("path", "content", "tool"), [(k, *v) for k, v in HISTORIES.items()])
def test_a_history_of_any_tool_is_refused(
    written: Project, tree: str, path: str, content: str, tool: str
) -> None:
    """Each of them can hold what the folder held later, or before."""
    written.write(f"{tree}/{path}", content)

    told(written, f"{tree}/{path.partition('/')[0]}", f"{tool} repository")


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("name", ["upstream.git", "vendor"])
def test_a_bare_repository_is_known_by_what_is_in_it(
    written: Project, tree: str, name: str
) -> None:
    """Git reads one in a folder of any name."""
    for path in ("HEAD", "config", "objects/pack/pack-1.pack", "refs/heads/main"):
        written.write(f"{tree}/{name}/{path}", "x")

    told(written, f"{tree}/{name}", "bare git repository")


def test_a_folder_that_is_itself_a_bare_repository_is_told(written: Project) -> None:
    """`git init --bare` leaves no folder of its own around what it makes."""
    for path in ("HEAD", "objects/pack/pack-1.pack", "refs/heads/main"):
        written.write(f"evals/fixtures/store/{path}", "x")

    told(written, "evals/fixtures/store", "bare git repository")


@needs("git")
@pytest.mark.slow
@pytest.mark.parametrize("form", ["folder", "bare", "bundle"])
def test_what_git_itself_writes_is_refused(written: Project, tmp_path: Path, form: str) -> None:
    """What we know of its formats must be what the program makes of a fix in a later commit."""
    origin, fixture = tmp_path / "origin", written.root / "evals/fixtures/store"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q", origin], check=True)
    for text in ("broken", "fixed"):
        (origin / "code.txt").write_text(text)
        subprocess.run([*git, "-C", origin, "add", "-A"], check=True)
        subprocess.run([*git, "-C", origin, "commit", "-qm", text], check=True)
    made = {
        "folder": [*git, "clone", "-q", origin, fixture / "code"],
        "bare": [*git, "clone", "-q", "--bare", origin, fixture / "code"],
        "bundle": [*git, "-C", origin, "bundle", "create", "-q", fixture / "code.bundle", "--all"],
    }
    subprocess.run(made[form], check=True)

    (sentence,) = written.problems()

    assert "which no task may hold" in sentence


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".gitignore", "build\n"),
        (".gitattributes", "* text\n"),
        (".github/workflows/ci.yml", "on: push\n"),
        ("app.bundle", "console.log(1)\n"),
        ("HEAD", "of the page\n"),
        ("objects/refs/HEAD", "x"),
        ("hg", "x"),
    ],
)
def test_what_only_looks_like_a_history_is_welcome(
    written: Project, path: str, content: str
) -> None:
    """Projects have such files, and a task about them must be possible."""
    written.write(f"{TASK}/starter/{path}", content)

    assert written.load().name == "tiny"
