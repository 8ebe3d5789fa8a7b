"""No sandbox: for trusted controls, or where the user trusts the submission."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pytest_evalarc.isolation import limits as limiting
from pytest_evalarc.isolation.command import Command, HostPrograms, Policy, Wrapped
from pytest_evalarc.isolation.host import os_name
from pytest_evalarc.model.task import Limits

if TYPE_CHECKING:
    from pytest_evalarc.model.isolation import IsolationRecord


class Local(HostPrograms):
    """Runs a command on the host, under limits and supervision but without a boundary."""

    name = "local"
    private_tmp = None
    remedy = "see that the host can start programs at all"

    def wrap(self, command: Command, policy: Policy) -> Wrapped:
        """Return the command as it is, under its limits; reads and writes are not confined."""
        first = limiting.rlimits(policy.limits, reserved_mib=policy.reserved_mib)
        limited = limiting.in_group(command.by_shell(first), policy.limits)
        return Wrapped(
            argv=limited.argv,
            cwd=command.cwd,
            env=command.env,
            stdin=command.stdin,
            ran_out_of_memory=lambda _: limited.ran_out_of_memory(),
            cleanup=limited.release,
        )

    level: ClassVar[Literal["trusted_local", "exploratory"]] = "trusted_local"

    def record(self, limits: Limits) -> IsolationRecord:  # noqa: ARG002 - the same for any limits.
        """Return a record that says there was no boundary of ours."""
        from pytest_evalarc.model.isolation import IsolationRecord

        return IsolationRecord(
            level=self.level,
            sandbox=self.name,
            version=os_name(),
            limits=limiting.enforced_by(bounded_tmp=False),
        )


class Exploratory(Local):
    """Leaves the boundary to the client's own sandbox, which nobody has proven."""

    name = "exploratory"
    level = "exploratory"
