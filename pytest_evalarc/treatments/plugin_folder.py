"""A Claude Code plugin folder: what it is called, what it brings, and a copy with a witness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evalarc.errors import DocumentError, SetupError
from pytest_evalarc.files.manifest import Manifest
from pytest_evalarc.files.strict import dumps, loads
from pytest_evalarc.files.text import printable
from pytest_evalarc.files.tree import write_tree
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import Plugin
from pytest_evalarc.model.transcript import Offered
from pytest_evalarc.treatments.skillset import Skill, copied_whole, title_of
from pytest_evalarc.treatments.witness import Wrapper

MANIFEST = ".claude-plugin/plugin.json"
HOOKS = "hooks/hooks.json"
SERVERS = ".mcp.json"
ELSEWHERE = ("agents", "commands", "skills")
"""Keys of a manifest that put components outside of the folders where they are looked for."""


@dataclass(frozen=True, kw_only=True)
class PluginFolder:
    """A plugin as it was copied for one trial."""

    plugin: str
    """Its folder's name, by which tasks call it."""
    name: str
    """By which the client calls it: what its manifest says, or its folder's name."""
    root: Path
    offers: Offered
    hooks: dict[str, int]
    """By event, the hook commands that record that they ran."""


def copy_plugin(plugin: Plugin, root: Path, script: Path, skills: list[Skill]) -> PluginFolder:
    """Copy a plugin, its hook commands wrapped.

    Args:
        plugin: The plugin as its author wrote it.
        root: Where the copy goes; nothing is there.
        script: The wrapper of hooks, as every process of the trial sees it.
        skills: The skills of this plugin.

    Raises:
        SetupError: It cannot be copied, or its manifest, hooks or servers cannot be read.
    """
    copy = copied_whole(plugin.root, root)
    manifest = _json(root, MANIFEST, copy) or {}
    name = _name(manifest, plugin)
    _refuse_elsewhere(manifest, root)
    wrapper = Wrapper(plugin=name, script=script)
    _wrap_hooks(root, copy, manifest, wrapper)
    return PluginFolder(
        plugin=plugin.name,
        name=name,
        root=root,
        offers=Offered(
            plugins=(name,),
            skills=tuple(_skill_names(name, skills)),
            agents=tuple(f"{name}:{agent}" for agent in _agents(root, copy)),
            mcp_servers=tuple(
                f"plugin:{name}:{server}" for server in _servers(root, copy, manifest)
            ),
        ),
        hooks=wrapper.commands,
    )


def _name(manifest: dict[str, Any], plugin: Plugin) -> str:
    name = manifest.get("name", plugin.name)
    if not isinstance(name, str) or not is_name(name):
        raise SetupError(
            f"plugin {plugin.name}: {MANIFEST}",
            f"gives a name that is none: {printable(str(name), limit=100)}",
            "letters, digits, `-`, `_` and `+` make a name",
        )
    return name


def _refuse_elsewhere(manifest: dict[str, Any], root: Path) -> None:
    for key in ELSEWHERE:
        if key in manifest:
            raise SetupError(
                f"{root / MANIFEST}: {key}",
                "names components outside of their own folders, so what is offered is not known",
                f"move them to {key}/ and take the key out",
            )


def _wrap_hooks(root: Path, copy: Manifest, manifest: dict[str, Any], wrapper: Wrapper) -> None:
    """Rewrite every file of hooks once, and those that the manifest holds itself."""
    named = manifest.get("hooks", ())
    if isinstance(named, dict):
        wrapped = wrapper.wrapped(named, where=f"{root / MANIFEST}: hooks")
        _replace(root, MANIFEST, {**manifest, "hooks": wrapped})
        named = ()
    files = [named] if isinstance(named, str) else list(named)
    for file in dict.fromkeys((HOOKS, *(_below(root, each) for each in files))):
        document = _json(root, file, copy)
        if document is not None:
            where = str(root / file)
            # A file of hooks holds them under a key, or is that key's value itself.
            if "hooks" in document:
                wrapped = wrapper.wrapped(document["hooks"], where=where)
                _replace(root, file, {**document, "hooks": wrapped})
            else:
                _replace(root, file, wrapper.wrapped(document, where=where))


def _skill_names(name: str, skills: list[Skill]) -> Iterator[str]:
    for skill in skills:
        yield f"{name}:{skill.name}"
        yield f"{name}:{skill.title}"


def _agents(root: Path, copy: Manifest) -> Iterator[str]:
    for entry in copy.files:
        top, _, rest = entry.path.partition("/")
        if top == "agents" and rest.endswith(".md"):
            *folders, stem = rest.removesuffix(".md").split("/")
            yield ":".join((*folders, title_of(root / entry.path) or stem))


def _servers(root: Path, copy: Manifest, manifest: dict[str, Any]) -> Iterator[str]:
    named = manifest.get("mcpServers", ())
    if isinstance(named, dict):
        yield from named
        named = ()
    files = [named] if isinstance(named, str) else list(named)
    for file in dict.fromkeys((SERVERS, *(_below(root, each) for each in files))):
        document = _json(root, file, copy) or {}
        servers = document.get("mcpServers", document)
        yield from servers if isinstance(servers, dict) else ()


def _below(root: Path, path: object) -> str:
    if not isinstance(path, str) or not path.startswith("./") or ".." in path.split("/"):
        raise SetupError(
            str(root / MANIFEST),
            f"names a file that is not below the plugin: {printable(str(path), limit=100)}",
            "a path starts with ./ and stays there",
        )
    return path.removeprefix("./")


def _json(root: Path, file: str, copy: Manifest) -> dict[str, Any] | None:
    """Return a JSON object of a plugin; None when the file is not there."""
    if file not in copy.by_path:
        return None
    where = str(root / file)
    try:
        document = loads((root / file).read_bytes(), where=where)
    except DocumentError as error:
        raise SetupError(error.where, error.problem, "mend the plugin") from error
    if not isinstance(document, dict):
        raise SetupError(where, "is no JSON object", "mend the plugin")
    return document


def _replace(root: Path, file: str, document: dict[str, Any]) -> None:
    write_tree(root, {file: dumps(document)}, replace=True)
