"""What `cargo-agents` 0.4.0 does in a trial, as far as it is documented.

Left out: hooks and servers that plugins bring, git registries, predicates but `depends-on`,
telemetry and updates. None of that happens in a trial of the shipped tasks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

VERSION = "cargo-agents 0.4.0"
HOOKS = {
    "claude": (".claude/settings.json", "*"),
    "codex": (".codex/hooks.json", ""),
}
SKILL_FOLDERS = {"claude": ".claude/skills", "codex": ".agents/skills"}
EVENTS = {
    "session-start": "SessionStart",
    "user-prompt-submit": "UserPromptSubmit",
    "pre-tool-use": "PreToolUse",
    "post-tool-use": "PostToolUse",
}
MARK = ".symposium"


class Skill(NamedTuple):
    name: str
    root: Path
    origin: str


def home() -> Path:
    return Path(os.environ["HOME"])


def state_folder() -> Path:
    return home() / ".symposium"


def config() -> dict[str, Any]:
    file = state_folder() / "config.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.exists() else {}


def agents() -> list[str]:
    return [agent["name"] for agent in config().get("agent", ())]


def log(line: str) -> None:
    folder = state_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "symposium.log").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


# init


def init(words: list[str]) -> int:
    added = [
        name
        for option, name in zip(words[::2], words[1::2], strict=True)
        if option == "--add-agent"
    ]
    if not added or len(added) * 2 != len(words):
        print("Error: no agents detected; pass `--add-agent <name>`", file=sys.stderr)
        return 1
    for name in added:
        if name not in HOOKS:
            print(f"Error: unknown agent: {name}", file=sys.stderr)
            return 1
    file = state_folder() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = file.read_text("utf-8") if file.exists() else ""
    for name in added:
        if name not in agents():
            text = f'{text.rstrip()}\n\n[[agent]]\nname = "{name}"\n'.lstrip()
            file.write_text(text, "utf-8")
    if config().get("hook-scope", "global") == "global":
        for name in agents():
            register(name, home())
    return 0


def register(agent: str, root: Path) -> None:
    path, matcher = HOOKS[agent]
    file = root / path
    settings = json.loads(file.read_text("utf-8")) if file.exists() else {}
    hooks = settings.setdefault("hooks", {})
    for word, event in EVENTS.items():
        groups = hooks.setdefault(event, [])
        known = [hook["command"] for group in groups for hook in group["hooks"]]
        if not any(command.startswith("cargo-agents hook") for command in known):
            hook = {"type": "command", "command": f"cargo-agents hook {agent} {word}"}
            groups.append({"matcher": matcher, "hooks": [hook]})
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings, indent=2), "utf-8")


# hook


def hook(agent: str, word: str) -> int:
    event = EVENTS.get(word)
    try:
        payload = json.loads(sys.stdin.read())
    except ValueError as error:
        log(f"WARN hook failed: {error}")
        return 1
    if agent not in HOOKS or event is None or not isinstance(payload, dict):
        log(f"WARN hook failed: agent {agent} does not support {word}")
        return 1
    if config().get("auto-sync", False):
        auto_sync(Path(payload.get("cwd") or ".").absolute(), always=event == "SessionStart")
    trace = os.environ.get("SYMPOSIUM_HOOK_TRACE")
    if trace:
        line = json.dumps({"event": event, "agent": agent, "input": payload, "output": None})
        with Path(trace).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    return 0


def auto_sync(cwd: Path, *, always: bool) -> None:
    """Sync, and never fail: what goes wrong is logged and nothing more."""
    try:
        root = workspace(cwd)
        if not always and is_fresh(root):
            return
        sync(root)
        record(root)
        log(f"INFO synced {root}")
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        log(f"WARN auto-sync during hook failed (continuing): {error}")


# sync


def sync_here() -> int:
    try:
        sync(workspace(Path.cwd()))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def workspace(cwd: Path) -> Path:
    return Path(cargo(cwd, "locate-project", "--workspace", "--message-format=plain")).parent


def cargo(cwd: Path, *words: str) -> str:
    program = shutil.which("cargo")
    if program is None:
        raise ValueError("not in a Rust workspace: there is no cargo on PATH")
    done = subprocess.run([program, *words], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"not in a Rust workspace: {done.stderr.strip()}")
    return done.stdout.strip()


def dependencies(root: Path) -> set[str]:
    found = json.loads(cargo(root, "metadata", "--format-version=1", "--offline"))
    return {package["name"] for package in found["packages"]}


def sync(root: Path) -> None:
    skills = list(applicable(dependencies(root)))
    for agent in agents():
        register(agent, home())
        parent = root / SKILL_FOLDERS[agent]
        kept = {install(skill, skills, parent, root).name for skill in skills}
        for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
            if (folder / MARK).exists() and folder.name not in kept:
                shutil.rmtree(folder)


def install(skill: Skill, among: list[Skill], parent: Path, root: Path) -> Path:
    make_ignored(parent, root)
    plain = parent / skill.name
    is_taken = plain.exists() and not (plain / MARK).exists()
    is_shared = sum(other.name == skill.name for other in among) > 1
    suffix = hashlib.sha256(skill.origin.encode()).hexdigest()[:8]
    target = parent / f"{skill.name}-{suffix}" if is_taken or is_shared else plain
    if target.exists() and not (target / MARK).exists():
        return target
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(skill.root, target)
    (target / MARK).write_text("")
    (target / ".gitignore").write_text("*\n")
    return target


def make_ignored(folder: Path, root: Path) -> None:
    """Make the folder of skills, kept out of version control if it is new."""
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n")


def applicable(crates: set[str]) -> Iterator[Skill]:
    for registry in config().get("registry", ()):
        root = state_folder() / registry["path"]
        for manifest, folder in plugins(root):
            if not depends(manifest.get("depends-on"), crates):
                continue
            for group in manifest["skills"]:
                yield from skills_in(folder / group["source"]["path"], manifest["name"], crates)


def plugins(root: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    if (root / "SYMPOSIUM.toml").is_file():
        manifest = tomllib.loads((root / "SYMPOSIUM.toml").read_text("utf-8"))
        yield {"skills": [], **manifest}, root
        return
    if (root / "SKILL.md").is_file():
        # Without a manifest nothing says what it depends on, but its own front matter may.
        wanted = front_matter(root / "SKILL.md").get("depends-on")
        yield (
            {
                "name": root.name,
                "depends-on": wanted,
                "skills": [{"source": {"path": "."}}],
            },
            root,
        )
        return
    for folder in sorted(root.iterdir()):
        if folder.is_dir():
            yield from plugins(folder)


def skills_in(root: Path, plugin: str, crates: set[str]) -> Iterator[Skill]:
    for file in sorted(root.rglob("SKILL.md")):
        matter = front_matter(file)
        narrows = "depends-on" not in matter or depends(matter["depends-on"], crates)
        if narrows and matter.get("name") and matter.get("description"):
            yield Skill(matter["name"], file.parent, f"{plugin}:{file.parent}")


def front_matter(file: Path) -> dict[str, str]:
    found = re.match(r"---\n(.*?)\n---\n", file.read_text("utf-8"), re.DOTALL)
    pairs = (line.partition(":") for line in (found[1] if found else "").splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def depends(atoms: Iterable[str] | str | None, crates: set[str]) -> bool:
    """Whether any crate is there; a plugin that names none is dormant."""
    words = re.split(r"[\s,]+", atoms) if isinstance(atoms, str) else list(atoms or ())
    names = {re.split(r"[^\w-]", word)[0] if word != "*" else "*" for word in words}
    return "*" in names or bool(names & crates)


# record


def record_file(root: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return state_folder() / "cache/workspaces" / f"{root.name}-{digest}" / "state.json"


def mtime(file: Path) -> int | None:
    return int(file.stat().st_mtime) if file.exists() else None


def record(root: Path) -> None:
    file = record_file(root)
    file.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "last-sync-lock-mtime": mtime(root / "Cargo.lock"),
        "last-sync-battery-pack-mtime": mtime(root / "battery-pack.toml"),
        "workspace-root": str(root),
    }
    file.write_text(json.dumps(state, indent=2), "utf-8")


def is_fresh(root: Path) -> bool:
    file = record_file(root)
    state = json.loads(file.read_text("utf-8")) if file.exists() else {}
    synced_s = state.get("last-sync-lock-mtime")
    return synced_s is not None and synced_s == mtime(root / "Cargo.lock")


def main(words: list[str]) -> int:
    # Cargo puts its subcommand's name first, and the hooks do not.
    words = words[1:] if words[:1] == ["agents"] else words
    if words == ["--version"]:
        print(VERSION)
        return 0
    if words[:1] == ["init"]:
        return init(words[1:])
    if words[:1] == ["hook"] and len(words) == 3:
        return hook(words[1], words[2])
    if words == ["sync"]:
        return sync_here()
    print("Usage: cargo-agents init|hook|sync", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
