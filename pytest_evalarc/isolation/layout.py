"""The folders of one trial, named as every process in it sees them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class RunLayout:
    """One trial's run folder; `home` to `evidence` are what its processes may write."""

    root: Path

    @property
    def home(self) -> Path:
        """HOME for every process of the trial."""
        return self.root / "home"

    @property
    def project(self) -> Path:
        """The copy of the starter that the client works in."""
        return self.root / "project"

    @property
    def fixtures(self) -> Path:
        """Read-only copies of the task's fixtures."""
        return self.root / "fixtures"

    @property
    def bin(self) -> Path:
        """Links to staged tools, first on PATH."""
        return self.root / "bin"

    @property
    def cargo_home(self) -> Path:
        """CARGO_HOME, empty at the start."""
        return self.root / "cargo-home"

    @property
    def tmp(self) -> Path:
        """TMPDIR."""
        return self.root / "tmp"

    @property
    def evidence(self) -> Path:
        """EVAL_EVIDENCE_DIR, outside the project."""
        return self.root / "evidence"

    @property
    def registry(self) -> Path:
        """The task's plugins, in a Symposium configuration."""
        return self.root / "registry"

    @property
    def writable(self) -> tuple[Path, ...]:
        """Every folder that a process of the trial may write."""
        return (self.home, self.project, self.cargo_home, self.tmp, self.evidence)
