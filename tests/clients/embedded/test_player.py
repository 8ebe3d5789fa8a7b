from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.clients.embedded.client import program_files
from pytest_evalarc.clients.embedded.nop import nop
from pytest_evalarc.clients.protocol import Script
from pytest_evalarc.isolation.layout import RunLayout
from pytest_evalarc.model.task import TaskBrief


class Stage:
    """A project and a staged player, as a trial has them, without the sandbox."""

    def __init__(self, root: Path) -> None:
        self.layout = RunLayout(root=root)
        self.program_dir = root / "tools"
        self.layout.project.mkdir(parents=True)
        self.program_dir.mkdir()
        for name, content in program_files().items():
            (self.program_dir / name).write_bytes(content)

    def play(self, script: Script, **env: str) -> subprocess.CompletedProcess[bytes]:
        command = nop().launch(
            TaskBrief(name="t", prompt="p"),
            self.layout,
            python=Path(sys.executable),
            program_dir=self.program_dir,
            env=env,
            model=None,
            settings={},
            script=script,
        )
        return subprocess.run(
            command.argv,
            cwd=command.cwd,
            env=dict(command.env),
            input=command.stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )

    def events(self, script: Script, **env: str) -> list[dict[str, Any]]:
        done = self.play(script, **env)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "run")


def results(events: list[dict[str, Any]]) -> list[tuple[bool, str]]:
    return [(e["is_error"], e["content"]) for e in events if e["type"] == "tool_result"]


def test_a_script_is_played_in_order_and_each_step_told(stage: Stage) -> None:
    """The oracle's session must look like an agent's: read, change, finish."""
    project = stage.layout.project
    skill = project / ".agents/skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Tidy\n")
    (project / ".agents/skills/not-a-skill").mkdir()
    (project / "old.py").write_text("old")
    script = Script(
        reads=(".agents/skills/tidy/SKILL.md",),
        removes=("old.py",),
        writes={"src/new.py": (b"new\x00\xff", 0o755)},
    )

    events = stage.events(script)

    start, *calls, response, completion = events
    assert start["cwd"] == str(project.resolve())
    assert start["skills"] == ["tidy"]
    assert [(e["type"], e.get("kind"), e.get("target"), e.get("content")) for e in calls] == [
        ("tool_call", "read", ".agents/skills/tidy/SKILL.md", None),
        ("tool_result", None, None, "# Tidy\n"),
        ("tool_call", "edit", "old.py", None),
        ("tool_result", None, None, ""),
        ("tool_call", "edit", "src/new.py", None),
        ("tool_result", None, None, ""),
    ]
    assert response["type"] == "response"
    assert completion == {"type": "completion", "is_error": False, "detail": ""}
    assert not (project / "old.py").exists()
    assert (project / "src/new.py").read_bytes() == b"new\x00\xff"
    assert (project / "src/new.py").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "path", ["../out", "/etc/out", "a/../../out", "a/..", ".", "", "a//b", "a/./b", "nul\0byte"]
)
def test_a_path_that_is_not_plain_is_refused_and_the_session_is_an_error(
    stage: Stage, path: str
) -> None:
    """A script comes from a recorded tree, and its player must not be led out by it."""
    (stage.layout.project / "a").mkdir()

    events = stage.events(Script(writes={path: (b"x", 0o644)}, reads=(path,), removes=(path,)))

    assert [is_error for is_error, _ in results(events)] == [True, True, True]
    assert events[-1]["is_error"] is True
    assert sorted(p.name for p in stage.layout.root.iterdir()) == ["project", "tools"]
    assert [p.name for p in stage.layout.project.iterdir()] == ["a"]


def test_no_link_leads_a_read_or_an_edit_out_of_the_project(stage: Stage) -> None:
    """What stands beside the project belongs to the trial, or to others."""
    outside = stage.layout.root / "outside"
    outside.mkdir()
    (outside / "secret").write_text("canary")
    project = stage.layout.project
    (project / "door").symlink_to(outside)
    (project / "leaf").symlink_to(outside / "secret")
    script = Script(
        reads=("leaf", "door/secret"),
        removes=("door/secret",),
        writes={"door/new": (b"x", 0o644), "leaf": (b"mine", 0o644)},
    )

    events = stage.events(script)

    assert [is_error for is_error, _ in results(events)] == [True, True, True, True, False]
    assert "canary" not in json.dumps(events)
    assert [p.name for p in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "canary"
    assert (project / "leaf").read_text() == "mine"
    assert not (project / "leaf").is_symlink()


def test_a_removal_takes_links_away_without_following_them(stage: Stage) -> None:
    """A recorded session may have left a folder of links to anywhere."""
    outside = stage.layout.root / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = stage.layout.project / "folder/deep"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    (folder / "link").symlink_to(outside)
    (stage.layout.project / "door").symlink_to(outside)

    events = stage.events(Script(removes=("folder", "door")))

    assert results(events) == [(False, ""), (False, "")]
    assert list(stage.layout.project.iterdir()) == []
    assert (outside / "kept").exists()


def test_a_write_takes_the_place_of_whatever_stood_there(stage: Stage) -> None:
    """A session that turned a folder into a file, and a file into a folder, is repeated."""
    project = stage.layout.project
    (project / "was-folder").mkdir()
    (project / "was-folder/inner").touch()
    (project / "was-file").touch()
    script = Script(
        removes=("was-file",),
        writes={"was-folder": (b"file", 0o644), "was-file/inner": (b"x", 0o600)},
        links={"link": "../anywhere"},
    )

    events = stage.events(script)

    assert events[-1]["is_error"] is False
    assert (project / "was-folder").read_bytes() == b"file"
    assert (project / "was-file/inner").stat().st_mode & 0o777 == 0o600
    assert (project / "link").readlink() == Path("../anywhere")


def test_a_failed_read_is_told_and_ends_nothing(stage: Stage) -> None:
    """A skill that is not there is a finding about the treatment, not a broken client."""
    events = stage.events(Script(reads=("absent/SKILL.md",), writes={"a": (b"", 0o644)}))

    (failed, content), (written, _) = results(events)
    assert failed
    assert "No such file" in content
    assert not written
    assert events[-1]["is_error"] is False


def test_what_is_no_regular_file_is_not_opened(stage: Stage) -> None:
    """A read of a pipe that nobody writes to would hang the trial until its deadline."""
    os.mkfifo(stage.layout.project / "pipe")
    (stage.layout.project / "folder").mkdir()

    events = stage.events(Script(reads=("pipe", "folder")))

    assert [is_error for is_error, _ in results(events)] == [True, True]


def test_a_long_file_is_told_in_part_with_the_number_of_bytes_dropped(stage: Stage) -> None:
    """A report is for evidence; a copy of a huge file would only flood it."""
    (stage.layout.project / "long").write_bytes(b"x" * 70_000)

    ((is_error, content),) = results(stage.events(Script(reads=("long",))))

    assert not is_error
    assert len(content) < 66_000
    assert content.endswith("[4464 bytes dropped]")


def test_no_locale_and_no_bytes_spoil_the_report(stage: Stage) -> None:
    """Trials run under whatever locale a host has, on files in whatever encoding."""
    (stage.layout.project / "latin").write_bytes(b"caf\xe9 \xc3\xa9\x00")
    script = Script(reads=("latin",), writes={"b\udcff": (b"x", 0o644), "é": (b"y", 0o644)})

    events = stage.events(script, LC_ALL="C", PYTHONIOENCODING="ascii")

    assert results(events)[0] == (False, "caf\\xe9 é\0")
    names = {os.fsencode(path.name) for path in stage.layout.project.iterdir()}
    assert names == {b"latin", b"b\xff", "é".encode()}


def test_a_recording_is_printed_byte_for_byte_once_its_edits_are_done(stage: Stage) -> None:
    """What is replayed must be what was recorded, torn lines and foreign bytes included."""
    recorded = b'{"type": "start"}\n\xff\x00{"torn": '

    done = stage.play(Script(writes={"a.py": (b"x", 0o644)}, transcript=recorded))

    assert done.returncode == 0
    assert done.stdout == recorded
    assert (stage.layout.project / "a.py").read_bytes() == b"x"


def test_a_recording_whose_edits_fail_prints_nothing(stage: Stage) -> None:
    """Its completion event beside another tree would be a session that never was."""
    done = stage.play(Script(writes={"../a": (b"x", 0o644)}, transcript=b'{"type": "completion"}'))

    assert done.returncode == 1
    assert done.stdout == b""
    assert b"../a" in done.stderr


def test_the_project_cannot_change_how_the_player_runs(stage: Stage) -> None:
    """A starter's json.py, or a variable of the environment, is data and not part of the client."""
    for name in ("json.py", "os.py", "sitecustomize.py", "functools.py"):
        (stage.layout.project / name).write_text("raise SystemExit('hijacked')")

    events = stage.events(Script(), PYTHONPATH=str(stage.layout.project), PYTHONSTARTUP="json.py")

    assert [event["type"] for event in events] == ["start", "response", "completion"]


def test_the_player_imports_neither_us_nor_anything_slow() -> None:
    """It runs where our package is not, and its start is part of every embedded trial."""
    (content,) = program_files().values()
    probe = "import sys; exec(compile(sys.stdin.read(), 'player', 'exec'), {'__name__': 'player'})"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", f"{probe}; print(*sys.modules)"],
        input=content,
        capture_output=True,
        check=True,
    )

    loaded = set(done.stdout.decode().split())
    assert "json" in loaded
    assert loaded & {"pytest_evalarc", "pathlib", "typing", "shutil", "subprocess", "site"} == set()
