"""What the table of a client `codex` may say beside its model and its key."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pytest_evalarc.clients.settings import Variable
from pytest_evalarc.clients.urls import BaseUrl, host_of
from pytest_evalarc.model.base import Count, Model

HOST = "api.openai.com"
"""Where the models are, unless a table says otherwise."""


class CodexSettings(Model):
    """The settings of a client `codex`."""

    base_url: BaseUrl | None = None
    """Where the models are, in place of OpenAI's own API; it must speak the Responses API."""
    reasoning_effort: (
        Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"] | None
    ) = None
    max_retries: Count | None = None
    """How often a request or a stream that failed is made again; None is the client's number."""
    env: tuple[Variable, ...] = ()
    """Further variables of the harness's environment that it gets, by name."""
    domains: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Hosts that it must reach beside `base_url`; without one, in place of OpenAI's own API."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts that a session must reach."""
        if self.base_url is not None:
            return tuple(dict.fromkeys((host_of(self.base_url), *self.domains)))
        return self.domains or (HOST,)
