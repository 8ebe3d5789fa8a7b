for process in /proc/[0-9]*; do
    grep -qa "victim-$TOKEN" "$process/cmdline" 2>/dev/null && kill -9 "${process#/proc/}"
done
