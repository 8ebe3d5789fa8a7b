"""Two hosts to be reached by ssh: daemons on this machine that share no folder with each other."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")

DAEMON = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {user_key}.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME={folder}/home TMPDIR={folder}/tmp PYTHONPYCACHEPREFIX={compiled} {more}
"""

CLIENT = """\
Host {name}
    HostName 127.0.0.1
    Port {port}
    HostKeyAlias {name}
    IdentityFile {user_key}
    IdentitiesOnly yes
    UserKnownHostsFile {known}
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    BatchMode yes
    ConnectTimeout 10
"""


class Host:
    """One daemon with keys of its own, a home, a folder for temporary files and a checkout."""

    def __init__(self, name: str, folder: Path, user_key: Path) -> None:
        self.name = name
        self.folder = folder
        self.checkout = folder / "checkout"
        self.environment: dict[str, str] = {}
        """Further variables of its sessions; set before `start`."""
        self.full_disk: Path | None = None
        """A folder that is a full file system of its own there; set before `start`."""
        self._user_key = user_key
        self._daemon: subprocess.Popen[bytes] | None = None
        for each in ("home", "tmp"):
            (folder / each).mkdir(parents=True)
        make_key(folder / "host_key")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self, compiled: Path) -> None:
        """Start the daemon, and wait until it listens."""
        more = " ".join(f'"{name}={value}"' for name, value in self.environment.items())
        (self.folder / "sshd_config").write_text(
            DAEMON.format(
                port=self.port,
                folder=self.folder,
                user_key=self._user_key,
                compiled=compiled,
                more=more,
            )
        )
        if os.geteuid() == 0:
            # Where the daemon of a root gives its rights up; an installed one has made it.
            Path("/run/sshd").mkdir(exist_ok=True)
        assert SSHD is not None
        with (self.folder / "sshd.log").open("wb") as log:
            daemon = [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
            self._daemon = subprocess.Popen([*self._with_full_disk(), *daemon], stderr=log)
        until = time.monotonic() + 30
        while "listening" not in (self.folder / "sshd.log").read_text("utf-8"):
            assert self._daemon.poll() is None, (self.folder / "sshd.log").read_text("utf-8")
            assert time.monotonic() < until, "sshd does not listen"
            time.sleep(0.02)

    def _with_full_disk(self) -> list[str]:
        """Return what starts the daemon where the folder is full, for it and its sessions alone."""
        if self.full_disk is None:
            return []
        self.full_disk.mkdir(exist_ok=True)
        filled = (
            'mount -t tmpfs -o size=64k none "$0" && { cat /dev/zero > "$0/filled"; exec "$@"; }'
        )
        return ["unshare", "--mount", "sh", "-c", filled, str(self.full_disk)]

    def sessions(self) -> list[psutil.Process]:
        """Return the daemon's sessions with all that runs in them."""
        if self._daemon is None:
            return []
        return psutil.Process(self._daemon.pid).children(recursive=True)

    def cut(self) -> None:
        """Kill every session with its worker, as when the machine is switched off."""
        for process in self.sessions():
            if process.is_running():
                process.kill()

    def stop(self) -> None:
        """End the daemon and its sessions."""
        if self._daemon is not None:
            self.cut()
            self._daemon.kill()
            self._daemon.wait()
            self._daemon = None

    @property
    def public_key(self) -> str:
        """The host's own key, as lines of known hosts have it."""
        kind, key, *_ = (self.folder / "host_key.pub").read_text("ascii").split()
        return f"{kind} {key}"


class Hosts:
    """The hosts, and what ssh needs to reach them.

    Args:
        folder: Where all that is theirs lies; made here.
        compiled: Compiled modules of their sessions.
    """

    def __init__(self, folder: Path, *, compiled: Path) -> None:
        self.config = folder / "ssh_config"
        self.known = folder / "known_hosts"
        folder.mkdir()
        make_key(folder / "user_key")
        self._compiled = compiled
        self.a, self.b = (
            Host(name, folder / name, folder / "user_key") for name in ("hostA", "hostB")
        )
        self.config.write_text(
            "".join(
                CLIENT.format(
                    name=host.name,
                    port=host.port,
                    user_key=folder / "user_key",
                    known=self.known,
                )
                for host in (self.a, self.b)
            )
        )
        self.know(self.a.public_key, self.b.public_key)

    def know(self, key_of_a: str, key_of_b: str) -> None:
        """Write down which key each host has."""
        self.known.write_text(f"hostA {key_of_a}\nhostB {key_of_b}\n", "ascii")

    def check_out(self, project: Path) -> None:
        """Give each host a copy of a project."""
        for host in (self.a, self.b):
            shutil.copytree(project, host.checkout, symlinks=True)

    def start(self) -> None:
        """Start both daemons."""
        self.a.start(self._compiled)
        self.b.start(self._compiled)

    def stop(self) -> None:
        """End both daemons."""
        self.a.stop()
        self.b.stop()

    def tx(self, *hosts: Host) -> list[str]:
        """Return the options that hand items out to these hosts."""
        specs = (
            f"--tx=ssh=-F {self.config} {host.name}//python={sys.executable}//chdir={host.checkout}"
            for host in hosts or (self.a, self.b)
        )
        return ["-d", *specs]


def make_key(path: Path) -> None:
    """Make a pair of keys without a password."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
