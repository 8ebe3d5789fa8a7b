for process in /proc/[0-9]*; do
    grep -qa "victim-$TOKEN" "$process/cmdline" 2>/dev/null || continue
    "$PY" -I -c 'import ctypes, os, sys
libc, victim = ctypes.CDLL(None), int(sys.argv[1])
libc.ptrace(16, victim, 0, 0)
os.waitpid(victim, 0x40000000)
libc.ptrace(8, victim, 0, 0)' "${process#/proc/}"
done
