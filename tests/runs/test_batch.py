from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evalarc.errors import InfrastructureError, SetupError, UsageError
from pytest_evalarc.isolation.host import Program
from pytest_evalarc.model.base import SCHEMA_VERSION
from pytest_evalarc.model.isolation import Barrier, PreflightDoc
from pytest_evalarc.runs.batch import USER_DATA_ROOTS
from pytest_evalarc.runs.plan import check_host
from tests.evals import Evals, Plain
from tests.needs import needs_bwrap

Make = Callable[..., Evals]


def test_making_a_batch_writes_nothing(tmp_path: Path) -> None:
    """Collecting makes one in every process."""
    evals = Evals(tmp_path)

    assert evals.batch.folders.work and evals.batch.deny_read and evals.plan

    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]


def test_what_surrounds_a_trial_is_denied_to_it(tmp_path: Path) -> None:
    """Under a sandbox that denies by list, what is not on it can be read."""
    extra = tmp_path / "data"
    evals = Evals(
        tmp_path, options={"deny_read": (extra,), "tasks": tmp_path / "elsewhere/evals/tasks"}
    )

    denied = set(evals.batch.deny_read)

    package = Path(sys.modules["pytest_evalarc"].__file__ or "").parent
    assert denied >= {
        *(Path(root) for root in USER_DATA_ROOTS),
        extra,
        evals.request.eval_root,
        evals.request.results,
        evals.request.project,
        tmp_path / "elsewhere/evals/tasks",
        tmp_path / "elsewhere/evals/plugins",
        tmp_path / "elsewhere/evals/fixtures",
        package,
    }
    assert Path(sys.prefix) in denied or sys.prefix == sys.base_prefix


@pytest.mark.slow
@needs_bwrap
def test_the_barriers_are_proven_once_per_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second worker believes the first one's proof, which is kept beside the tools."""
    calls: list[str] = []

    def proof(sandbox: Any, folder: Path) -> PreflightDoc:
        calls.append(sandbox.name)
        return PreflightDoc(schema_version=SCHEMA_VERSION, sandbox=sandbox.name, barriers=())

    monkeypatch.setattr("pytest_evalarc.runs.batch.preflight", proof)
    evals = Evals(tmp_path)

    for each in (evals, evals, Evals(tmp_path)):
        assert each.batch.sandbox.name == "bwrap"

    assert calls == ["bwrap"]
    assert len(list(evals.batch.folders.work.glob("preflight-bwrap-*.json"))) == 1


@pytest.mark.slow
@needs_bwrap
@pytest.mark.parametrize("other", ["BARRIERS", "place", "find_bwrap"])
def test_a_proof_of_another_program_or_machine_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """A batch may be gone on with after an upgrade, or by another host that shares its folder."""
    calls: list[str] = []

    def proof(sandbox: Any, folder: Path) -> PreflightDoc:
        calls.append(sandbox.name)
        return PreflightDoc(schema_version=SCHEMA_VERSION, sandbox=sandbox.name, barriers=())

    program = tmp_path / "bwrap"
    program.write_bytes(b"another one")
    others: dict[str, Any] = {
        "BARRIERS": {"one that is new": ""},
        "place": lambda: "another machine",
        "find_bwrap": lambda: Program(path=program, version="0.8.0"),
    }
    monkeypatch.setattr("pytest_evalarc.runs.batch.preflight", proof)
    assert Evals(tmp_path).batch.sandbox.name == "bwrap"
    monkeypatch.setattr(f"pytest_evalarc.runs.batch.{other}", others[other])

    for _ in range(2):
        assert Evals(tmp_path).batch.sandbox.name == "bwrap"

    assert calls == ["bwrap", "bwrap"]


def test_a_barrier_that_does_not_hold_stops_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no silent downgrade: neither now nor when another worker asks."""
    broken = PreflightDoc(
        schema_version=SCHEMA_VERSION,
        sandbox="bwrap",
        barriers=(
            Barrier(name="network", holds=False, detail="a port of the host was reached"),
            Barrier(name="read_secret", holds=True),
        ),
    )
    monkeypatch.setattr("pytest_evalarc.runs.batch.preflight", lambda *_: broken)

    for _ in range(2):
        with pytest.raises(InfrastructureError, match="network: a port of the host was reached"):
            Evals(tmp_path).batch.sandbox  # noqa: B018 - asking is what proves it.


def test_no_sandbox_needs_no_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It promises nothing."""
    monkeypatch.delattr("pytest_evalarc.runs.batch.preflight")
    options = {"sandbox": "local", "trust_local": True}

    assert Evals(tmp_path, options=options).batch.sandbox.name == "local"


def test_tools_are_staged_once_and_begun_anew_after_a_failure(tmp_path: Path) -> None:
    """What a process that died has begun must not be taken for the whole."""
    batch = Evals(tmp_path).batch
    batch.folders.open_work()
    filled: list[str] = []

    def torn(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError(28, "No space left on device")

    def whole(folder: Path) -> None:
        filled.append(folder.name)
        (folder / "tool").write_text("")

    with pytest.raises(OSError, match="No space left"):
        batch.stage("t", "1", torn)
    for _ in range(2):
        folder = batch.stage("t", "1", whole)

    assert filled == ["t"]
    assert [path.name for path in folder.iterdir()] == ["tool"]


def test_a_batch_keeps_the_tools_it_began_with(tmp_path: Path) -> None:
    """Trials of one batch are compared, so none may run with another version."""
    batch = Evals(tmp_path).batch
    batch.folders.open_work()
    batch.stage("t", "1", lambda folder: None)

    with pytest.raises(InfrastructureError, match="holds t 1, and this is 2"):
        batch.stage("t", "2", lambda folder: None)


def test_a_toolchain_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is staged or proven for a task that cannot be graded."""
    monkeypatch.setattr(Plain, "missing", lambda _self: "cargo is not on PATH")
    evals = Evals(tmp_path)

    with pytest.raises(SetupError, match="task tiny: toolchain python: cargo is not on PATH"):
        evals.batch.lab(evals.task)
    assert not evals.batch.folders.eval_root.exists()


def test_a_client_that_went_away_during_a_batch_runs_from_what_is_staged(tmp_path: Path) -> None:
    """Agents update themselves, and for a moment there is none: the batch has its own copy."""
    evals = Evals(tmp_path, client="nop")
    client, batch = evals.known_client, evals.batch
    batch.folders.open_work()
    folder = batch.client_program("nop", client)

    class Gone(type(client)):  # type: ignore[misc]
        def missing(self) -> str:
            return "it is not there"

        def sha256(self) -> str:
            raise AssertionError("there is nothing to read")

    gone = Gone(**vars(client))

    assert batch.is_client_staged("nop") and not batch.is_client_staged("other")
    assert batch.client_program("nop", gone) == folder
    check_host(gone, None, {}, is_staged=True)
    with pytest.raises(UsageError, match="it is not there"):
        check_host(gone, None, {})
