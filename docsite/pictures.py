"""The pictures of the pages, made from real runs of the tutorial: `python -m docsite.pictures`.

Chromium takes each one of a page that is written here. What stands on it is what the programs said:
the terminal's own colours, the report as it is opened, and the tree that an editor's adapter gets.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
PROJECT = ROOT / "docs" / "examples" / "own-skill"
ADAPTER = ROOT / "tests" / "plugin"
TASK = "--evalarc-task=ticket-labels"
REPLAY = (
    *("pytest", TASK, "--evalarc-client=replay", "--evalarc-trials=5", "--evalarc-batch=first"),
    *("--evalarc-model-setting=recording=recordings", "-k", "audit or success"),
)
COLUMNS = 92
WIDTH = COLUMNS + 1
"""Of a terminal: pytest's last line is one longer than it was told."""
LINE_PX = 18
CHARACTER_PX = 7.83
"""Of the font below, at its size."""
AROUND_PX = 32

COLOURS = {
    **{"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff"},
    **{"36": "#76e3ea", "90": "#8b949e", "91": "#ffa198", "92": "#7ee787", "93": "#f2cc60"},
}
"""What the terminal's palette makes of a foreground colour."""

STYLE = f"""
body {{ margin: 0; background: #0d1117; color: #e6edf3; }}
pre {{
    margin: {AROUND_PX // 2}px; font: 13px/{LINE_PX}px "DejaVu Sans Mono", monospace;
    width: {WIDTH}ch; white-space: pre-wrap; line-break: anywhere;
}}
.line {{ color: #8b949e; }}
"""


class Shot(NamedTuple):
    """One page, and how much of it is taken."""

    name: str
    page: Path
    width: int
    height: int


# The terminal.


def coloured(text: str) -> str:
    """Return what a terminal shows of a text as HTML, its escapes become styles."""
    parts = re.split(r"\x1b\[([\d;]*)m", text)
    styles: dict[str, str] = {}
    shown = [html.escape(parts[0])]
    for codes, words in zip(parts[1::2], parts[2::2], strict=True):
        for code in codes.split(";"):
            styles = _styled(styles, code)
        style = "; ".join(f"{key}: {value}" for key, value in styles.items())
        escaped = html.escape(words)
        shown.append(f'<span style="{style}">{escaped}</span>' if style and words else escaped)
    return "".join(shown)


def _styled(styles: Mapping[str, str], code: str) -> dict[str, str]:
    if code in ("", "0"):
        return {}
    if code == "1":
        return {**styles, "font-weight": "bold"}
    return {**styles, "color": COLOURS[code]} if code in COLOURS else dict(styles)


def terminal(project: Path) -> str:
    """Return what the tutorial's comparison prints on a terminal, after the line that was typed."""
    said = _run(project, *REPLAY, "--no-header", "--color=yes")
    typed = f"{shlex.join(REPLAY[:4])} \\\n    {shlex.join(REPLAY[4:])}"
    return f"$ {typed}\n{said}"


# The tree of an editor.


def tree(project: Path) -> str:
    """Return the tree that VS Code's adapter is sent for the tutorial's task, as HTML."""
    with tempfile.TemporaryDirectory() as folder:
        sent = Path(folder, "sent.json")
        more = {"PYTHONPATH": str(ADAPTER), "ADAPTER_FILE": str(sent)}
        _run(project, "pytest", "--collect-only", "-q", "-p", "adapter", TASK, env=more)
        nodes = json.loads(sent.read_text("utf-8"))["tree"]
    return "\n".join(_branches(nodes, ""))


def _branches(nodes: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    for node in nodes:
        mark = "▾" if "children" in node else "○"
        line = "" if node["line"] is None else f"  :{node['line']}"
        yield f'{indent}{mark} {html.escape(node["name"])}<span class="line">{line}</span>'
        yield from _branches(node.get("children", ()), f"{indent}    ")


# Pictures.


def make(folder: Path) -> tuple[Path, ...]:
    """Make every picture in a folder and return them.

    Raises:
        RuntimeError: There is no chromium, or a program fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        project = Path(place, "project")
        shutil.copytree(PROJECT, project)
        (project / "pytest.ini").write_text("[pytest]\n", "utf-8")
        shots = (
            _of_text("terminal", coloured(terminal(project)), project),
            _of_text("editor-tree", tree(project), project, columns=60),
            _of_report(project),
        )
        return tuple(_take(shot, folder) for shot in shots)


def _of_text(name: str, shown: str, project: Path, *, columns: int = WIDTH) -> Shot:
    page = project.with_name(f"{name}.html")
    head = f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>'
    page.write_text(f"{head}<pre>{shown.rstrip()}</pre>", "utf-8")
    words = html.unescape(re.sub("<[^>]+>", "", shown.rstrip()))
    lines = sum(max(1, math.ceil(len(line) / WIDTH)) for line in words.splitlines())
    width = math.ceil(columns * CHARACTER_PX) + AROUND_PX
    return Shot(name, page, width, lines * LINE_PX + AROUND_PX)


def _of_report(project: Path) -> Shot:
    page = project.with_name("report.html")
    _run(project, "pytest-evalarc", "report", "results", "-o", str(page))
    return Shot("report", page, 1120, 760)


def _take(shot: Shot, folder: Path) -> Path:
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("there is no chromium; apt-get install chromium")
    picture = folder / f"{shot.name}.png"
    with tempfile.TemporaryDirectory() as home:
        argv = [
            *(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={home}"),
            *(f"--window-size={shot.width},{shot.height}", f"--screenshot={picture}"),
            shot.page.as_uri(),
        ]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "HOME": home})
    return picture


def _run(project: Path, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a program of this environment in the project, as on a terminal of our width."""
    path = Path(sys.executable).with_name(program)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    own = {"COLUMNS": str(COLUMNS), "GITHUB_ACTIONS": "", **(env or {})}
    root = f"--evalarc-root={project.with_name('root')}"
    more = (root, "-p", "no:randomly", "-p", "no:cacheprovider") if program == "pytest" else ()
    done = subprocess.run(
        [str(path), *arguments, *more],
        cwd=project,
        env={**clean, **own},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    for made in make(PICTURES):
        print(f"{made.relative_to(ROOT)}: {made.stat().st_size:,} bytes")
