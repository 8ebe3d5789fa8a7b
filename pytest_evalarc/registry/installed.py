"""What is known where no pytest runs: the built-in things and those of installed packages."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint
from typing import NamedTuple

import pluggy

from pytest_evalarc import hookspecs
from pytest_evalarc.errors import UsageError
from pytest_evalarc.files.text import printable
from pytest_evalarc.registry import builtin
from pytest_evalarc.registry.registry import Registry

GROUP = "pytest11"
"""Pytest's own group of entry points, in which a package names its plugin."""
OURS = "pytest-evalarc"
_HOOKS = "pytest_evalarc_"


class _Found(NamedTuple):
    """A plugin that may offer something, and the package that it comes with."""

    package: str
    entry_point: EntryPoint


class _Manager(pluggy.PluginManager):
    """Knows our hooks by their names, marked or not, as pytest's own manager does."""

    def parse_hookspec_opts(
        self,
        module_or_class: object,  # noqa: ARG002 - the name tells all.
        name: str,
    ) -> pluggy.HookspecOpts | None:
        """Return the options of a hook specification of ours; None for all else."""
        if not name.startswith(_HOOKS):
            return None
        return pluggy.HookspecOpts(
            firstresult=False,
            historic=False,
            warn_on_impl=None,
            warn_on_impl_args=None,
        )

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """Return the options of an implementation of a hook of ours; None for all else."""
        if not name.startswith(_HOOKS):
            return None
        return super().parse_hookimpl_opts(plugin, name) or pluggy.HookimplOpts(
            wrapper=False,
            hookwrapper=False,
            optionalhook=False,
            tryfirst=False,
            trylast=False,
            specname=None,
        )


def installed() -> Registry:
    """Return the built-in things with those that installed packages offer to pytest.

    Only packages that require this one are asked: no other can offer what our hooks want, and
    importing every plugin of pytest is not for a command that only looks. What a conftest offers
    is known to pytest alone.

    Raises:
        UsageError: A plugin cannot be imported, or two offer the same name.
    """
    manager = _Manager("pytest")
    manager.add_hookspecs(hookspecs)
    manager.register(builtin, "evalarc-builtin")
    for found in _plugins():
        plugin = _imported(found)
        # Pytest keeps the first of two entry points for one module, or of one name.
        if not manager.is_registered(plugin) and not manager.has_plugin(found.entry_point.name):
            manager.register(plugin, found.entry_point.name)
    return Registry.of(manager)


def _plugins() -> Iterator[_Found]:
    """Yield the plugins of all packages that require this one, sorted by package."""
    # A package can be found twice, as in a checkout that is installed; the first is imported.
    packages: dict[str, Distribution] = {}
    for distribution in importlib.metadata.distributions():
        packages.setdefault(_normalised(distribution.name), distribution)
    for name, distribution in sorted(packages.items()):
        entry_points = distribution.entry_points.select(group=GROUP)
        if entry_points and _requires_ours(distribution):
            yield from (_Found(name, entry_point) for entry_point in entry_points)


def _requires_ours(distribution: Distribution) -> bool:
    names = (re.match(r"[\w.-]+", requirement) for requirement in distribution.requires or ())
    return any(name is not None and _normalised(name[0]) == OURS for name in names)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported(found: _Found) -> object:
    try:
        return found.entry_point.load()
    except Exception as error:
        raise UsageError(
            f"plugin {found.entry_point.name!r} of the package {found.package}",
            f"cannot be imported: {type(error).__name__}: {printable(str(error), limit=400)}",
            "mend it, or uninstall the package",
        ) from error
