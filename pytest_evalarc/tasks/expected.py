"""`plugins` and `[expected]`: what a treatment offers, and what the author expects of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pytest_evalarc.errors import nearest
from pytest_evalarc.model.plain import is_name
from pytest_evalarc.model.task import Expected, Plugin
from pytest_evalarc.tasks.fields import NAME_HINT, Table, described, keys_of, twins
from pytest_evalarc.tasks.plugins import front_matter, plugins_in, skills_of
from pytest_evalarc.tasks.problems import shown_path
from pytest_evalarc.tasks.trees import normalised, relative_flaw

_CONTRADICTIONS = (("installed", "not_installed"), ("used", "not_used"), ("used", "not_installed"))


def read_plugins(top: Table, folder: Path, *, root: Path) -> tuple[Plugin, ...]:
    """Return the plugins that a task names.

    Args:
        top: The task's task.toml.
        folder: Where plugins are named from.
        root: The project root, where paths start.
    """
    known = {plugin.name: plugin for plugin in plugins_in(folder)}
    found = []
    for entry in top.texts("plugins"):
        plugin = known.get(entry) or _at_path(entry, root)
        if isinstance(plugin, Plugin):
            found.append(plugin)
            continue
        where = shown_path(folder, root)
        problem = plugin or f"is neither in {where} nor a folder of the project"
        hint = nearest(entry, tuple(known)) or f"add it to {where}"
        top.tell("plugins", f"names {described(entry)}, which {problem}", hint)
    pairs = list(twins(plugin.name for plugin in found))
    for twin, name in pairs:
        top.tell("plugins", f"names two plugins {twin} and {name}", "rename one folder")
    if not pairs:
        _tell_shared_skills(top, found)
    _tell_headless_skills(top, found)
    return tuple(found)


def read_expected(top: Table, plugins: tuple[Plugin, ...], folder: Path) -> Expected:
    """Return what `[expected]` says, checked against the skills that there are.

    Args:
        top: The task's task.toml.
        plugins: The plugins that the task names.
        folder: Where plugins are named from; `not_…` may name any skill there.
    """
    table = top.table("expected")
    table.refuse_unknown(keys_of(Expected))
    expected = Expected(**{name: table.names(name) for name in keys_of(Expected)})
    if table.data and "plugins" not in top:
        top.tell("expected", "stands without plugins, so nothing can be expected", "add `plugins`")
        return expected
    for first, second in _CONTRADICTIONS:
        for skill in sorted(set(getattr(expected, first)) & set(getattr(expected, second))):
            table.tell(second, f"names {described(skill)}, as `{first}` does", "drop it from one")
    named = top.data.get("plugins", [])
    if not isinstance(named, list) or len(plugins) < len(named):
        # What a plugin that was not found offers is not known, and was told by its own name.
        return expected
    offered = {skill for plugin in plugins for skill in skills_of(plugin)}
    anywhere = offered | {skill for plugin in plugins_in(folder) for skill in skills_of(plugin)}
    for names, known, words in (
        (("installed", "used"), offered, "no plugin of the task"),
        (("not_installed", "not_used"), anywhere, "no plugin at all"),
    ):
        for name in names:
            for skill in getattr(expected, name):
                if skill not in known:
                    problem = f"names the skill {described(skill)}, which {words} offers"
                    table.tell(name, problem, nearest(skill, tuple(sorted(known))))
    return expected


def _at_path(entry: str, root: Path) -> Plugin | str | None:
    """Return the plugin at a path from the project root, why there can be none, or None."""
    if flaw := relative_flaw(entry):
        return flaw
    path = root / normalised(entry)
    if not path.is_dir():
        return None
    if not path.resolve().is_relative_to(root.resolve()):
        return "leads out of the project"
    if not is_name(path.name):
        return f"ends with no name: {NAME_HINT}"
    return Plugin(name=path.name, root=path)


def _tell_headless_skills(top: Table, plugins: list[Plugin]) -> None:
    """Tell of skills that clients pass over without a word, so that a treatment would be none."""
    for plugin in plugins:
        for skill, root in sorted(skills_of(plugin).items()):
            found = front_matter(root / "SKILL.md")
            lacking = [key for key in ("name", "description") if key not in (found or {})]
            if lacking:
                what = "no front matter" if found is None else f"no {' and no '.join(lacking)}"
                hint = "begin it with ---, name: …, description: …, ---"
                named = f"{described(plugin.name)}, whose skill {described(skill)} has {what}"
                top.tell("plugins", f"names {named}", hint)


def _tell_shared_skills(top: Table, plugins: list[Plugin]) -> None:
    offers = [(skill.casefold(), plugin.name) for plugin in plugins for skill in skills_of(plugin)]
    for skill, count in sorted(Counter(skill for skill, _ in offers).items()):
        if count > 1:
            names = ", ".join(name for offered, name in offers if offered == skill)
            problem = f"offers the skill {described(skill)} more than once, by {names}"
            top.tell("plugins", problem, "all skills share one folder, so rename one")
