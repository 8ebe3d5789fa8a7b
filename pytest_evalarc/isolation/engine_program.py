"""The command line of a container engine: what it can enforce, its images, its containers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_evalarc.errors import InfrastructureError
from pytest_evalarc.files.text import printable
from pytest_evalarc.isolation.host import Program, os_name

ANSWER_S = 20.0
"""How long the engine may take for anything but running a container."""
OOM_STATUS = 247
"""Exit status of a container in which a process was killed for its memory, whatever came of it. A
candidate that ends so by itself has failed just as well."""
PLACE_LABEL = "pytest-evalarc.place"
HARNESS_LABEL = "pytest-evalarc.harness"


_LEADS = re.compile(
    "PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|LANG|LC_.*|SSL_CERT_.*|SSH_AUTH_SOCK|XDG_.*"
    "|DBUS_SESSION_BUS_ADDRESS|(DOCKER|PODMAN|CONTAINERS?|BUILDAH|STORAGE|REGISTRY)_.*"
    "|_CONTAINERS_.*|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
)
"""Variables by which a client finds its engine, its settings and its storage."""


def client_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment leads a client to its engine; a model's key does not."""
    return {name: value for name, value in environ.items() if _LEADS.fullmatch(name)}


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """What an engine says of itself."""

    version: str
    is_podman: bool
    """By what it answers: `docker` may be another name of podman."""
    is_rootless: bool
    enforces: Mapping[str, str | None]
    """Memory, processes and CPU time by what enforces the limit; None is not enforced."""


@dataclass(frozen=True, kw_only=True)
class EngineProgram:
    """An engine's client, called with an environment that leads it to its engine."""

    name: str
    """`docker` or `podman`."""
    environ: Mapping[str, str]

    @property
    def file(self) -> Path:
        """The client's program file.

        Raises:
            InfrastructureError: It is not on PATH.
        """
        found = shutil.which(self.name, path=self.environ.get("PATH", os.defpath))
        if found is None:
            hint = f"install {self.name}, or use another sandbox"
            raise InfrastructureError(self._where, "it is not on PATH", hint)
        return Path(found)

    def sha256(self) -> str:
        """Return the digest of the client's program file."""
        return Program(path=self.file, version="").sha256

    @property
    def _where(self) -> str:
        return f"sandbox {self.name}"

    def abilities(self) -> Abilities:
        """Ask the engine what it is.

        Raises:
            InfrastructureError: It does not answer, or cannot hold a candidate.
        """
        done = self._call("info", "--format", "{{json .}}")
        try:
            told = json.loads(done.stdout) if done.returncode == 0 else {}
            is_podman = "host" in told
            abilities = _podman_abilities(told) if is_podman else _docker_abilities(told)
        except (ValueError, KeyError, TypeError):
            raise InfrastructureError(
                self._where,
                f"the engine does not answer ({_last_line(done.stderr)})",
                "start it, or use another sandbox",
            ) from None
        if abilities.is_rootless and not is_podman:
            raise InfrastructureError(
                self._where,
                "the engine runs rootless, and what a candidate writes could not be removed",
                "use podman, or a Docker engine of the machine",
            )
        return abilities

    def image_id(self, image: str) -> str:
        """Return what an image's name stands for right now, as `sha256:` and 64 digits.

        Raises:
            InfrastructureError: The image is not there; none is ever fetched.
        """
        done = self._call("image", "inspect", "--format", "{{.Id}}", "--", image)
        digits = done.stdout.strip().removeprefix("sha256:")
        if done.returncode != 0 or not digits:
            raise InfrastructureError(
                self._where,
                f"there is no image {printable(image)} on this machine, and none is ever fetched",
                f"bring it with `{self.name} pull {printable(image)}` or `{self.name} load`",
            )
        return f"sha256:{digits}"

    def ran_out_of_memory(self, container: str) -> bool:
        """Whether the kernel ended a process of a container for its memory, as the engine knows."""
        with contextlib.suppress(InfrastructureError):
            told = self._call("container", "inspect", "--format", "{{.State.OOMKilled}}", container)
            return told.stdout.strip() == "true"
        return False

    def remove(self, container: str, *, is_podman: bool) -> None:
        """Kill what runs in a container and remove it; one that is not there is no error.

        Raises:
            InfrastructureError: It is still there.
        """
        # Podman asks politely first, and for ten seconds, unless it is told not to.
        at_once = ("--time", "0") if is_podman else ()
        done = self._call("rm", "--force", "--volumes", *at_once, container)
        if done.returncode != 0 and "no such container" not in done.stderr.lower():
            raise InfrastructureError(
                self._where,
                f"the container {container} cannot be removed: {_last_line(done.stderr)}",
                f"remove it with `{self.name} rm --force {container}`",
            )

    def remove_abandoned(self, *, is_podman: bool) -> None:
        """Remove containers of harness processes of this machine that are gone."""
        import psutil

        ours = f"label={PLACE_LABEL}={place()}"
        listed = self._call("ps", "--all", "--quiet", "--no-trunc", "--filter", ours).stdout.split()
        for container in listed:
            label = f'{{{{index .Config.Labels "{HARNESS_LABEL}"}}}}'
            told = self._call("container", "inspect", "--format", label, container).stdout.strip()
            if told.isdigit() and not psutil.pid_exists(int(told)):
                # Somebody else may be doing the same.
                with contextlib.suppress(InfrastructureError):
                    self.remove(container, is_podman=is_podman)

    def _call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Let the client do something short; a signal to our own group does not reach it."""
        try:
            return subprocess.run(
                [self.file, *words],
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=ANSWER_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            problem = f"`{self.name} {words[0]}` did not end within {ANSWER_S:.0f} s"
            hint = f"see what the engine does with `{self.name} ps`"
            raise InfrastructureError(self._where, problem, hint) from error
        except OSError as error:
            problem = f"it cannot be started: {error.strerror}"
            raise InfrastructureError(self._where, problem, "use another sandbox") from error


def _docker_abilities(told: dict[str, Any]) -> Abilities:
    version = told["ServerVersion"] or None
    if version is None:
        raise ValueError("a client without an engine")
    groups = f"cgroup-v{told.get('CgroupVersion') or 1}"
    # Without this a process pages out what it may not hold, so its memory is not bounded.
    bounds_memory = told.get("MemoryLimit") and told.get("SwapLimit")
    return Abilities(
        version=version,
        is_podman=False,
        is_rootless=any("rootless" in option for option in told.get("SecurityOptions") or ()),
        enforces={
            "memory_mib": groups if bounds_memory else None,
            "processes": groups if told.get("PidsLimit") else None,
            "cpus": groups if told.get("CpuCfsQuota") else None,
        },
    )


def _podman_abilities(told: dict[str, Any]) -> Abilities:
    host = told["host"]
    version, is_rootless = host["cgroupVersion"], host["security"]["rootless"]
    # Only the second version hands control groups down to an ordinary user.
    is_usable = version == "v2" or not is_rootless
    controllers = set(host.get("cgroupControllers") or ()) if is_usable else set()

    def by(controller: str) -> str | None:
        return f"cgroup-{version}" if controller in controllers else None

    return Abilities(
        version=told["version"]["Version"],
        is_podman=True,
        is_rootless=is_rootless,
        enforces={"memory_mib": by("memory"), "processes": by("pids"), "cpus": by("cpu")},
    )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return printable(lines[-1]).strip() if lines else "it said nothing"


@lru_cache(maxsize=1)
def place() -> str:
    """Return where process ids mean what they mean here; another machine may share the engine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        import platform

        return f"{platform.node()} {os_name()}"
