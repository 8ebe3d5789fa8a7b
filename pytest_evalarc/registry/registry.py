"""Join what all plugins offer, and hand it out by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pytest_evalarc.errors import UsageError, nearest
from pytest_evalarc.model.plain import NAME_PATTERN

if TYPE_CHECKING:
    import pluggy

    from pytest_evalarc.clients.protocol import Client
    from pytest_evalarc.grading.pack import Pack
    from pytest_evalarc.grading.toolchain import Toolchain
    from pytest_evalarc.isolation.command import Sandbox
    from pytest_evalarc.treatments.protocol import Treatment

T = TypeVar("T")


class Shelf(Generic[T]):
    """Things of one kind by name; each is made once, when it is first asked for."""

    def __init__(self, kind: str, makers: Mapping[str, Callable[[], T]]) -> None:
        self._kind = kind
        self._makers = dict(makers)
        self._made: dict[str, T] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order they were offered."""
        return tuple(self._makers)

    def get(self, name: str) -> T:
        """Return the thing of that name.

        Raises:
            UsageError: There is none; names the nearest.
        """
        if name not in self._made:
            if name not in self._makers:
                hint = nearest(name, self.names)
                raise UsageError(f"{self._kind} {name!r}", "there is no such one", hint)
            self._made[name] = self._makers[name]()
        return self._made[name]


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Everything that can be named in options and task files."""

    clients: Shelf[Client]
    treatments: Shelf[Treatment]
    toolchains: Shelf[Toolchain]
    packs: Shelf[Pack]
    sandboxes: Shelf[Sandbox]

    @classmethod
    def of(cls, plugins: pluggy.PluginManager) -> Registry:
        """Return all that the plugins of a manager offer.

        Args:
            plugins: A manager that knows our hook specifications, the built-in plugin in it.

        Raises:
            UsageError: Two plugins offer the same name, or one offers what has none.
        """
        return cls(
            clients=Shelf("client", _offered(plugins, "pytest_evalarc_clients")),
            treatments=Shelf("treatment", _offered(plugins, "pytest_evalarc_treatments")),
            toolchains=Shelf("toolchain", _offered(plugins, "pytest_evalarc_toolchains")),
            packs=Shelf("pack", _offered(plugins, "pytest_evalarc_packs")),
            sandboxes=Shelf("sandbox", _offered(plugins, "pytest_evalarc_sandboxes")),
        )


def _offered(plugins: pluggy.PluginManager, hook: str) -> dict[str, Callable[[], Any]]:
    """Return what every plugin offers under a hook, in the order the plugins were registered."""
    makers: dict[str, Callable[[], Any]] = {}
    owners: dict[str, str] = {}
    for implementation in getattr(plugins.hook, hook).get_hookimpls():
        owner = implementation.plugin_name
        for name, maker in _makers(implementation.function(), hook, owner).items():
            # Names that differ in case alone would share a folder on some file systems.
            if name.casefold() in owners:
                raise UsageError(
                    f"{hook}: {name!r}",
                    f"is offered by both {owners[name.casefold()]} and {owner}",
                    "rename one, or block one plugin with -p no:NAME",
                )
            owners[name.casefold()] = owner
            makers[name] = maker
    return makers


def _makers(offer: object, hook: str, owner: str) -> Mapping[str, Callable[[], Any]]:
    """Return one plugin's offer, checked: it is foreign code that answered."""
    if offer is None:
        return {}
    if not isinstance(offer, Mapping):
        raise UsageError(f"{hook} of {owner}", f"gave {offer!r}", "return a mapping of names")
    for name, maker in offer.items():
        if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
            hint = "use letters, digits, '_', '+' and '-'"
            raise UsageError(f"{hook} of {owner}", f"{name!r} is not a name", hint)
        if not callable(maker):
            hint = "give a function that makes one"
            raise UsageError(f"{hook} of {owner}: {name!r}", f"gave {maker!r}", hint)
    return offer
