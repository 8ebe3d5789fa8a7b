"""Try every barrier that a container promises, from inside, by a shell alone.

An image has a shell and need not have anything else, so nothing is connected to here: whether a
port or a socket of the host can be reached is read from the kernel's own lists of them.
"""

from __future__ import annotations

from collections.abc import Mapping

_SCRIPT = r"""
rows=
attempt() {
    name=$1 seen=$2 holds=true
    shift 2
    if ("$@") 2>/dev/null; then holds=false; else seen=refused; fi
    rows="$rows${rows:+,}[\"$name\",$holds,\"$seen\"]"
}
create() { : > "$1"; }
open() { : < "$1"; }
append() { : >> "$1"; }
listed() {
    # A list that cannot be read proves nothing, so the barrier does not hold.
    [ -r "$2" ] || return 0
    while read -r line; do case $line in *"$1"*) return 0 ;; esac; done < "$2"
    return 1
}
has_capabilities() {
    while read -r key held _; do
        [ "$key" = CapEff: ] && { [ "$held" != 0000000000000000 ]; return; }
    done < /proc/self/status
}
is_root() {
    while read -r key user _; do
        [ "$key" = Uid: ] && { [ "$user" = 0 ]; return; }
    done < /proc/self/status
}
attempt write_outside 'a file was written outside' create "$1"
attempt read_only 'a file was written where it may be read' create "$8/written"
attempt read_secret 'a planted secret was read' open "$2"
attempt network 'a port of the host is in sight' listed "$3" /proc/net/tcp
attempt host_sockets 'a socket of the host is in sight' listed "$4" /proc/net/unix
attempt host_processes 'the harness could be signalled' kill -0 "$5"
attempt kernel_settings 'a kernel setting could be written' append "$6"
attempt host_devices 'the mode of a device was set' chmod 666 "$7"
attempt not_root 'the process is root' is_root
attempt capabilities 'the process has capabilities' has_capabilities
printf '[%s]\n' "$rows"
"""


def probe_argv(plan: Mapping[str, str | int]) -> tuple[str, ...]:
    """Return the command that tries everything and prints one JSON line of rows.

    Args:
        plan: As the script of the other sandboxes reads it.
    """
    port = f":{int(plan['port']):04X} "
    order = ("target", "secret", "port", "socket", "pid", "switch", "device", "shown")
    given = {**plan, "port": port, "socket": f"@{plan['socket']}"}
    return ("/bin/sh", "-c", _SCRIPT, "probe", *(str(given[name]) for name in order))
