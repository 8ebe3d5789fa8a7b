"""The seam of packs: seeded cases, a host-side oracle, and a candidate that speaks JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import JsonValue

from pytest_evalarc.model.base import JsonObject
from pytest_evalarc.model.pack import PackInfo


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case of one seed; its content is whatever the pack's own `run` needs."""

    id: str
    seed: int
    content: JsonObject


class CandidateError(Exception):
    """The candidate broke the protocol, a deadline or a bound: assessed, and its failure.

    Args:
        kind: The word that reports count by, as `protocol` or `timeout`.
        detail: A sentence for a person.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


@dataclass(frozen=True, kw_only=True)
class CaseVerdict:
    """What a case found, by dimension.

    A pack that can judge on after the candidate broke the protocol gives the `fault` beside what
    it judged; the case then counts as an agent error with these verdicts.
    """

    verdicts: Mapping[str, bool]
    fault: CandidateError | None = None
    detail: str = ""
    trace: Sequence[JsonObject] = field(default_factory=tuple)


class Session(Protocol):
    """One process of the candidate, asked one line at a time."""

    def ask(self, request: JsonValue) -> JsonValue:
        """Send one request and return the reply.

        Raises:
            CandidateError: The reply is late, too long, no strict JSON, or came unasked.
        """
        ...

    def end(self, how: Literal["eof", "kill"]) -> None:
        """End the process: `eof` closes its input and wants a clean exit, `kill` is SIGKILL.

        Raises:
            CandidateError: After `eof` it said more, did not exit, or exited with an error.
        """
        ...


class Pack(Protocol):
    """Cases with an oracle of their own, declared mutants, and a reference in each language.

    Cases may be put to a candidate on several threads at once.
    """

    @property
    def info(self) -> PackInfo:
        """What the pack is."""
        ...

    def cases(self, seed: int) -> Sequence[Case]:
        """Return the cases of a seed, in declared order; the same for the same seed."""
        ...

    def run(self, case: Case, open_session: Callable[[], Session]) -> CaseVerdict:
        """Put a case to a candidate and return what it showed.

        Args:
            case: One of `cases`.
            open_session: Starts a process of the candidate; all of a case share a state folder.

        Raises:
            CandidateError: The candidate broke the protocol, and no more can be judged: all
                verdicts of the case are False.
        """
        ...

    def control(self, name: str, language: str) -> Mapping[str, bytes]:
        """Return the files of a control by their POSIX paths.

        Args:
            name: `reference`, `starter` or a mutant's name.
            language: One of the pack's languages.
        """
        ...
